/* SPDX-License-Identifier: Apache-2.0 */
/* Runs a fuzz target on files, and on all files of directories: run PATH... Says how many in cmocka's words. */
#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>

#include "fuzz.h"

static unsigned long n_files;

#pragma weak LLVMFuzzerInitialize

static const char *name_of(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static bool run_file(const char *path) {
    FILE *file = fopen(path, "rb");
    if (!file || fseek(file, 0, SEEK_END) < 0)
        return false;
    size_t size = (size_t)ftell(file);
    /* no byte more, so that a sanitizer sees the first one read too far; none at all for a file without any */
    uint8_t *bytes = size ? malloc(size) : NULL;
    rewind(file);
    bool read = !size || (bytes && fread(bytes, 1, size, file) == size);
    fclose(file);
    if (read) {
        if (getenv("FUZZ_VERBOSE"))
            fprintf(stderr, "%s\n", path);
        LLVMFuzzerTestOneInput(bytes, size);
        n_files++;
    }
    free(bytes);
    return read;
}

static bool run(const char *path) {
    struct stat st;
    if (stat(path, &st) < 0)
        return false;
    if (!S_ISDIR(st.st_mode))
        return run_file(path);
    DIR *dir = opendir(path);
    bool good = dir != NULL;
    for (struct dirent *entry; good && (entry = readdir(dir));) {
        char below[4096];
        snprintf(below, sizeof below, "%s/%s", path, entry->d_name);
        if (entry->d_name[0] != '.')
            good = run(below);
    }
    if (dir)
        closedir(dir);
    return good;
}

int main(int argc, char **argv) {
    if (LLVMFuzzerInitialize)
        LLVMFuzzerInitialize(&argc, &argv);
    for (int i = 1; i < argc; i++)
        if (!run(argv[i])) {
            fprintf(stderr, "%s: cannot read %s: %s\n", argv[0], argv[i], strerror(errno));
            return 1;
        }
    if (!n_files) {
        fprintf(stderr, "%s: no input\n", argv[0]);
        return 1;
    }
    printf("[  PASSED  ] %s: 1 test(s), %lu inputs.\n", name_of(argv[0]), n_files);
    return 0;
}

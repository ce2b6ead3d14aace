// SPDX-License-Identifier: Apache-2.0
// System calls that no everyday tool makes, for the tests: `probe COMMAND ARGUMENTS`. What a command finds goes to
// standard output; a system call that fails is named with its errno on standard error, and the status is 1.
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_ANSWER (1 << 20)

struct kernel_dirent {
    uint64_t ino;
    int64_t off;
    uint16_t length;
    uint8_t type;
    char name[];
};

static _Noreturn void fail(const char *what) {
    fprintf(stderr, "%s: %s\n", what, strerrorname_np(errno));
    exit(1);
}

static int open_or_fail(const char *path, int flags) {
    int fd = open(path, flags | O_CLOEXEC, 0600);
    if (fd < 0)
        fail("open");
    return fd;
}

static void print_all(const char *bytes, size_t size) {
    if (fwrite(bytes, 1, size, stdout) != size || fflush(stdout))
        fail("stdout");
}

// Waits until somebody writes a line to standard input: the test says when to go on.
static void wait_for_word(const char *ready) {
    char line[16];
    puts(ready);
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin))
        exit(1);
}

// wait-exit PID: returns when that process is gone
static int wait_exit(char **argv) {
    int fd = (int)syscall(SYS_pidfd_open, atoi(argv[0]), 0);
    if (fd < 0)
        return errno == ESRCH ? 0 : (fail("pidfd_open"), 1);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    return poll(&p, 1, -1) == 1 ? 0 : (fail("poll"), 1);
}

// Prints what a descriptor holds from its beginning, however the file counts offsets.
static void print_from_start(int fd) {
    char *bytes = malloc(MAX_ANSWER);
    off_t at = 0;
    for (ssize_t n; at < MAX_ANSWER && (n = pread(fd, bytes, MAX_ANSWER, at)) != 0; at += n) {
        if (n < 0)
            fail("pread");
        print_all(bytes, (size_t)n);
    }
    free(bytes);
}

// command FILE PIECE...: writes the pieces one by one through one descriptor ("\n" is a newline), then prints the answer
// that this descriptor gives. The first line of the output is the errno of the last write, or 0.
static int command(char **argv) {
    int fd = open_or_fail(argv[0], O_RDWR), err = 0;
    for (char **piece = argv + 1; *piece && !err; piece++) {
        const char *text = strcmp(*piece, "\\n") ? *piece : "\n";
        if (write(fd, text, strlen(text)) < 0)
            err = errno;
    }
    puts(err ? strerrorname_np(err) : "0");
    fflush(stdout);
    print_from_start(fd);
    return close(fd) ? (fail("close"), 1) : 0;
}

// raw FILE: standard input in one write, then close; prints both errnos
static int raw(char **argv) {
    char *bytes = malloc(MAX_ANSWER);
    size_t size = fread(bytes, 1, MAX_ANSWER, stdin);
    int fd = open_or_fail(argv[0], O_WRONLY);
    int written = write(fd, bytes, size) < 0 ? errno : 0, closed = close(fd) ? errno : 0;
    printf("write %s\nclose %s\n", written ? strerrorname_np(written) : "0", closed ? strerrorname_np(closed) : "0");
    free(bytes);
    return written || closed;
}

// hold FILE TEXT: writes a text without a newline, says `written`, and keeps the descriptor until it is killed or told on
static int hold(char **argv) {
    int fd = open_or_fail(argv[0], O_WRONLY);
    if (write(fd, argv[1], strlen(argv[1])) < 0)
        fail("write");
    wait_for_word("written");
    return close(fd) ? (fail("close"), 1) : 0;
}

// children FILE TEXT N: writes the text, forks N children that close the descriptor (or just end), then closes it
static int children(char **argv) {
    int fd = open_or_fail(argv[0], O_WRONLY), n = atoi(argv[2]);
    if (write(fd, argv[1], strlen(argv[1])) < 0)
        fail("write");
    for (int i = 0; i < n; i++) {
        pid_t pid = fork();
        if (pid < 0)
            fail("fork");
        if (pid == 0)
            _exit(i % 2 ? (close(fd) ? 1 : 0) : 0);
        if (waitpid(pid, NULL, 0) < 0)
            fail("waitpid");
    }
    wait_for_word("children-gone");
    return close(fd) ? (fail("close"), 1) : 0;
}

static void print_entries(const char *buf, long size) {
    for (long at = 0; at < size;) {
        const struct kernel_dirent *d = (const void *)(buf + at);
        printf("%llu %s\n", (unsigned long long)d->ino, d->name);
        at += d->length;
    }
}

// getdents DIR BUFFER_SIZE [pause]: `inode name` lines by getdents64 with a buffer of that size. With `pause` the first
// bufferful is followed by a line `paused`, and the rest waits for a word on standard input.
static int getdents(char **argv) {
    int fd = open_or_fail(argv[0], O_RDONLY | O_DIRECTORY), pause_once = argv[2] != NULL;
    size_t size = (size_t)atoi(argv[1]);
    char *buf = malloc(size);
    for (long n; (n = syscall(SYS_getdents64, fd, buf, size)) != 0;) {
        if (n < 0)
            fail("getdents64");
        print_entries(buf, n);
        if (pause_once)
            wait_for_word("paused");
        pause_once = 0;
    }
    free(buf);
    return 0;
}

// getdents-shared DIR BUFFER_SIZE: the same through two descriptors of one open directory, in turn
static int getdents_shared(char **argv) {
    int fds[2] = {open_or_fail(argv[0], O_RDONLY | O_DIRECTORY)};
    if ((fds[1] = dup(fds[0])) < 0)
        fail("dup");
    size_t size = (size_t)atoi(argv[1]);
    char *buf = malloc(size);
    long n;
    for (int i = 0; (n = syscall(SYS_getdents64, fds[i], buf, size)) > 0; i = !i)
        print_entries(buf, n);
    free(buf);
    return n < 0 ? (fail("getdents64"), 1) : 0;
}

// seekdir DIR: for each position, going there again must give the entry that followed it; then rewinddir must give all again
static int check_seekdir(char **argv) {
    DIR *dir = opendir(argv[0]);
    if (!dir)
        fail("opendir");
    long *positions = NULL;
    char(*names)[256] = NULL;
    size_t n = 0;
    for (struct dirent *d;; n++) {
        positions = realloc(positions, (n + 1) * sizeof *positions);
        names = realloc(names, (n + 1) * sizeof *names);
        positions[n] = telldir(dir);
        if (!(d = readdir(dir)))
            break;
        strcpy(names[n], d->d_name);
    }
    for (size_t i = n; i-- > 0;) {
        seekdir(dir, positions[i]);
        struct dirent *d = readdir(dir);
        if (!d || strcmp(d->d_name, names[i])) {
            printf("position %zu: %s instead of %s\n", i, d ? d->d_name : "the end", names[i]);
            return 1;
        }
    }
    rewinddir(dir);
    size_t again = 0;
    while (readdir(dir))
        again++;
    printf("%zu %zu\n", n, again);
    return again != n;
}

// mmap FILE shared|private [pause]: the file's bytes through a mapping; with `pause` the mapping waits for a word first
static int map(char **argv) {
    int fd = open_or_fail(argv[0], O_RDONLY);
    struct stat st;
    if (fstat(fd, &st))
        fail("fstat");
    int flags = strcmp(argv[1], "shared") ? MAP_PRIVATE : MAP_SHARED;
    char *bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, flags, fd, 0);
    if (bytes == MAP_FAILED)
        fail("mmap");
    if (argv[2])
        wait_for_word("mapped");
    print_all(bytes, (size_t)st.st_size);
    return 0;
}

// sendfile FILE and copy-range FILE TO
static int send_file(char **argv) {
    int fd = open_or_fail(argv[0], O_RDONLY);
    for (ssize_t n; (n = sendfile(STDOUT_FILENO, fd, NULL, 1 << 20)) != 0;)
        if (n < 0)
            fail("sendfile");
    return 0;
}

static int copy_range(char **argv) {
    int from = open_or_fail(argv[0], O_RDONLY), to = open_or_fail(argv[1], O_WRONLY | O_CREAT | O_TRUNC);
    for (ssize_t n; (n = copy_file_range(from, NULL, to, NULL, 1 << 20, 0)) != 0;)
        if (n < 0)
            fail("copy_file_range");
    return 0;
}

// seek-hole FILE: size, the first hole, the first data
static int seek_hole(char **argv) {
    int fd = open_or_fail(argv[0], O_RDONLY);
    off_t end = lseek(fd, 0, SEEK_END), hole = lseek(fd, 0, SEEK_HOLE);
    if (hole < 0)
        return puts(strerrorname_np(errno)) < 0;
    return printf("%lld %lld %lld\n", (long long)end, (long long)hole, (long long)lseek(fd, 0, SEEK_DATA)) < 0;
}

// open FILE r|w|rw|x|a: does it open?
static int try_open(char **argv) {
    const char *how = argv[1];
    int flags = !strcmp(how, "r")    ? O_RDONLY
                : !strcmp(how, "rw") ? O_RDWR
                : !strcmp(how, "x")  ? O_RDWR | O_CREAT | O_EXCL
                : !strcmp(how, "a")  ? O_WRONLY | O_APPEND
                                     : O_WRONLY;
    return close(open_or_fail(argv[0], flags));
}

static void print_events(int fd, short events, int timeout) {
    struct pollfd p = {.fd = fd, .events = events};
    if (poll(&p, 1, timeout) < 0)
        fail("poll");
    printf("events%s%s%s%s\n", p.revents & POLLIN ? " in" : "", p.revents & POLLOUT ? " out" : "", p.revents & POLLPRI ? " pri" : "",
           p.revents & POLLERR ? " err" : "");
    fflush(stdout);
}

// poll FILE in|pri: opens the file and reads it to its end; which events there are now; waits for that one, says which came,
// and prints the file
static int wait_events(char **argv) {
    char bytes[4096];
    int fd = open_or_fail(argv[0], O_RDONLY);
    short wanted = strcmp(argv[1], "in") ? POLLPRI : POLLIN;
    while (read(fd, bytes, sizeof bytes) > 0) {
    }
    print_events(fd, POLLIN | POLLOUT | POLLPRI, 0);
    print_events(fd, wanted, -1);
    print_events(fd, POLLIN | POLLOUT | POLLPRI, 0);
    print_from_start(fd);
    print_events(fd, POLLIN | POLLOUT | POLLPRI, 0);
    return 0;
}

// poll-own FILE LINE: a child writes the line through a descriptor that the parent polls, once it is told that the command runs
static int poll_own(char **argv) {
    int fd = open_or_fail(argv[0], O_RDWR);
    pid_t pid = fork();
    if (pid < 0)
        fail("fork");
    if (pid == 0)
        _exit(dprintf(fd, "%s\n", argv[1]) < 0);
    wait_for_word("writing");
    print_events(fd, POLLIN | POLLOUT | POLLPRI, 0);
    print_events(fd, POLLIN, -1);
    print_from_start(fd);
    return waitpid(pid, NULL, 0) < 0;
}

// follow FILE: what there is to read, then `end`; at each word on standard input what has come since
static int follow(char **argv) {
    char bytes[4096];
    int fd = open_or_fail(argv[0], O_RDONLY);
    for (;;) {
        for (ssize_t n; (n = read(fd, bytes, sizeof bytes)) != 0;) {
            if (n < 0)
                fail("read");
            print_all(bytes, (size_t)n);
        }
        wait_for_word("end");
    }
}

// receive PATH: binds a datagram socket there, says `bound`, and prints the first message that comes
static int receive(char **argv) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char bytes[4096];
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || strlen(argv[0]) >= sizeof address.sun_path)
        fail("socket");
    strcpy(address.sun_path, argv[0]);
    if (bind(fd, (struct sockaddr *)&address, sizeof address))
        fail("bind");
    puts("bound");
    fflush(stdout);
    ssize_t n = recv(fd, bytes, sizeof bytes, 0);
    if (n < 0)
        fail("recv");
    print_all(bytes, (size_t)n);
    return puts("") < 0;
}

// truncate FILE SIZE, without opening it
static int truncate_path(char **argv) {
    if (truncate(argv[0], atol(argv[1])))
        fail("truncate");
    return 0;
}

static const struct {
    const char *name;
    int (*run)(char **argv);
    int args;
} COMMANDS[] = {
    {"wait-exit", wait_exit, 1},
    {"command", command, 2},
    {"raw", raw, 1},
    {"hold", hold, 2},
    {"getdents-shared", getdents_shared, 2},
    {"children", children, 3},
    {"getdents", getdents, 2},
    {"seekdir", check_seekdir, 1},
    {"mmap", map, 2},
    {"sendfile", send_file, 1},
    {"copy-range", copy_range, 2},
    {"seek-hole", seek_hole, 1},
    {"open", try_open, 2},
    {"truncate", truncate_path, 2},
    {"poll", wait_events, 2},
    {"poll-own", poll_own, 2},
    {"follow", follow, 1},
    {"receive", receive, 1},
};

int main(int argc, char **argv) {
    for (size_t i = 0; argc > 1 && i < sizeof COMMANDS / sizeof *COMMANDS; i++)
        if (!strcmp(argv[1], COMMANDS[i].name) && argc - 2 >= COMMANDS[i].args)
            return COMMANDS[i].run(argv + 2);
    fputs("probe: no such command, or too few arguments\n", stderr);
    return 2;
}

/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the fuzz targets share. A target is a program each: LLVMFuzzerTestOneInput for libFuzzer and AFL++ (make fuzz), and
 * the same with run.c, which runs files (make fuzz-corpus). Beyond "nothing crashes" each target knows what must hold of
 * whatever was accepted, and says so by FUZZ_MUST.
 */
#ifndef LFS_TESTS_FUZZ_FUZZ_H
#define LFS_TESTS_FUZZ_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "util/arena.h"
#include "util/cleanup.h"
#include "util/error.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
/* Of targets that need something on the disk; run.c and libFuzzer call it once, before the first input. */
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* A sanitizer's report says where; this says what. */
#define FUZZ_MUST(condition)                                                                                           \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: does not hold: %s\n", __FILE__, __LINE__, #condition);                             \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

/* A refusal has its code, its errno and a sentence; nothing else is a failure. */
#define FUZZ_REFUSAL(result, err)                                                                                      \
    FUZZ_MUST((result) < 0 && (err).code != LFS_OK && (err).sys_errno == -(result) && (err).message[0])

/* Memory that an input of `size` bytes may make a parser take: an empty message of 2 bytes is a struct of some 200. */
#define FUZZ_MEMORY(size) ((size_t)(1 << 20) + (size_t)512 * (size))

static inline uint64_t fuzz_number(const uint8_t **data, size_t *size, size_t bytes) {
    uint64_t number = 0;
    for (size_t i = 0; i < bytes && *size; i++, (*data)++, (*size)--)
        number |= (uint64_t) * *data << (8 * i);
    return number;
}

#endif

// SPDX-License-Identifier: Apache-2.0
// What the libraries for LD_PRELOAD share. Include it after _GNU_SOURCE is defined.
#ifndef TESTS_CRASH_PRELOAD_H
#define TESTS_CRASH_PRELOAD_H

#include <dlfcn.h>
#include <stdarg.h>
#include <sys/syscall.h>
#include <unistd.h>

#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))
#define raw(...) NEXT(syscall)(__VA_ARGS__) // the library must not see its own calls

// A call that the C library has no function for comes as syscall(2): its arguments, and it itself.
#define SYSCALL_ARGUMENTS(a, number)                                                                                   \
    long a[6];                                                                                                         \
    va_list list_of_##a;                                                                                               \
    va_start(list_of_##a, number);                                                                                     \
    for (int i_of_##a = 0; i_of_##a < 6; i_of_##a++)                                                                   \
        a[i_of_##a] = va_arg(list_of_##a, long);                                                                       \
    va_end(list_of_##a)
#define raw_call(number, a) raw(number, a[0], a[1], a[2], a[3], a[4], a[5])

#endif

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* At which points a thread may be made to call pthread_create. Needs no root. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "trace/inject_stack.h"

#define OWN                                                                                        \
	{                                                                                          \
		CODE_OTHER, NULL                                                                   \
	}
#define EXE                                                                                        \
	{                                                                                          \
		CODE_MIXED, NULL                                                                   \
	}
#define LD                                                                                         \
	{                                                                                          \
		CODE_LDSO, NULL                                                                    \
	}
#define ALLOC                                                                                      \
	{                                                                                          \
		CODE_ALLOCATOR, NULL                                                               \
	}
#define VDSO                                                                                       \
	{                                                                                          \
		CODE_VDSO, NULL                                                                    \
	}
#define NOFILE                                                                                     \
	{                                                                                          \
		CODE_UNKNOWN, NULL                                                                 \
	}
#define C(name)                                                                                    \
	{                                                                                          \
		CODE_LIBC, name                                                                    \
	}
#define INNER  C(NULL) /* a function that is not exported */
#define MAIN   INNER, C("__libc_start_main"), OWN
#define THREAD INNER, C("clone3")

struct row {
	const char *why; /* a part of it; NULL: safe */
	struct inject_frame frames[10];
	size_t n;
};

#define SAFE(...)                                                                                  \
	{                                                                                          \
		NULL, {__VA_ARGS__},                                                               \
		    sizeof((struct inject_frame[]){__VA_ARGS__}) / sizeof(struct inject_frame)     \
	}
#define NOT(why, ...)                                                                              \
	{                                                                                          \
		why, {__VA_ARGS__},                                                                \
		    sizeof((struct inject_frame[]){__VA_ARGS__}) / sizeof(struct inject_frame)     \
	}

static const struct row rows[] = {
    /* the program's own code, on the first thread and on another */
    SAFE(OWN, OWN, MAIN),
    SAFE(OWN, THREAD),
    /* waits, by whatever name they were found */
    SAFE(C("poll"), OWN, MAIN),
    SAFE(C("__poll"), OWN, MAIN),
    SAFE(INNER, INNER, C("pthread_cond_timedwait"), OWN, THREAD),
    SAFE(C("clock_nanosleep"), C("nanosleep"), OWN, MAIN),
    SAFE(VDSO, C("clock_gettime"), OWN, MAIN),
    SAFE(VDSO, OWN, MAIN),
    /* read() inside of fgets() */
    SAFE(C("__read"), INNER, INNER, C("fgets"), OWN, MAIN),
    /* a comparison of qsort's */
    SAFE(OWN, INNER, C("qsort"), OWN, MAIN),
    SAFE(OWN, OWN, INNER, C("pthread_once"), OWN, THREAD),
    /* allocation */
    NOT("inside the C library", INNER, C("malloc"), OWN, MAIN),
    NOT("inside the C library", C("mmap"), INNER, INNER, C("calloc"), OWN, MAIN),
    NOT("inside the C library", INNER, C("free"), OWN, THREAD),
    NOT("inside the C library", INNER, INNER, C("printf"), OWN, MAIN),
    NOT("inside the C library", C("madvise"), C("free"), OWN, MAIN),
    NOT("inside the C library", C("write"), INNER, C("fprintf"), C("malloc_info"), OWN, MAIN),
    /* a lock of malloc's looks like any other wait to the kernel */
    NOT("inside the C library", INNER, INNER, C("malloc"), C("fopen"), OWN, MAIN),
    NOT("an allocator", C("nanosleep"), ALLOC, OWN, THREAD),
    NOT("an allocator", ALLOC, OWN, MAIN),
    NOT("allocator of its own", EXE, EXE, MAIN),
    NOT("allocator of its own", INNER, C("pthread_mutex_lock"), EXE, MAIN),
    NOT("allocator of its own", VDSO, C("clock_gettime"), EXE, MAIN),
    SAFE(C("epoll_wait"), EXE, EXE, MAIN),
    /* the dynamic linker */
    NOT("dynamic linker", LD, OWN, MAIN),
    NOT("dynamic linker", C("read"), LD, LD, C("dlopen"), OWN, MAIN),
    NOT("dynamic linker", INNER, C("pthread_mutex_lock"), LD, C("dlopen"), OWN, THREAD),
    NOT("dynamic linker", OWN, LD, LD, C("dlopen"), OWN, MAIN),
    /* called by the C library with something held */
    NOT("has called it", OWN, INNER, C("dl_iterate_phdr"), OWN, MAIN),
    NOT("has called it", OWN, INNER, OWN, MAIN), /* a signal handler */
    NOT("has called it", C("nanosleep"), OWN, INNER, OWN, MAIN),
    NOT("has called it", OWN, INNER, C("malloc"), OWN, MAIN), /* one in malloc */
    NOT("about to end", OWN, INNER, C("exit"), INNER, C("__libc_start_main"), OWN),
    NOT("about to end", OWN, C("__call_tls_dtors"), THREAD),
    /* threads that begin, end, or are the library's own */
    NOT("all inside", THREAD),
    NOT("all inside", C("poll"), INNER, THREAD),
    /* what is not known */
    NOT("of no file", NOFILE, OWN, MAIN),
    NOT("of no file", OWN, VDSO, OWN, MAIN),
    NOT("inside the C library", INNER, OWN, MAIN),
};

static void each_point(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const char *why = inject_stack__judge(rows[i].frames, rows[i].n);

		if (!why != !rows[i].why || (why && !strstr(why, rows[i].why)))
			fail_msg("row %zu: %s, expected %s", i, why ? why : "safe",
				 rows[i].why ? rows[i].why : "safe");
	}
}

static void nothing_is_not_safe(void **state)
{
	(void)state;
	assert_non_null(inject_stack__judge(rows[0].frames, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(each_point),
	    cmocka_unit_test(nothing_is_not_safe),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A column of names, cut so that those that differ still do. */
#ifndef QBPF_OUT_NAMES_H
#define QBPF_OUT_NAMES_H

#include <stdbool.h>
#include <stddef.h>

/*
 * fits[i] becomes names[i], which is printable, cut to room[i] columns, malloc'ed. Of names that would
 * look alike (cudaMemcpy2DAsync, cudaMemcpy3DAsync) another piece is left out. *alike: how many of them
 * look like another one all the same. -ENOMEM: free what is in fits.
 */
int names__fit(const char *const *names, const unsigned int *room, size_t n, bool utf8, char **fits,
	       size_t *alike);

#endif

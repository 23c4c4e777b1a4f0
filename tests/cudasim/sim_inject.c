/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sim_inject.c - a library for CUDA_INJECTION64_PATH that says that it was called */
#include <stdio.h>

int InitializeInjection(void);
int InitializeInjection(void)
{
	fprintf(stderr, "injected\n");
	return 1;
}

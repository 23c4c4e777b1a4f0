// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A library that is opened late, with functions under CUDA's names: what qbpf does with them needs no
 * toolkit to be tested. Every fourth copy fails.
 */
#include <stddef.h>

struct dim3 {
	unsigned int x, y, z;
};

static int n_copies;

int cudaMalloc(void **p, size_t size);
int cudaMalloc(void **p, size_t size)
{
	*p = NULL;
	return size == 0;
}

int cudaMemcpy(void *to, const void *from, size_t size, int kind);
int cudaMemcpy(void *to, const void *from, size_t size, int kind)
{
	(void)to;
	(void)from;
	(void)size;
	(void)kind;
	return n_copies++ % 4 ? 0 : 719;
}

int cudaLaunchKernel(const void *kernel, struct dim3 grid, struct dim3 block, void **args,
		     size_t shared, void *stream);
int cudaLaunchKernel(const void *kernel, struct dim3 grid, struct dim3 block, void **args,
		     size_t shared, void *stream)
{
	(void)block;
	(void)args;
	(void)shared;
	(void)stream;
	return !kernel || !grid.x;
}

void late_kernel(void);
void late_kernel(void)
{
}

void plugin_work(long n);
void plugin_work(long n)
{
	void *p;

	cudaMalloc(&p, 4096);
	for (long i = 0; i < n; i++) {
		cudaMemcpy(NULL, NULL, 100, 1);
		cudaLaunchKernel((const void *)late_kernel, (struct dim3){2, 3, 4},
				 (struct dim3){64, 1, 1}, NULL, 0, NULL);
	}
}

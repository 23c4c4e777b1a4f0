/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * kernels.c - kernels: their names, how long they run, what they do
 *
 * A kernel comes from __cudaRegisterFunction (code of nvcc), from the entries of a PTX text, or is
 * a plain host function that was handed to cudaLaunchKernel. No device code is run: a kernel lasts
 * as CUDASIM_KERNELS says, else as its parameter whose name ends in "_ns" says (PTX), else
 * kernel_ns; and what it does is done by the program's function cudasim_effect_NAME(void **args).
 */
#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"

static struct sim_kernel *kernels;

struct sim_kernel *kernel_new(const char *name, const void *stub)
{
	struct sim_kernel *k = calloc(1, sizeof(*k));
	char effect[256];

	if (!k)
		return NULL;
	k->name = strdup(name);
	if (!k->name) {
		free(k);
		return NULL;
	}
	k->stub = stub;
	k->n_params = -1;
	k->length_arg = -1;
	k->length_ns = (uint64_t)sim_config()->kernel_ns;
	sim_kernel_rule(name, &k->length_arg, &k->length_ns);
	snprintf(effect, sizeof(effect), "cudasim_effect_%s", name);
	*(void **)&k->effect = dlsym(RTLD_DEFAULT, effect);
	k->next = kernels;
	kernels = k;
	return k;
}

struct sim_kernel *kernel_find(const void *func)
{
	Dl_info info;
	struct sim_kernel *k;

	for (k = kernels; k; k = k->next) {
		if (k == func || (k->stub && k->stub == func))
			return k;
	}
	if (!func || !dladdr(func, &info))
		return NULL;
	return kernel_new(info.dli_sname && info.dli_saddr == func ? info.dli_sname : "unnamed",
			  func);
}

void sim_kernel_register(const char *name, const void *stub)
{
	pthread_mutex_lock(&sim_lock);
	kernel_new(name, stub);
	pthread_mutex_unlock(&sim_lock);
}

CUfunction sim_kernel_of(const void *func)
{
	struct sim_kernel *k;

	pthread_mutex_lock(&sim_lock);
	k = kernel_find(func);
	pthread_mutex_unlock(&sim_lock);
	return (CUfunction)k;
}

uint64_t kernel_length(const struct sim_kernel *k, void **args)
{
	uint64_t v = 0;

	if (k->length_arg < 0)
		return k->length_ns;
	if (!args || (k->n_params >= 0 && k->length_arg >= k->n_params))
		return (uint64_t)sim_config()->kernel_ns;
	memcpy(&v, args[k->length_arg],
	       k->n_params >= 0 && k->param_size[k->length_arg] == 4 ? 4 : 8);
	return v;
}

/* --- PTX -------------------------------------------------------------------------------------- */

/* One ".param .u64 NAME" of the list; NULL: none. */
static const char *ptx_param(const char *s, struct sim_kernel *k, bool ruled)
{
	const char *name, *p = strstr(s, ".param"), *close = strchr(s, ')');
	size_t len;
	int bits = 0;

	if (!p || !close || p > close || k->n_params == SIM_PARAMS)
		return NULL;
	p = strchr(p + 1, '.');
	if (!p || sscanf(p, ".%*[a-z]%d", &bits) != 1)
		return NULL;
	for (name = p; *name && !isspace((unsigned char)*name); name++)
		;
	while (isspace((unsigned char)*name))
		name++;
	for (len = 0; isalnum((unsigned char)name[len]) || name[len] == '_' || name[len] == '$';
	     len++)
		;
	if (!ruled && len > 3 && !strncmp(name + len - 3, "_ns", 3))
		k->length_arg = k->n_params;
	k->param_size[k->n_params++] = (uint8_t)(bits / 8);
	return name + len;
}

static struct sim_kernel *ptx_entry(const char *s)
{
	char name[128];
	struct sim_kernel *k;
	uint64_t ns;
	int arg;

	if (sscanf(s, ".entry %127[A-Za-z0-9_$]", name) != 1)
		return NULL;
	k = kernel_new(name, NULL);
	s = strchr(s, '(');
	if (!k || !s)
		return k;
	k->n_params = 0;
	while (s)
		s = ptx_param(s, k, sim_kernel_rule(name, &arg, &ns));
	return k;
}

struct sim_library *library_new(const char *image)
{
	struct sim_library *lib = calloc(1, sizeof(*lib));

	for (const char *s = lib ? strstr(image, ".entry") : NULL; s; s = strstr(s + 1, ".entry")) {
		struct sim_kernel *k = ptx_entry(s);
		void *more = k ? realloc(lib->kernels, (lib->n + 1) * sizeof(k)) : NULL;

		if (!more)
			continue;
		lib->kernels = more;
		lib->kernels[lib->n++] = k;
	}
	return lib;
}

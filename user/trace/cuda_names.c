// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What a launched kernel is called; see cuda_names.h. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/cuda_names.h"

struct handle {
	struct qbpf_cuda_handle_key key;
	struct qbpf_cuda_handle of;
};

struct name {
	uint64_t kernel, caller;
	uint32_t tgid;
	bool known;
	size_t objects, handles; /* how many there were when it was looked for in vain */
	char *text;
};

struct cuda_names {
	struct handle *handles;
	size_t nhandles;
	struct name **names;
	size_t nnames;
};

struct cuda_names *cuda_names__new(void)
{
	return calloc(1, sizeof(struct cuda_names));
}

void cuda_names__free(struct cuda_names *n)
{
	if (!n)
		return;
	for (size_t i = 0; i < n->nnames; i++) {
		free(n->names[i]->text);
		free(n->names[i]);
	}
	free(n->names);
	free(n->handles);
	free(n);
}

static struct handle *find_handle(const struct cuda_names *n, uint32_t tgid, uint64_t handle)
{
	for (size_t i = 0; i < n->nhandles; i++)
		if (n->handles[i].key.handle == handle && n->handles[i].key.tgid == tgid)
			return &n->handles[i];
	return NULL;
}

int cuda_names__handle(struct cuda_names *n, const struct qbpf_cuda_handle_key *key,
		       const struct qbpf_cuda_handle *handle)
{
	struct handle *h = find_handle(n, key->tgid, key->handle), *bigger;

	if (!h) {
		bigger = reallocarray(n->handles, n->nhandles + 1, sizeof(*bigger));
		if (!bigger)
			return -ENOMEM;
		n->handles = bigger;
		h = &bigger[n->nhandles++];
		h->key = *key;
	}
	h->of = *handle;
	h->of.name[sizeof(h->of.name) - 1] = '\0';
	return 0;
}

static char *demangled(const char *name)
{
	char *text = symbol_demangle(name);

	return text ? text : strdup(name);
}

/*
 * The function around an address of the process; NULL: none is known. The text is the table's, and
 * goes with the images.
 */
static const char *function_at(struct target *t, uint32_t tgid, uint64_t addr, bool start)
{
	const struct elf_func *f;
	uint64_t off, vaddr;
	uint32_t object;
	struct err why;

	if (target__find(t, (pid_t)tgid, addr, &object, &off) ||
	    target__read_one(t, object, TARGET_FUNCS, &why) || !t->objects[object].img ||
	    !t->objects[object].funcs ||
	    elf_image__off_to_addr(t->objects[object].img, off, &vaddr))
		return NULL;
	f = func_table__find_addr(t->objects[object].funcs, vaddr);
	if (!f || (start && f->addr != vaddr))
		return NULL;
	return func_table__demangled(t->objects[object].funcs,
				     (size_t)(f - t->objects[object].funcs->funcs));
}

/* nvcc's "__device_stub__Z5alphaPfi(float*, int)" is alpha(float*, int). NULL: it is no such. */
static char *stub_kernel(const char *function)
{
	static const char prefix[] = "__device_stub_";
	const char *at = strstr(function, prefix);
	char *mangled, *text;
	size_t len;

	if (!at)
		return NULL;
	at += sizeof(prefix) - 1;
	len = strcspn(at, "(");
	mangled = strndup(at, len);
	if (!mangled)
		return NULL;
	text = demangled(mangled);
	free(mangled);
	return text;
}

#define ALIASES_MAX 4

/* Sets *known when what is returned is a name. */
static char *find_name(struct cuda_names *n, struct target *t, const struct name *want, bool *known)
{
	const char *function, *by = NULL;
	uint64_t kernel = want->kernel;
	const struct handle *h;
	char *text = NULL;

	*known = true;
	for (int i = 0; i < ALIASES_MAX; i++) {
		h = find_handle(n, want->tgid, kernel);
		if (!h)
			break;
		if (h->of.name[0])
			return demangled(h->of.name);
		kernel = h->of.kernel;
		if (!h->of.alias)
			break;
	}
	function = function_at(t, want->tgid, kernel, true);
	if (function) {
		text = stub_kernel(function);
		return text ? text : strdup(function);
	}
	by = function_at(t, want->tgid, want->caller, false);
	text = by ? stub_kernel(by) : NULL;
	if (text)
		return text;
	*known = false;
	if (asprintf(&text, by ? "0x%" PRIx64 " (by %s)" : "0x%" PRIx64, want->kernel, by) < 0)
		return NULL;
	return text;
}

static struct name *cached(struct cuda_names *n, uint32_t tgid, uint64_t kernel, uint64_t caller)
{
	for (size_t i = 0; i < n->nnames; i++) {
		struct name *m = n->names[i];

		if (m->kernel == kernel && m->caller == caller && m->tgid == tgid)
			return m;
	}
	return NULL;
}

static struct name *append(struct cuda_names *n)
{
	struct name **bigger = reallocarray(n->names, n->nnames + 1, sizeof(*bigger));
	struct name *m = calloc(1, sizeof(*m));

	if (bigger)
		n->names = bigger;
	if (!bigger || !m) {
		free(m);
		return NULL;
	}
	n->names[n->nnames++] = m;
	return m;
}

const char *cuda_names__get(struct cuda_names *n, struct target *t, uint32_t tgid, uint64_t kernel,
			    uint64_t caller, bool *known)
{
	struct name *m = cached(n, tgid, kernel, caller);
	char *text;

	if (!m) {
		m = append(n);
		if (!m)
			return NULL;
		m->tgid = tgid;
		m->kernel = kernel;
		m->caller = caller;
	} else if (m->known ||
		   (m->text && m->objects == t->nobjects && m->handles == n->nhandles)) {
		*known = m->known;
		return m->text;
	}
	text = find_name(n, t, m, &m->known);
	if (text) {
		free(m->text);
		m->text = text;
	}
	m->objects = t->nobjects;
	m->handles = n->nhandles;
	*known = m->known;
	return m->text;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sites.c - what both forms of `qbpf list` say about a site. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "out/sites.h"

const char *role_name(enum qbpf_role role)
{
	switch (role) {
	case QBPF_ROLE_NONE:
		break;
	case QBPF_ROLE_BEGIN:
		return "begin";
	case QBPF_ROLE_END:
		return "end";
	case QBPF_ROLE_INSTANT:
		return "instant";
	case QBPF_ROLE_VALUE:
		return "value";
	case QBPF_ROLE_KEY_BEGIN:
		return "key begin";
	case QBPF_ROLE_KEY_END:
		return "key end";
	case QBPF_ROLE_ENTRY:
	case QBPF_ROLE_ENTRY_INSN:
		return "entry";
	case QBPF_ROLE_RETURN:
		return "return";
	case QBPF_ROLE_RET_INSN:
		return "ret";
	case QBPF_ROLE_TAIL_JUMP:
		return "tail jump";
	}
	return "none";
}

const struct usdt_marker *site_marker(const struct plan_site *site, const struct plan_object *objs,
				      size_t nobjs)
{
	const struct usdt_table *t = site->object < nobjs ? objs[site->object].markers : NULL;

	for (size_t i = 0; t && i < t->n; i++)
		if (t->markers[i].addr == site->found_addr)
			return &t->markers[i];
	return NULL;
}

const char *build_id_text(const struct elf_image *img, char *buf)
{
	const struct elf_info *info = img ? elf_image__info(img) : NULL;

	if (!info || !info->build_id_len)
		return NULL;
	for (size_t i = 0; i < info->build_id_len; i++)
		sprintf(buf + 2 * i, "%02x", info->build_id[i]);
	return buf;
}

const char *machine_name(enum elf_machine m)
{
	return m == ELF_X86_64 ? "x86-64" : m == ELF_AARCH64 ? "aarch64" : "other machine";
}

int span_sites__make(struct span_sites *v, const struct plan *p)
{
	size_t *next = calloc(p->nspans + 1, sizeof(*next));

	v->first = calloc(p->nspans + 2, sizeof(*v->first));
	v->sites = calloc(p->nsites + 1, sizeof(*v->sites));
	if (!next || !v->first || !v->sites) {
		free(next);
		span_sites__clear(v);
		return -ENOMEM;
	}
	for (size_t i = 0; i < p->nsites; i++)
		if (p->sites[i].span >= 1 && p->sites[i].span <= p->nspans)
			v->first[p->sites[i].span]++;
	for (size_t i = 0; i < p->nspans; i++) {
		v->first[i + 1] += v->first[i];
		next[i] = v->first[i];
	}
	for (size_t i = 0; i < p->nsites; i++)
		if (p->sites[i].span >= 1 && p->sites[i].span <= p->nspans)
			v->sites[next[p->sites[i].span - 1]++] = &p->sites[i];
	free(next);
	return 0;
}

void span_sites__clear(struct span_sites *v)
{
	free(v->sites);
	free(v->first);
	v->sites = NULL;
	v->first = NULL;
}

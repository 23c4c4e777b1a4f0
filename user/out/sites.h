/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What both forms of `qbpf list` say about a site: its role, its marker, its price. */
#ifndef QBPF_OUT_SITES_H
#define QBPF_OUT_SITES_H

#include "plan/plan.h"

const char *role_name(enum qbpf_role role);
/* The marker at a site, NULL: none (a function's). */
const struct usdt_marker *site_marker(const struct plan_site *site, const struct plan_object *objs,
				      size_t nobjs);
/* A file's build ID in hexadecimal; buf holds 2 * BUILD_ID_MAX + 1. NULL: it has none. */
const char *build_id_text(const struct elf_image *img, char *buf);
const char *machine_name(enum elf_machine m);

/* The sites of each span, without a search for each: sites[first[i] .. first[i + 1]) are those of
 * the span with index i. */
struct span_sites {
	const struct plan_site **sites;
	size_t *first;
};
int span_sites__make(struct span_sites *v, const struct plan *p);
void span_sites__clear(struct span_sites *v);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What the parts of preflight share. Private to plan/. */
#ifndef QBPF_PLAN_PREFLIGHT_H
#define QBPF_PLAN_PREFLIGHT_H

#include "plan/build.h"
#include "plan/parts.h"

struct preflight {
	struct plan *plan;
	const struct plan_opts *opts;
	const struct plan_object *objs;
	size_t nobjs;
	const struct plan_process *proc;
	const struct plan_kernel *kernel;
	struct parts **parts; /* by object */
};

/* Sets verdict and reason; the text is printf's. */
void site__refuse(struct plan_site *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same for what --unsafe may overrule: then the site is armed with the reason kept. */
void site__doubt(const struct preflight *pf, struct plan_site *s, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void site__arm(const struct preflight *pf, struct plan_site *s, enum insn_class class);
/* At another address than the one that was found. */
void site__move(const struct preflight *pf, struct plan_site *s, uint64_t addr,
		enum insn_class class, const char *why);

/*
 * returns.c: how the end of the function whose entry is sites[i] is seen. Adds the sites of
 * the ends; refuses the entry when there is no safe way. May move p->sites.
 */
void preflight_returns(struct preflight *pf, size_t i, struct func_code *code);

#endif

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* What one span costs the target, from the classes of its sites. */
#include "plan/plan.h"

const char *price_class_name(enum price_class c)
{
	static const char *const names[PRICE_N] = {
	    [PRICE_NOP5] = "nop5",
	    [PRICE_EMULATED] = "emulated",
	    [PRICE_STEPPED] = "stepped",
	    [PRICE_URETPROBE] = "uretprobe",
	};

	return (size_t)c < PRICE_N ? names[c] : "?";
}

static bool is_end(enum qbpf_role r)
{
	return r == QBPF_ROLE_END || r == QBPF_ROLE_KEY_END || r == QBPF_ROLE_RETURN ||
	       r == QBPF_ROLE_RET_INSN || r == QBPF_ROLE_TAIL_JUMP;
}

/* A span passes one begin and one end; of several sites the dearest counts. */
uint64_t plan_span_price(const struct plan *p, uint32_t span, const uint64_t ns[PRICE_N])
{
	uint64_t begin = 0, end = 0, *side;
	const struct plan_site *s;
	size_t i;

	for (i = 0; i < p->nsites; i++) {
		s = &p->sites[i];
		if (s->span != span || s->verdict == VERDICT_REFUSED)
			continue;
		side = is_end(s->role) ? &end : &begin;
		if (ns[s->price] > *side)
			*side = ns[s->price];
	}
	return begin + end;
}

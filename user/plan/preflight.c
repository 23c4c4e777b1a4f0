/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Preflight: every site gets its verdict before anything is armed. The order of the questions is
 * that of harm: is it code, is it the start of an instruction, does the kernel take it, could it
 * overwrite live data, and only then what it costs.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan/preflight.h"

static void set_reason(struct plan_site *s, const char *prefix, const char *fmt, va_list ap)
{
	char text[300];
	int n = snprintf(text, sizeof(text), "%s", prefix);

	vsnprintf(text + n, sizeof(text) - n, fmt, ap);
	free(s->reason);
	s->reason = strdup(text);
}

void site__refuse(struct plan_site *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	set_reason(s, "", fmt, ap);
	va_end(ap);
	s->verdict = VERDICT_REFUSED;
}

void site__doubt(const struct preflight *pf, struct plan_site *s, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	set_reason(s, pf->opts->unsafe ? "armed by --unsafe although " : "", fmt, ap);
	va_end(ap);
	s->verdict = pf->opts->unsafe ? VERDICT_ARM : VERDICT_REFUSED;
}

static enum price_class price_of(const struct preflight *pf, enum insn_class c)
{
	if (c == INSN_NOP5)
		return pf->kernel->nop5_optimised ? PRICE_NOP5 : PRICE_STEPPED;
	return c == INSN_EMULATED ? PRICE_EMULATED : PRICE_STEPPED;
}

void site__arm(const struct preflight *pf, struct plan_site *s, enum insn_class class)
{
	s->verdict = VERDICT_ARM;
	s->price = price_of(pf, class);
}

void site__move(const struct preflight *pf, struct plan_site *s, uint64_t addr,
		enum insn_class class, const char *why)
{
	uint64_t off;

	if (elf_image__addr_to_off(pf->objs[s->object].img, addr, &off)) {
		site__refuse(s, "0x%llx lies in no segment", (unsigned long long)addr);
		return;
	}
	/* Such an argument is told by its distance from where the probe fires. */
	if (s->has_arg && s->arg.rip_rel)
		s->arg.off += (int64_t)(s->addr - addr);
	s->addr = addr;
	s->off = off;
	s->price = price_of(pf, class);
	free(s->reason);
	s->reason = strdup(why);
	s->verdict = VERDICT_RELOCATED;
}

/* The range of the function that holds addr, or NULL. */
static const struct code_range *range_of(const struct func_code *code, uint64_t addr)
{
	size_t i;

	for (i = 0; i < code->n; i++)
		if (addr - code->ranges[i].addr < code->ranges[i].size)
			return &code->ranges[i];
	return NULL;
}

/*
 * To the 1-byte nop before the site, if that is an instruction (the byte may end another one) and
 * whoever passes one passes the other.
 */
static bool move_to_nop_before(const struct preflight *pf, struct plan_site *s,
			       struct func_code *code, const char *why)
{
	const struct elf_image *img = pf->objs[s->object].img;
	const struct code_range *r = range_of(code, s->addr - 1);
	const uint8_t *b;

	if (!r || elf_image__bytes(img, s->addr - 1, 1, &b) != 1 || *b != 0x90 ||
	    !insn_boundary(img, r->addr, s->addr - 1) ||
	    !insn_only_falls_through(img, code->ranges, code->n, s->addr))
		return false;
	site__move(pf, s, s->addr - 1, INSN_EMULATED, why);
	return true;
}

static const char off_nop5[] = "moved off a 5-byte nop: the program forks, and on this kernel a "
			       "forked child that runs such a probe dies";
static const char fork_kills[] = "the program forks, and on this kernel a forked child that runs a "
				 "probe on a 5-byte nop dies";

/*
 * Our own markers have a 1-byte nop before the lea that steps over the red zone; older ones only
 * the lea. No argument is another there.
 */
static void move_before_step(const struct preflight *pf, struct plan_site *s,
			     const struct func_code *code)
{
	const struct elf_image *img = pf->objs[s->object].img;
	uint64_t lea = s->addr - 5, nop = s->addr - 6;
	const struct code_range *r = range_of(code, nop);
	const uint8_t *b;

	if (r && elf_image__bytes(img, nop, 1, &b) == 1 && *b == 0x90 &&
	    insn_boundary(img, r->addr, nop) &&
	    insn_only_falls_through(img, code->ranges, code->n, lea) &&
	    insn_only_falls_through(img, code->ranges, code->n, s->addr))
		site__move(pf, s, nop, INSN_EMULATED, off_nop5);
	else
		site__move(pf, s, lea, INSN_STEPPED, off_nop5);
}

/*
 * Where the kernel's rewritten nop5 would kill a forked child (plan.h, nop5_fork_unsafe): to
 * an instruction that takes int3, emulated or single-stepped, which no fork minds.
 */
static void move_off_nop5(const struct preflight *pf, struct plan_site *s, struct func_code *code)
{
	const struct elf_image *img = pf->objs[s->object].img;
	uint64_t next = s->addr + 5;
	enum insn_class c;

	if (move_to_nop_before(pf, s, code, off_nop5))
		return;
	if (red_zone_stepped_over(img, s->addr)) {
		move_before_step(pf, s, code);
		return;
	}
	c = insn_classify(img, next, NULL);
	if (code->n && s->addr == code->ranges[0].addr && c != INSN_BAD && c != INSN_NOP5 &&
	    c != INSN_NOP10 && insn_only_falls_through(img, code->ranges, code->n, next)) {
		site__move(pf, s, next, c, off_nop5);
		return;
	}
	s->price = price_of(pf, INSN_NOP5);
	site__doubt(pf, s, "%s", fork_kills);
}

static bool fork_danger(const struct preflight *pf)
{
	return pf->kernel->nop5_optimised && pf->kernel->nop5_fork_unsafe && pf->proc->can_fork;
}

static void marker_on_nop5(const struct preflight *pf, struct plan_site *s, struct func_code *code)
{
	const struct elf_image *img = pf->objs[s->object].img;
	struct func_facts facts;

	if (fork_danger(pf)) {
		move_off_nop5(pf, s, code);
		return;
	}
	if (pf->kernel->nop5_optimised && code->n && !red_zone_stepped_over(img, s->addr) &&
	    !parts__facts(pf->parts[s->object], code, &facts))
		func_facts__clear(&facts);
	/* Where the function begins is a guess, nothing can be proved of it. */
	if (!pf->kernel->nop5_optimised ||
	    !red_zone_possible_ranges(img, code->ranges, code->guessed ? 0 : code->n, s->addr)) {
		site__arm(pf, s, INSN_NOP5);
		return;
	}
	if (move_to_nop_before(pf, s, code,
			       "moved to the 1-byte nop before a 5-byte nop, where this kernel's "
			       "probe would overwrite data below the stack pointer"))
		return;
	s->price = price_of(pf, INSN_NOP5);
	site__doubt(pf, s,
		    "a probe on its 5-byte nop overwrites what the function may keep below the "
		    "stack pointer (red zone); build with -mno-red-zone or qbpf/probe.h");
}

static void check_marker(const struct preflight *pf, struct plan_site *s, struct func_code *code)
{
	const struct elf_image *img = pf->objs[s->object].img;
	enum insn_class c = insn_classify(img, s->addr, NULL), next;

	switch (c) {
	case INSN_BAD:
		site__refuse(s, "the kernel probes no such instruction");
		break;
	case INSN_NOP10:
		if (!move_to_nop_before(pf, s, code,
					"moved to the nop before a 10-byte nop, which "
					"the kernel does not probe"))
			site__refuse(s, "a 10-byte nop, which the kernel does not probe");
		break;
	case INSN_NOP5:
		marker_on_nop5(pf, s, code);
		break;
	case INSN_ENDBR:
		next = insn_classify(img, s->addr + 4, NULL);
		if (code->n && next != INSN_BAD && next != INSN_NOP10 &&
		    (next != INSN_NOP5 || s->addr == code->ranges[0].addr) &&
		    insn_only_falls_through(img, code->ranges, code->n, s->addr + 4))
			site__move(pf, s, s->addr + 4, next, "moved behind endbr64");
		else
			site__arm(pf, s, c);
		break;
	default:
		site__arm(pf, s, c);
	}
}

/* Does anything jump back to where a function's entry would be probed? */
static void entry_loops(const struct elf_image *img, struct func_code *code, bool *entry,
			bool *past)
{
	struct func_facts facts;
	size_t i;

	*entry = *past = false;
	for (i = 0; i < code->n; i++)
		if (i || may_loop_to_entry(img, code->ranges[0].addr, code->ranges[0].size))
			break;
	if (i == code->n)
		return;
	if (func_facts__read_ranges(img, code->ranges, code->n, &facts)) {
		*entry = true;
		return;
	}
	*entry = facts.loops_to_entry;
	*past = facts.loops_past_endbr;
	func_facts__clear(&facts);
}

/*
 * Where a function's entry is best probed: behind an endbr64, which would be single-stepped,
 * and behind a nop5 that must not be rewritten. %rsp and the arguments are the same there.
 */
static void place_entry(const struct preflight *pf, struct plan_site *s, struct func_code *code,
			bool past_endbr_loops)
{
	const struct elf_image *img = pf->objs[s->object].img;
	uint64_t at = s->addr, end = s->addr + code->ranges[0].size;
	const char *why = "moved behind endbr64";
	enum insn_class c = insn_classify(img, at, NULL), next;

	if (c == INSN_ENDBR && !past_endbr_loops && at + 4 < end) {
		next = insn_classify(img, at + 4, NULL);
		if (next != INSN_BAD && next != INSN_NOP10) {
			at += 4;
			c = next;
		}
	}
	if (c == INSN_NOP5 && fork_danger(pf)) {
		why = off_nop5;
		next = at + 5 < end ? insn_classify(img, at + 5, NULL) : INSN_BAD;
		if (next == INSN_BAD || next == INSN_NOP5 || next == INSN_NOP10 ||
		    !insn_only_falls_through(img, code->ranges, code->n, at + 5)) {
			s->price = price_of(pf, c);
			site__doubt(pf, s, "%s", fork_kills);
			return;
		}
		at += 5;
		c = next;
	}
	if (at == s->addr)
		site__arm(pf, s, c);
	else
		site__move(pf, s, at, c, why);
}

static void check_entry(struct preflight *pf, size_t i, struct func_code *code)
{
	struct plan_site *s = &pf->plan->sites[i];
	const struct elf_image *img = pf->objs[s->object].img;
	bool loops, past;
	unsigned int len;
	enum insn_class c;

	if (!code->n || code->ranges[0].addr != s->addr) {
		site__doubt(pf, s,
			    code->n ? "it is a label inside another function by the unwind "
				      "table"
				    : "its size is unknown and there is no unwind "
				      "information");
		return;
	}
	c = insn_classify(img, s->addr, &len);
	if (c == INSN_BAD || c == INSN_NOP10) {
		site__refuse(s, "the kernel does not probe its first instruction");
		return;
	}
	if (len > code->ranges[0].size) {
		site__refuse(s, "its size, %llu, does not hold its first instruction",
			     (unsigned long long)code->ranges[0].size);
		return;
	}
	entry_loops(img, code, &loops, &past);
	if (loops) {
		s->price = price_of(pf, c);
		site__doubt(pf, s,
			    "a jump goes back to its first instruction: passes of that loop could "
			    "not be told from calls");
	} else {
		place_entry(pf, s, code, past);
	}
	if (s->verdict != VERDICT_REFUSED && s->role == QBPF_ROLE_ENTRY)
		preflight_returns(pf, i, code);
}

static void note_size(struct preflight *pf, const struct plan_site *s, struct func_code *code)
{
	if (code->func && s->role == QBPF_ROLE_ENTRY && (code->size_from_fde || code->guessed))
		plan__note(pf->plan, "%s: the symbol has no size; %llu bytes by %s",
			   pf->plan->spans[s->span - 1].name,
			   (unsigned long long)code->ranges[0].size,
			   code->size_from_fde ? "the unwind table" : "the next symbol");
}

static bool is_key(enum qbpf_role r)
{
	return r == QBPF_ROLE_KEY_BEGIN || r == QBPF_ROLE_KEY_END;
}

/* A function that is not armed has no way either. */
static void settle_way(struct plan *p, size_t i)
{
	const struct plan_site *s = &p->sites[i];
	struct plan_span *span = &p->spans[s->span - 1];

	if (s->role != QBPF_ROLE_ENTRY || s->verdict != VERDICT_REFUSED || span->way != RET_AUTO)
		return;
	span->way = RET_NONE;
	span->way_reason = s->reason ? strdup(s->reason) : NULL;
}

static void check_site(struct preflight *pf, size_t i)
{
	struct plan_site *s = &pf->plan->sites[i];
	const struct plan_object *o = &pf->objs[s->object];
	const struct code_range *r;
	struct func_code code;
	bool entry;

	if (!o->img) {
		site__refuse(s, "%s could not be opened", o->path);
		return;
	}
	if (elf_image__headers(o->img)->machine != ELF_X86_64) {
		site__refuse(s, "%s is not x86-64 code", path_base(o->path));
		return;
	}
	if (!elf_image__addr_is_code(o->img, s->addr)) {
		site__refuse(s, "0x%llx is not in an executable segment",
			     (unsigned long long)s->addr);
		return;
	}
	if (is_key(s->role) && !s->has_arg) {
		site__refuse(s, "its key is unreadable");
		return;
	}
	if (!pf->parts[s->object])
		pf->parts[s->object] = parts__new(o);
	if (!pf->parts[s->object]) {
		site__refuse(s, "out of memory");
		return;
	}
	/* A function's entry by hand (-s) is known by func_addr. */
	entry = s->role == QBPF_ROLE_ENTRY || (s->func_addr && s->func_addr == s->addr);
	parts__find(pf->parts[s->object], s->addr, entry, &code);
	if (code.n) {
		s->func_addr = code.ranges[0].addr;
		s->func_size = code.ranges[0].size;
	}
	note_size(pf, s, &code);
	if (entry) {
		check_entry(pf, i, &code);
		return;
	}
	r = range_of(&code, s->addr);
	if (r && !red_zone_stepped_over(o->img, s->addr) &&
	    !insn_boundary(o->img, r->addr, s->addr)) {
		site__refuse(s, "0x%llx is not the start of an instruction of %s",
			     (unsigned long long)s->addr,
			     code.func ? code.func->name : "its function");
		return;
	}
	check_marker(pf, s, &code);
}

static bool is_begin(enum qbpf_role r)
{
	return r == QBPF_ROLE_BEGIN || r == QBPF_ROLE_KEY_BEGIN || r == QBPF_ROLE_ENTRY;
}

static bool is_single(enum qbpf_role r)
{
	return r == QBPF_ROLE_INSTANT || r == QBPF_ROLE_VALUE;
}

/* A span may be armed when a begin and an end of it may be, or its only role. */
static void settle_spans(struct plan *p)
{
	uint8_t *seen = calloc(p->nspans + 1, 1);
	const struct plan_site *s;
	size_t i;

	for (i = 0; seen && i < p->nsites; i++) {
		s = &p->sites[i];
		if (s->verdict != VERDICT_REFUSED && s->span && s->span <= p->nspans)
			seen[s->span - 1] |= is_single(s->role) ? 3 : is_begin(s->role) ? 1 : 2;
	}
	for (i = 0; i < p->nspans; i++)
		p->spans[i].armed = seen && seen[i] == 3;
	free(seen);
}

void plan_preflight(struct plan *p, const struct plan_opts *opts, const struct plan_object *objs,
		    size_t nobjs, const struct plan_process *proc, const struct plan_kernel *k)
{
	struct preflight pf = {
	    .plan = p, .opts = opts, .objs = objs, .nobjs = nobjs, .proc = proc, .kernel = k};
	size_t i, n = p->nsites; /* the sites of returns come behind, with their verdicts */

	pf.parts = calloc(nobjs + 1, sizeof(*pf.parts));
	for (i = 0; i < n; i++) {
		if (p->sites[i].verdict != VERDICT_PENDING)
			continue;
		if (pf.parts)
			check_site(&pf, i);
		else
			site__refuse(&p->sites[i], "out of memory");
		settle_way(p, i);
	}
	for (i = 0; pf.parts && i < nobjs; i++)
		parts__free(pf.parts[i]);
	free(pf.parts);
	settle_spans(p);
}

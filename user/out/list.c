/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * list.c - `qbpf list` as text: per object its spans, and below each what a reader has to know
 * about its sites. Sites of a span that say the same are one line, for a marker can be inlined
 * in a thousand places.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "out/fields.h"
#include "out/grid.h"
#include "out/list.h"
#include "out/sites.h"
#include "out/text.h"

#define LIST_WIDTH 120

struct listing {
	FILE *f;
	const struct plan *p;
	const struct plan_object *objs;
	size_t nobjs;
	const uint64_t *price_ns;
	struct span_sites sites;
	bool utf8;
};

static void put_text(const struct listing *l, const char *s)
{
	char *clean = text__printable(s ? s : "?", l->utf8);

	fputs(clean ? clean : "?", l->f);
	free(clean);
}

static void put_object(const struct listing *l, const struct plan_object *o)
{
	const struct elf_info *info = o->img ? elf_image__info(o->img) : NULL;
	char id[2 * BUILD_ID_MAX + 1];
	const char *text = build_id_text(o->img, id);

	put_text(l, o->path);
	if (info)
		fprintf(l->f, "  (%s%s%s%s)", machine_name(info->machine),
			info->stripped ? ", stripped" : "", text ? ", build ID " : "",
			text ? text : "");
	fputc('\n', l->f);
}

/* "armed", "refused", "2 of 3 sites armed". */
static const char *span_verdict(const struct listing *l, size_t span, char *buf, size_t size)
{
	size_t n = 0, good = 0, moved = 0;

	for (size_t i = l->sites.first[span]; i < l->sites.first[span + 1]; i++) {
		n++;
		good += l->sites.sites[i]->verdict != VERDICT_REFUSED;
		moved += l->sites.sites[i]->verdict == VERDICT_RELOCATED;
	}
	if (!l->p->spans[span].armed)
		return "refused";
	if (good < n) {
		snprintf(buf, size, "%zu of %zu sites", good, n);
		return buf;
	}
	return moved ? "relocated" : "armed";
}

static const char *how(const struct plan_span *s)
{
	return s->kind == SPAN_FUNC || s->kind == SPAN_CUDA ? return_way_name(s->way) : "-";
}

static void put_spans(const struct listing *l, uint32_t object)
{
	static const char *const heads[] = {"  span", "kind",  "returns",
					    "sites",  "price", "verdict"};
	enum { COLUMNS = sizeof(heads) / sizeof(heads[0]) };
	struct grid *g = grid__new(COLUMNS);
	bool any = false;

	for (size_t c = 0; g && c < COLUMNS; c++)
		grid__put(g, c, heads[c]);
	for (size_t i = 0; g && i < l->p->nspans; i++) {
		const struct plan_span *s = &l->p->spans[i];
		uint64_t price;
		char buf[64];

		if (s->object != object)
			continue;
		any = true;
		price = l->price_ns ? plan_span_price(l->p, i + 1, l->price_ns) : 0;
		grid__put_tree(g, "  ", s->name);
		grid__put(g, 1, span_kind_name(s->kind));
		grid__put(g, 2, how(s));
		snprintf(buf, sizeof(buf), "%zu", l->sites.first[i + 1] - l->sites.first[i]);
		grid__put(g, 3, buf);
		grid__put(g, 4, price && s->armed ? unit__time(buf, price) : "-");
		grid__put(g, 5, span_verdict(l, i, buf, sizeof(buf)));
	}
	if (g && any)
		grid__write(g, l->f, LIST_WIDTH, l->utf8);
	grid__free(g);
}

static bool same_text(const char *a, const char *b)
{
	return a == b || (a && b && !strcmp(a, b));
}

/* Whether two sites are told in one line. */
static bool alike(const struct listing *l, const struct plan_site *a, const struct plan_site *b)
{
	const struct usdt_marker *ma = site_marker(a, l->objs, l->nobjs);
	const struct usdt_marker *mb = site_marker(b, l->objs, l->nobjs);

	return a->role == b->role && a->verdict == b->verdict && a->price == b->price &&
	       a->arm_errno == b->arm_errno && same_text(a->reason, b->reason) && !ma == !mb &&
	       (!ma || (!strcmp(ma->name, mb->name) && same_text(ma->argstr, mb->argstr)));
}

static void put_site(const struct listing *l, const struct plan_site *site, size_t times)
{
	const struct usdt_marker *m = site_marker(site, l->objs, l->nobjs);

	fprintf(l->f, "      %-9s 0x%" PRIx64, role_name(site->role), site->found_addr);
	if (times > 1)
		fprintf(l->f, " and %zu more", times - 1);
	if (m && m->argstr && *m->argstr) {
		fputs("  args ", l->f);
		put_text(l, m->argstr);
	}
	if (site->verdict != VERDICT_REFUSED)
		fprintf(l->f, "  %s", price_class_name(site->price));
	if (site->verdict != VERDICT_ARM)
		fprintf(l->f, "  %s", verdict_name(site->verdict));
	if (site->verdict == VERDICT_RELOCATED)
		fprintf(l->f, " to 0x%" PRIx64, site->addr);
	if (site->reason) {
		fputs(": ", l->f);
		put_text(l, site->reason);
	}
	if (site->arm_errno)
		fprintf(l->f, "  not armed by the kernel: %s", strerror(abs(site->arm_errno)));
	fputc('\n', l->f);
}

static void put_sites(const struct listing *l, uint32_t object)
{
	for (size_t s = 0; s < l->p->nspans; s++) {
		const struct plan_span *span = &l->p->spans[s];

		if (span->object != object)
			continue;
		fputs("\n    ", l->f);
		put_text(l, span->name);
		if (span->way_reason) {
			fprintf(l->f, "  (%s: ", how(span));
			put_text(l, span->way_reason);
			fputc(')', l->f);
		}
		fputc('\n', l->f);
		for (size_t i = l->sites.first[s], j; i < l->sites.first[s + 1]; i = j) {
			for (j = i + 1; j < l->sites.first[s + 1]; j++)
				if (!alike(l, l->sites.sites[i], l->sites.sites[j]))
					break;
			put_site(l, l->sites.sites[i], j - i);
		}
	}
}

/* What is there beside the spans of the plan. */
static void put_rest(const struct listing *l, const struct plan_object *o, bool has_spans)
{
	size_t funcs = 0;

	for (size_t i = 0; o->funcs && i < o->funcs->n; i++) {
		const struct elf_func *f = &o->funcs->funcs[i];

		funcs += f->alias_of == i && !(f->flags & (FUNC_IMPORTED | FUNC_COLD));
	}
	if (!funcs && !(o->markers && (o->markers->bad || (o->markers->n && !has_spans))))
		return;
	fputs(has_spans ? "\n" : "", l->f);
	if (o->markers && o->markers->n && !has_spans)
		fprintf(l->f, "  markers%s: %zu, none selected (-u selects)\n",
			o->is_libc ? " of the C library" : "", o->markers->n);
	if (o->markers && o->markers->bad)
		fprintf(l->f, "  marker notes that cannot be used: %zu\n", o->markers->bad);
	if (funcs)
		fprintf(l->f, "  functions in %s: %zu (-f selects)\n",
			o->funcs->source ? o->funcs->source : "?", funcs);
}

void list__write(FILE *f, const struct plan *p, const struct plan_object *objs, size_t nobjs,
		 const uint64_t price_ns[PRICE_N])
{
	struct listing l = {.f = f, .p = p, .objs = objs, .nobjs = nobjs, .price_ns = price_ns};
	size_t shown = 0;

	l.utf8 = text__utf8();
	if (span_sites__make(&l.sites, p))
		return;
	for (size_t o = 0; o < nobjs; o++) {
		bool has_spans = false;

		for (size_t i = 0; i < p->nspans && !has_spans; i++)
			has_spans = p->spans[i].object == o;
		if (!has_spans && !(objs[o].funcs && objs[o].funcs->n) &&
		    !(objs[o].markers && (objs[o].markers->n || objs[o].markers->bad)))
			continue;
		fputs(shown++ ? "\n" : "", f);
		put_object(&l, &objs[o]);
		if (has_spans) {
			put_spans(&l, o);
			put_sites(&l, o);
		}
		put_rest(&l, &objs[o], has_spans);
	}
	if (!shown)
		fputs("no markers and no functions\n", f);
	for (size_t i = 0; i < p->nnotes; i++) {
		fputs(i ? "note: " : "\nnote: ", f);
		put_text(&l, p->notes[i]);
		fputc('\n', f);
	}
	span_sites__clear(&l.sites);
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* json_list.c - `qbpf list --json`, schema qbpf.list/1 (docs/json.md). */
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>

#include "out/fields.h"
#include "out/json.h"
#include "out/json_write.h"
#include "out/sites.h"

/* Addresses are text in hexadecimal, as every other tool prints them. */
static void put_hex(struct json_doc *d, json_t *object, const char *key, uint64_t v)
{
	char buf[24];

	snprintf(buf, sizeof(buf), "0x%" PRIx64, v);
	json_put(d, object, key, json_string(buf));
}

static json_t *argument(struct json_doc *d, const struct usdt_arg *a)
{
	json_t *o = json_object();

	json_put(d, o, "readable", json_boolean(a->kind != USDT_ARG_UNREADABLE));
	if (a->size)
		json_put(d, o, "size", json_integer(a->size));
	json_put(d, o, "type",
		 json_string(a->is_float    ? "float"
			     : a->is_signed ? "signed"
					    : "unsigned"));
	if (a->kind == USDT_ARG_UNREADABLE)
		json_put_text(d, o, "why", a->why);
	return o;
}

static json_t *marker(struct json_doc *d, const struct usdt_marker *m)
{
	json_t *o = json_object(), *args = json_array();

	json_put_text(d, o, "provider", m->provider);
	json_put_text(d, o, "name", m->name);
	put_hex(d, o, "addr", m->addr);
	json_put_text(d, o, "operands", m->argstr);
	for (unsigned int i = 0; i < m->nargs && i < USDT_ARGS_MAX; i++)
		json_append(d, args, argument(d, &m->args[i]));
	json_put(d, o, "args", args);
	json_put(d, o, "semaphore", json_boolean(m->sema_off != 0));
	return o;
}

static json_t *site(struct json_doc *d, const struct plan_site *s, const struct plan_object *objs,
		    size_t nobjs, const uint64_t *price_ns)
{
	const struct usdt_marker *m = site_marker(s, objs, nobjs);
	json_t *o = json_object();

	if (s->object < nobjs)
		json_put_text(d, o, "object", objs[s->object].path);
	json_put(d, o, "role", json_string(role_name(s->role)));
	put_hex(d, o, "addr", s->found_addr);
	if (m)
		json_put_text(d, o, "marker", m->name);
	json_put(d, o, "verdict", json_string(verdict_name(s->verdict)));
	if (s->verdict == VERDICT_RELOCATED)
		put_hex(d, o, "armed_at", s->addr);
	json_put_text(d, o, "reason", s->reason);
	if (s->verdict == VERDICT_REFUSED)
		return o;
	json_put(d, o, "class", json_string(price_class_name(s->price)));
	if (price_ns && price_ns[s->price])
		json_put(d, o, "price_ns", json_count(price_ns[s->price]));
	return o;
}

static json_t *span(struct json_doc *d, const struct plan *p, size_t i, const struct span_sites *v,
		    const struct plan_object *objs, size_t nobjs, const uint64_t *price_ns)
{
	const struct plan_span *s = &p->spans[i];
	json_t *o = json_object(), *sites = json_array();
	uint64_t price = price_ns ? plan_span_price(p, i + 1, price_ns) : 0;

	json_put_text(d, o, "name", s->name);
	json_put(d, o, "kind", json_string(span_kind_name(s->kind)));
	if (s->object < nobjs)
		json_put_text(d, o, "object", objs[s->object].path);
	json_put(d, o, "armable", json_boolean(s->armed));
	if (s->kind == SPAN_FUNC || s->kind == SPAN_CUDA) {
		json_put(d, o, "returns", json_string(return_way_name(s->way)));
		json_put_text(d, o, "returns_reason", s->way_reason);
	}
	if (price && s->armed)
		json_put(d, o, "price_ns", json_count(price));
	for (size_t k = v->first[i]; k < v->first[i + 1]; k++)
		json_append(d, sites, site(d, v->sites[k], objs, nobjs, price_ns));
	json_put(d, o, "sites", sites);
	return o;
}

static json_t *functions(struct json_doc *d, const struct func_table *t)
{
	json_t *array = json_array();

	for (size_t i = 0; i < t->n; i++) {
		const struct elf_func *f = &t->funcs[i];
		json_t *o;

		if (f->alias_of != i || f->flags & FUNC_COLD)
			continue;
		o = json_object();
		json_put_text(d, o, "name", f->demangled);
		if (f->name != f->demangled)
			json_put_text(d, o, "symbol", f->name);
		if (f->flags & FUNC_IMPORTED) {
			json_put(d, o, "imported", json_true());
		} else {
			put_hex(d, o, "addr", f->addr);
			json_put(d, o, "size", json_count(f->size));
		}
		if (f->flags & FUNC_IFUNC)
			json_put(d, o, "ifunc_resolver", json_true());
		json_append(d, array, o);
	}
	return array;
}

static json_t *object(struct json_doc *d, const struct plan_object *obj)
{
	const struct elf_info *info = obj->img ? elf_image__info(obj->img) : NULL;
	json_t *o = json_object(), *markers = json_array();
	char id[2 * BUILD_ID_MAX + 1];

	json_put_text(d, o, "path", obj->path);
	if (info) {
		json_put(d, o, "machine", json_string(machine_name(info->machine)));
		json_put_text(d, o, "build_id", build_id_text(obj->img, id));
		json_put(d, o, "stripped", json_boolean(info->stripped));
	}
	for (size_t i = 0; obj->markers && i < obj->markers->n; i++)
		json_append(d, markers, marker(d, &obj->markers->markers[i]));
	json_put(d, o, "markers", markers);
	if (obj->markers && obj->markers->bad)
		json_put(d, o, "bad_markers", json_count(obj->markers->bad));
	if (obj->funcs)
		json_put(d, o, "functions", functions(d, obj->funcs));
	return o;
}

int json__write_list(FILE *f, const struct plan *p, const struct plan_object *objs, size_t nobjs,
		     const uint64_t price_ns[PRICE_N])
{
	struct json_doc d = {.root = json_object()};
	json_t *objects = json_array(), *spans = json_array(), *notes = json_array();
	struct span_sites v = {0};

	d.failed = span_sites__make(&v, p) != 0;
	json_put(&d, d.root, "schema", json_string("qbpf.list/1"));
	for (size_t i = 0; i < nobjs; i++)
		json_append(&d, objects, object(&d, &objs[i]));
	json_put(&d, d.root, "objects", objects);
	for (size_t i = 0; !d.failed && i < p->nspans; i++)
		json_append(&d, spans, span(&d, p, i, &v, objs, nobjs, price_ns));
	json_put(&d, d.root, "spans", spans);
	for (size_t i = 0; i < p->nnotes; i++)
		json_append_text(&d, notes, p->notes[i]);
	json_put(&d, d.root, "notes", notes);
	span_sites__clear(&v);
	return json_doc__write(&d, f, false);
}

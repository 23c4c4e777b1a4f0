/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* check.c - what check found, as text and as JSON. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "out/check.h"
#include "out/figure.h"
#include "out/text.h"

static void put_limit(FILE *f, const struct check_case *c)
{
	char value[FIGURE_TEXT], interval[INTERVAL_TEXT];
	struct estimate limit = {.state = EST_KNOWN,
				 .value = c->limit.value,
				 .has_interval = c->limit.ci.lo != c->limit.ci.hi,
				 .ci = c->limit.ci};

	interval__text(interval, c->dim, &limit);
	fprintf(f, ", the limit is %s%s%s", figure__text(value, c->dim, limit.value),
		*interval ? " " : "", interval);
}

char *check_case__text(const struct check_case *c)
{
	char value[FIGURE_TEXT], interval[INTERVAL_TEXT], *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	if (!f)
		return NULL;
	if (c->has_figure) {
		interval__text(interval, c->dim, &c->figure);
		fprintf(f, "%s%s%s", figure__text(value, c->dim, c->figure.value),
			*interval ? " " : "", interval);
		if (!figure__is_fact(c->rule->figure))
			fprintf(f, " of %" PRIu64, c->figure.n);
	}
	if (c->has_limit && limit__has_baseline(c->rule->limit))
		put_limit(f, c);
	if (c->uncertain)
		fputs(", uncertain", f);
	if (c->why)
		fprintf(f, "%s%s", c->has_figure ? ": " : "", c->why);
	if (fclose(f)) {
		free(text);
		return NULL;
	}
	return text;
}

static int put_case(FILE *f, const struct check_case *c, bool utf8)
{
	bool named = c->name && strcmp(c->name, c->rule->span) != 0;
	char *rule = text__printable(c->rule->text, utf8), *text = check_case__text(c);
	char *name = text__printable(named ? c->name : "", utf8);
	char *what = text ? text__printable(text, utf8) : NULL;
	int err = rule && name && what ? 0 : -ENOMEM;

	if (!err)
		fprintf(f, "%-7s  %s: %s%s%s\n", check_verdict__name(c->verdict), rule, name,
			named ? " " : "", what);
	free(rule);
	free(name);
	free(text);
	free(what);
	return err;
}

static int written(FILE *f)
{
	return fflush(f) || ferror(f) ? (errno ? -errno : -EIO) : 0;
}

int check__write(FILE *f, const struct check *c, bool utf8)
{
	int err = 0;

	for (size_t i = 0; i < c->n && !err; i++)
		err = put_case(f, &c->cases[i], utf8);
	if (err)
		return err;
	fprintf(f, "%zu rule%s, %zu case%s: %zu ok, %zu broken, %zu too few", c->budget->n,
		c->budget->n == 1 ? "" : "s", c->n, c->n == 1 ? "" : "s", c->counts[CHECK_OK],
		c->counts[CHECK_BROKEN], c->counts[CHECK_TOO_FEW]);
	if (c->uncertain)
		fprintf(f, "; %zu uncertain", c->uncertain);
	fprintf(f, " (intervals: %g %%)\n", c->confidence * 100);
	return written(f);
}

static json_t *case_json(struct json_doc *d, const struct check_case *c)
{
	static const char *const verdicts[CHECK_VERDICTS] = {"ok", "broken", "too_few"};
	char name[FIGURE_NAME];
	json_t *o = json_object();

	json_put_text(d, o, "rule", c->rule->text);
	json_put_text(d, o, "file", c->rule->file);
	json_put(d, o, "line", json_count(c->rule->line));
	json_put_text(d, o, "span", c->name);
	json_put_text(d, o, "figure", figure__name(name, c->rule->figure));
	json_put(d, o, "verdict", json_string(verdicts[c->verdict]));
	json_put(d, o, "uncertain", json_boolean(c->uncertain));
	if (c->name) {
		json_put_text(d, o, "unit", figure__unit(c->dim));
		json_put(d, o, "measured", estimate__json(d, &c->figure));
	}
	if (c->has_limit) {
		json_put(d, o, "limit", figure__json(c->limit.value));
		if (c->limit.ci.lo != c->limit.ci.hi)
			json_put(d, o, "limit_interval", interval__json(&c->limit.ci));
	}
	json_put_text(d, o, "why", c->why);
	return o;
}

int check__write_json(FILE *f, const struct check *c)
{
	struct json_doc d = {.root = json_object()};
	json_t *cases = json_array();

	json_put(&d, d.root, "schema", json_string("qbpf.check/1"));
	json_put_text(&d, d.root, "recording", c->side->path);
	json_put_text(&d, d.root, "baseline", c->baseline ? c->baseline->path : NULL);
	json_put(&d, d.root, "confidence", json_real(c->confidence));
	json_put(&d, d.root, "strict", json_boolean(c->strict));
	json_put(&d, d.root, "rules", json_count(c->budget->n));
	json_put(&d, d.root, "ok", json_count(c->counts[CHECK_OK]));
	json_put(&d, d.root, "broken", json_count(c->counts[CHECK_BROKEN]));
	json_put(&d, d.root, "too_few", json_count(c->counts[CHECK_TOO_FEW]));
	json_put(&d, d.root, "uncertain", json_count(c->uncertain));
	for (size_t i = 0; i < c->n; i++)
		json_append(&d, cases, case_json(&d, &c->cases[i]));
	json_put(&d, d.root, "cases", cases);
	return json_doc__write(&d, f, false);
}

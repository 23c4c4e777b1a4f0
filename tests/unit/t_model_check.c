// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Summary documents read, rules' spans found, verdicts given, recordings compared: on documents
 * written here, so that every figure is known.
 */
#include <errno.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "model/check.h"
#include "model/diff.h"
#include "model/select_item.h"

/* Loads text as a file; the file's name is taken out of the message. */
static int load(const char *text, struct side **out, struct err *e)
{
	char path[] = "/tmp/qbpf-side-XXXXXX";
	int fd = mkstemp(path), err;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
	e->text[0] = '\0';
	err = side__load(path, NULL, 0, out, e);
	unlink(path);
	if (!strncmp(e->text, path, strlen(path)))
		memmove(e->text, e->text + strlen(path), strlen(e->text + strlen(path)) + 1);
	return err;
}

/*
 * 10 s: 100,000 ticks of 1,000 .. 2,000 ns in ten equal buckets, in each alpha, which in a tenth of
 * them runs inside a warm-up too; sent is an instant, size a value.
 */
#define TICK                                                                                       \
	"{\"name\":\"strategy:on_tick\",\"kind\":\"marker\",\"count\":100000,"                     \
	"\"sum_ns\":150000000,\"min_ns\":1000,\"max_ns\":2000,\"p50_ns\":1450,\"p90_ns\":1850,"    \
	"\"p99_ns\":1950,\"p999_ns\":1990,\"p9999_ns\":2000,\"open\":1,\"abandoned\":2,"           \
	"\"orphan_ends\":3,\"histogram\":[[1000,1100,10000],[1100,1200,10000],"                    \
	"[1200,1300,10000],[1300,1400,10000],[1400,1500,10000],[1500,1600,10000],"                 \
	"[1600,1700,10000],[1700,1800,10000],[1800,1900,10000],[1900,2001,10000]]}"
#define REST                                                                                       \
	"{\"name\":\"signal:alpha\",\"kind\":\"marker\",\"count\":110000,\"sum_ns\":44000000,"     \
	"\"min_ns\":300,\"max_ns\":500,\"p50_ns\":400,\"p90_ns\":480,\"p99_ns\":490,"              \
	"\"p999_ns\":500,\"p9999_ns\":null},"                                                      \
	"{\"name\":\"other:alpha\",\"kind\":\"keyed\",\"count\":5,\"sum_ns\":50,\"min_ns\":10,"    \
	"\"max_ns\":10,\"p50_ns\":10,\"p90_ns\":null,\"p99_ns\":null},"                            \
	"{\"name\":\"Book::update(int, "                                                           \
	"char)\",\"kind\":\"function\",\"count\":0,\"sum_ns\":null},"                              \
	"{\"name\":\"order:sent\",\"kind\":\"instant\",\"count\":7,\"interval\":{}},"              \
	"{\"name\":\"order:size\",\"kind\":\"value\",\"count\":4,\"sum\":-2,\"min\":-5,\"max\":3," \
	"\"p50\":-1,\"p90\":null}"
#define TREE                                                                                       \
	"[{\"name\":\"strategy:on_tick\",\"count\":100000,\"sum_ns\":150000000,"                   \
	"\"self_ns\":110000000,\"min_ns\":1000,\"max_ns\":2000,\"children\":["                     \
	"{\"name\":\"signal:alpha\",\"count\":100000,\"sum_ns\":40000000,\"self_ns\":40000000,"    \
	"\"min_ns\":300,\"max_ns\":500,\"children\":[]},"                                          \
	"{\"name\":\"order:sent\",\"count\":7,\"children\":[]}]},"                                 \
	"{\"name\":\"strategy:warm\",\"count\":0,\"sum_ns\":0,\"self_ns\":0,\"children\":["        \
	"{\"name\":\"signal:alpha\",\"count\":10000,\"sum_ns\":4000000,\"self_ns\":4000000,"       \
	"\"min_ns\":300,\"max_ns\":500,\"children\":[]}]}]"
#define DOC                                                                                        \
	"{\"schema\":\"qbpf.summary/1\",\"duration_ns\":10000000000,\"spans\":[" TICK "," REST     \
	"],\"tree\":" TREE ",\"lost\":{\"events\":9,\"by_probe\":{\"strategy:on_tick\":9}}}"

static struct side *doc(void)
{
	struct side *s;
	struct err e;

	assert_string_equal((load(DOC, &s, &e), e.text), "");
	return s;
}

static size_t find(const struct side *s, const char *name)
{
	struct selection sel;
	char *why;
	size_t item;

	assert_int_equal(side__select(s, name, &sel, &why), 0);
	assert_int_equal(sel.n, 1);
	item = sel.items[0];
	selection__clear(&sel);
	return item;
}

static struct estimate get(const struct side *s, const char *name, const char *figure)
{
	struct confidence c;
	struct estimate e;
	struct figure f;

	confidence__init(&c, 0.99);
	assert_true(figure__parse(figure, strlen(figure), &f));
	side__estimate(s, find(s, name), f, &c, &e);
	return e;
}

static void known(const struct side *s, const char *name, const char *figure, double want)
{
	struct estimate e = get(s, name, figure);

	assert_int_equal(e.state, EST_KNOWN);
	assert_float_equal(e.value, want, 1e-9 * fabs(want) + 1e-12);
}

static void t_summary(void **state)
{
	struct side *s = doc();
	struct estimate e;
	char *caveat;

	(void)state;
	assert_false(s->trace);
	known(s, "strategy:on_tick", "count", 100000);
	known(s, "strategy:on_tick", "rate", 10000);
	known(s, "strategy:on_tick", "total", 150e6);
	known(s, "strategy:on_tick", "self", 110e6);
	known(s, "strategy:on_tick", "total/s", 0.015);
	known(s, "strategy:on_tick", "self/span", 1100);
	known(s, "strategy:on_tick", "mean", 1500);
	known(s, "strategy:on_tick", "min", 1000);
	known(s, "strategy:on_tick", "max", 2000);
	known(s, "strategy:on_tick", "p99", 1950);
	known(s, "strategy:on_tick", "p25", 1250); /* the middle of its bucket */
	known(s, "strategy:on_tick", "open", 1);
	known(s, "strategy:on_tick", "abandoned", 2);
	known(s, "strategy:on_tick", "orphan_ends", 3);
	known(s, "strategy:on_tick", "lost", 9);
	known(s, "signal:alpha", "lost", 0);
	/* Of all outermost time, 154 ms: the warm-up never ended and has the time of its child. */
	known(s, "strategy:on_tick", "share", 150.0 / 154);
	known(s, "signal:alpha", "share", 44.0 / 154);
	known(s, "strategy:on_tick/signal:alpha", "share", 40.0 / 150);
	known(s, "strategy:warm/signal:alpha", "share", 1);
	known(s, "/strategy:warm", "share", 4.0 / 154);
	known(s, "strategy:on_tick/signal:alpha", "mean", 400);
	known(s, "order:size", "p50", -1);
	known(s, "order:size", "mean", -0.5);
	known(s, "order:sent", "rate", 0.7);
	/* Ranks 49,593 and 50,408 of the median lie in one bucket. */
	e = get(s, "strategy:on_tick", "p50");
	assert_true(e.has_interval && e.n == 100000);
	assert_true(e.ci.lo == 1400 && e.ci.hi == 1600);
	e = get(s, "strategy:on_tick", "p99.99");
	assert_true(e.has_interval && e.ci.hi == 2000);
	e = get(s, "signal:alpha", "p50");
	assert_false(e.has_interval); /* no histogram */
	e = get(s, "strategy:on_tick", "mean");
	assert_true(e.has_interval && e.ci.lo > 1497 && e.ci.lo < 1498);
	assert_false(get(s, "strategy:on_tick", "rate").has_interval);
	e = get(s, "signal:alpha", "p99.99");
	assert_int_equal(e.state, EST_TOO_FEW);
	assert_int_equal(e.needs, 10000);
	assert_int_equal(get(s, "signal:alpha", "p75").state, EST_UNKNOWN);
	assert_int_equal(get(s, "Book::update", "p50").state, EST_TOO_FEW);
	assert_int_equal(get(s, "other:alpha", "p99").state, EST_TOO_FEW);
	assert_int_equal(get(s, "other:alpha", "share").state, EST_ABSENT);
	assert_int_equal(get(s, "order:sent", "p50").state, EST_ABSENT);
	assert_int_equal(get(s, "order:size", "self").state, EST_ABSENT);
	assert_int_equal(get(s, "strategy:on_tick/signal:alpha", "p50").state, EST_UNKNOWN);
	assert_int_equal(get(s, "strategy:on_tick/signal:alpha", "lost").state, EST_ABSENT);
	caveat = side__caveat(s);
	assert_non_null(strstr(caveat, ": 9 spans were lost: the figures are of the rest"));
	free(caveat);
	side__free(s);
}

static void t_bad_documents(void **state)
{
#define SPANS(x) "{\"schema\":\"qbpf.summary/1\",\"spans\":[" x "]}"
#define SPAN(x)	 SPANS("{\"name\":\"a\",\"count\":2,\"min_ns\":1,\"max_ns\":2,\"sum_ns\":3" x "}")
	static const struct {
		const char *text, *message;
	} docs[] = {
	    {"", ": empty: neither a trace nor a summary"},
	    {" \n", ": empty: neither a trace nor a summary"},
	    {"{", ": line 1, column 1: no JSON, or cut short"},
	    {"{}", ": no summary: it has no schema"},
	    {"[]", ": no summary: it has no schema"},
	    {"[1", ": line 1, column 2: no JSON, or cut short"},
	    {"{\"schema\":\"qbpf.list/1\"}", ": a qbpf.list/1 document, not a qbpf.summary/1"},
	    {"{\"schema\":3}", ": no summary: it has no schema"},
	    {"{\"schema\":\"qbpf.summary/1\"}", ": spans is no array"},
	    {SPANS("3"), ": spans[0] has no name"},
	    {SPANS("{\"name\":3}"), ": spans[0] has no name"},
	    {SPANS("{\"name\":\"a\"}"), ": spans[0] has no count"},
	    {SPANS("{\"name\":\"a\",\"count\":\"x\"}"), ": spans[0].count is no count"},
	    {SPANS("{\"name\":\"a\",\"count\":-1}"), ": spans[0].count is no count"},
	    {SPANS("{\"name\":\"a\",\"count\":1.5}"), ": spans[0].count is no count"},
	    {SPANS("{\"name\":\"a\",\"count\":1,\"min_ns\":[]}"), ": spans[0].min_ns is no number"},
	    {SPAN(",\"p50_ns\":true"), ": spans[0].p50_ns is no number"},
	    {SPAN(",\"histogram\":3"), ": spans[0].histogram is no array"},
	    {SPAN(",\"histogram\":[3]"), ": spans[0].histogram[0] is not [low, high, count]"},
	    {SPAN(",\"histogram\":[[1,2]]"), ": spans[0].histogram[0] is not [low, high, count]"},
	    {SPAN(",\"histogram\":[[1,2,3],[0,1,1]]"),
	     ": spans[0].histogram[1] is not in ascending order"},
	    {SPAN(",\"histogram\":[[2,1,3]]"), ": spans[0].histogram[0] is not in ascending order"},
	    {SPAN(",\"histogram\":[[1,2,9223372036854775807],[2,3,9223372036854775807]]"),
	     ": spans[0].histogram[0] is no count"},
	    {SPAN(",\"open\":{}"), ": spans[0].open is no count"},
	    {"{\"schema\":\"qbpf.summary/1\",\"spans\":[],\"tree\":3}", ": tree is no array"},
	    {"{\"schema\":\"qbpf.summary/1\",\"spans\":[],\"tree\":[{}]}",
	     ": a place in the tree has no name"},
	    {"{\"schema\":\"qbpf.summary/"
	     "1\",\"spans\":[],\"tree\":[{\"name\":\"x\",\"count\":[]}]}",
	     ": tree: x.count is no count"},
	    {DOC "\n{\"schema\":", ": line 2, column 10: no JSON, or cut short"},
	    {"\x7f"
	     "ELF",
	     NULL}, /* the trace reader's words */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(docs) / sizeof(*docs); i++) {
		struct side *s;
		struct err e;

		assert_int_equal(load(docs[i].text, &s, &e), -EBADMSG);
		assert_null(s);
		if (docs[i].message)
			assert_string_equal(e.text, docs[i].message);
		assert_null(strchr(e.text, '\n'));
		assert_true(*e.text);
	}
}

static void t_last_line_counts(void **state)
{
	struct side *s;
	struct err e;

	(void)state;
	assert_int_equal(load("\n{\"schema\":\"qbpf.summary/1\",\"spans\":[]}\n" DOC "\n", &s, &e),
			 0);
	assert_int_equal(s->nspans, 6);
	side__free(s);
}

static void t_deep_documents(void **state)
{
	char *text = malloc(300 * 40 + 200), *at = text;
	struct side *s;
	struct err e;

	(void)state;
	at = stpcpy(at, "{\"schema\":\"qbpf.summary/1\",\"spans\":[],\"tree\":");
	for (int i = 0; i < 300; i++)
		at = stpcpy(at, "[{\"name\":\"x\",\"children\":");
	at = stpcpy(at, "[]");
	for (int i = 0; i < 300; i++)
		at = stpcpy(at, "}]");
	stpcpy(at, "}");
	assert_int_equal(load(text, &s, &e), -EBADMSG);
	assert_string_equal(e.text, ": the tree is more than 256 deep");
	memset(text, '[', 5000);
	text[5000] = '\0';
	assert_int_equal(load(text, &s, &e), -EBADMSG);
	free(text);
}

static void t_select(void **state)
{
	static const struct {
		const char *pattern;
		int err;
		size_t n;
		const char *why;
	} cases[] = {
	    {"strategy:on_tick", 0, 1, NULL},
	    {"on_tick", 0, 1, NULL},
	    {"*", 0, 6, NULL},
	    {"order:*", 0, 2, NULL},
	    {"on_*", 0, 1, NULL},
	    {"*:alpha", 0, 2, NULL},
	    {"alpha", -ENOTUNIQ, 2,
	     "it means signal:alpha and other:alpha: write one of them, or a glob"},
	    {"signal:alpha", 0, 1, NULL},
	    {"Book::update", 0, 1, NULL},
	    {"Book::update(int, char)", 0, 1, NULL},
	    {"update", -ENOENT, 0, "no such span (did you mean Book::update(int, char)?)"},
	    {"strategy:on_tik", -ENOENT, 0, "no such span (did you mean strategy:on_tick?)"},
	    {"on_tik", -ENOENT, 0, "no such span (did you mean on_tick?)"},
	    {"zzzzzz", -ENOENT, 0, "no such span"},
	    {"strategy:on_tick/signal:alpha", 0, 1, NULL},
	    {"on_tick/alpha", 0, 1, NULL},
	    {"*/alpha", 0, 2, NULL},
	    {"*/*", 0, 3, NULL},
	    {"/*", 0, 2, NULL},
	    {"/on_tick", 0, 1, NULL},
	    {"/alpha", -ENOENT, 0,
	     "no such place in the tree (there is strategy:on_tick/signal:alpha)"},
	    {"/on_tick/alpha", 0, 1, NULL},
	    {"on_tick/nosuch", -ENOENT, 0, "no such place in the tree"},
	    {"on_tick/", -ENOENT, 0, "no such place in the tree"},
	    {"/", -ENOENT, 0, "no such place in the tree"},
	    {"", -ENOENT, 0, "no such span"},
	    {"strategy\\:on_tick", 0, 1, NULL},
	    {"on\\/tick", -ENOENT, 0, "no such span (did you mean on_tick?)"},
	};
	struct side *s = doc();

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct selection sel;
		char *why;
		int err = side__select(s, cases[i].pattern, &sel, &why);

		if (cases[i].why)
			assert_string_equal(why, cases[i].why);
		assert_int_equal(err, cases[i].err);
		assert_int_equal(sel.n, cases[i].n);
		free(why);
		selection__clear(&sel);
	}
	side__free(s);
}

/* The verdict of each rule on DOC, with DOC as its baseline. */
static void t_verdicts(void **state)
{
	static const struct {
		const char *rule;
		enum check_verdict verdict;
		bool uncertain;
		const char *why;
	} cases[] = {
	    {"on_tick p99 < 2.1us", CHECK_OK, false, NULL},
	    {"on_tick p99 < 1us", CHECK_BROKEN, false, NULL},
	    {"on_tick p50 < 1460ns", CHECK_OK, true, NULL},
	    {"on_tick p50 < 1450ns", CHECK_BROKEN, true, NULL},
	    {"on_tick p50 <= 1450ns", CHECK_OK, true, NULL},
	    {"on_tick p50 > 1440ns", CHECK_OK, true, NULL},
	    {"on_tick p50 >= 1450ns", CHECK_OK, true, NULL},
	    {"on_tick p50 == 1450ns", CHECK_OK, false, NULL},
	    {"on_tick p50 != 1450ns", CHECK_BROKEN, false, NULL},
	    {"on_tick lost == 0", CHECK_BROKEN, false, NULL},
	    {"on_tick lost == 9", CHECK_OK, false, NULL},
	    {"on_tick p50 < baseline * 1.05", CHECK_OK, true, NULL},
	    {"on_tick p50 < baseline * 2", CHECK_OK, false, NULL},
	    {"on_tick count == baseline", CHECK_OK, false, NULL},
	    {"signal:alpha p99 < 491ns", CHECK_OK, false, NULL},
	    {"signal:alpha p99.99 < 1s", CHECK_TOO_FEW, false, "110000 of it, it takes 10000"},
	    {"update p50 < 1s", CHECK_BROKEN, false,
	     "no such span (did you mean Book::update(int, char)?)"},
	    {"Book::update mean < 1s", CHECK_TOO_FEW, false, "0 of it, it takes 1"},
	    {"on_tick/alpha p50 < 1s", CHECK_BROKEN, false, "the summary does not say"},
	    {"on_tick p99 < 1us / (baseline / 1us - 1.95)", CHECK_BROKEN, false,
	     "it divides by what may be zero"},
	    {"on_tick p99 < baseline * 1e308", CHECK_BROKEN, false,
	     "the limit is beyond any number"},
	};
	struct side *s = doc();
	struct check_opts o = {.baseline = s, .confidence = 0.99};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct budget b = {0};
		struct check *c;
		struct err e;

		assert_int_equal(budget__add(&b, cases[i].rule, &e), 0);
		assert_int_equal(check__run(&b, s, &o, &c, &e), 0);
		assert_int_equal(c->n, 1);
		assert_string_equal(check_verdict__name(c->cases[0].verdict),
				    check_verdict__name(cases[i].verdict));
		assert_int_equal(c->cases[0].uncertain, cases[i].uncertain);
		assert_int_equal(!c->cases[0].why, !cases[i].why);
		if (cases[i].why)
			assert_string_equal(c->cases[0].why, cases[i].why);
		check__free(c);
		budget__clear(&b);
	}
	side__free(s);
}

/* "* lost == 0" is broken by lost records of the GPU as well, and by a part of it that nobody recorded. */
static void t_gpu_lost(void **state)
{
#define GPU_DOC(gpu, sources)                                                                      \
	"{\"schema\":\"qbpf.summary/1\",\"spans\":[" TICK "]" gpu                                  \
	",\"lost\":{\"events\":0,\"by_source\":{\"bpf\":0" sources "},\"by_probe\":{}}}"
	static const struct {
		const char *doc, *rule;
		size_t n;
		enum check_verdict verdict; /* of the last case */
		const char *why;
	} cases[] = {
	    {GPU_DOC("", ""), "* lost == 0", 1, CHECK_OK, NULL},
	    {GPU_DOC(",\"gpu\":{}", ",\"gpu\":0"), "* lost == 0", 2, CHECK_OK, NULL},
	    {GPU_DOC("", ",\"gpu\":5"), "* lost == 0", 2, CHECK_BROKEN, NULL},
	    {GPU_DOC("", ",\"gpu\":5"), "* lost == 5", 2, CHECK_OK, NULL},
	    {GPU_DOC("", ",\"gpu\":5"), "strategy:* lost == 0", 1, CHECK_OK, NULL},
	    {GPU_DOC("", ",\"gpu\":5"), "* count > 5", 1, CHECK_OK, NULL},
	    {GPU_DOC(",\"gpu\":{\"agents\":[{\"end\":\"exit\"},{}]}", ",\"gpu\":0"), "* lost == 0",
	     2, CHECK_OK, NULL},
	    {GPU_DOC(",\"gpu\":{\"agents\":[{\"end\":\"exit\"},{\"end\":\"fatal\"}]}",
		     ",\"gpu\":0"),
	     "* lost == 0", 2, CHECK_BROKEN, "not known: the CUDA agent was gone before its time"},
	    {GPU_DOC(",\"gpu\":{\"agents\":[{\"end\":\"sudden\"}]}", ",\"gpu\":0"),
	     "* lost == baseline", 2, CHECK_BROKEN,
	     "not known: the CUDA agent was gone before its time"},
	    {GPU_DOC("", ",\"gpu\":5"), "* lost <= baseline + 1", 2, CHECK_BROKEN, NULL},
	    {GPU_DOC("", ",\"gpu\":5"), "* lost <= baseline + 2", 2, CHECK_OK, NULL},
	};
	struct side *s, *base;
	struct budget b = {0};
	struct check *c;
	struct err e;

	(void)state;
	assert_int_equal(load(GPU_DOC("", ",\"gpu\":3"), &base, &e), 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct check_opts o = {.confidence = 0.99, .baseline = base};

		assert_int_equal(load(cases[i].doc, &s, &e), 0);
		assert_int_equal(budget__add(&b, cases[i].rule, &e), 0);
		assert_int_equal(check__run(&b, s, &o, &c, &e), 0);
		assert_int_equal(c->n, cases[i].n);
		assert_int_equal(c->cases[c->n - 1].verdict, cases[i].verdict);
		if (cases[i].why)
			assert_string_equal(c->cases[c->n - 1].why, cases[i].why);
		if (c->n > 1)
			assert_string_equal(c->cases[1].name, "records of the GPU");
		check__free(c);
		budget__clear(&b);
		side__free(s);
	}
	side__free(base);
	/* A baseline with nothing of a GPU. */
	assert_int_equal(load(GPU_DOC("", ""), &base, &e), 0);
	assert_int_equal(load(GPU_DOC("", ",\"gpu\":5"), &s, &e), 0);
	assert_int_equal(budget__add(&b, "* lost <= baseline", &e), 0);
	assert_int_equal(
	    check__run(&b, s, &(struct check_opts){.confidence = 0.99, .baseline = base}, &c, &e),
	    0);
	assert_int_equal(c->cases[1].verdict, CHECK_TOO_FEW);
	check__free(c);
	budget__clear(&b);
	side__free(s);
	side__free(base);
}

static void t_strict(void **state)
{
	struct side *s = doc();
	struct check_opts o = {.confidence = 0.99, .strict = true};
	struct budget b = {0};
	struct check *c;
	struct err e;

	(void)state;
	assert_int_equal(budget__add(&b, "on_tick p50 < 1460ns", &e), 0);
	assert_int_equal(budget__add(&b, "on_tick p50 < 1601ns", &e), 0);
	assert_int_equal(check__run(&b, s, &o, &c, &e), 0);
	assert_int_equal(c->cases[0].verdict, CHECK_BROKEN);
	assert_string_equal(c->cases[0].why, "not certain, and --strict");
	assert_int_equal(c->cases[1].verdict, CHECK_OK);
	check__free(c);
	budget__clear(&b);
	side__free(s);
}

/* Globs pass over what a rule does not fit; a rule that fits nothing, or not the one span that it
 * names, is a mistake. */
static void t_misfits(void **state)
{
	static const struct {
		const char *rule;
		size_t n;
		const char *message;
	} cases[] = {
	    {"* p50 < 1s", 4, NULL},
	    {"* p50 < 3", 1, NULL},
	    {"* lost == 0", 6, NULL},
	    {"* share < 30%", 3, NULL},
	    {"order:sent p50 < 1s", 0, "rule 1: order:sent: an instant has no duration"},
	    {"order:size p50 < 1s", 0,
	     "rule 1: order:size: the figure is no time, the limit is one"},
	    {"on_tick p50 < 3", 0,
	     "rule 1: on_tick: the figure is a time: the limit needs a unit (ns us ms s)"},
	    {"other:* share < 3%", 1, NULL},
	    {"other:alpha share < 3%", 0,
	     "rule 1: other:alpha: a keyed span nests in nothing: it has no self time and no "
	     "share"},
	    {"on_tick/alpha lost == 0", 0,
	     "rule 1: on_tick/alpha: told by span, not by place in the tree"},
	};
	struct side *s = doc();
	struct budget b = {0};
	struct check *c;
	struct err e;
	struct check_opts o = {.confidence = 0.99};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		int err;

		assert_int_equal(budget__add(&b, cases[i].rule, &e), 0);
		err = check__run(&b, s, &o, &c, &e);
		assert_string_equal(e.text, cases[i].message ? cases[i].message : "");
		assert_int_equal(err, cases[i].message ? -EINVAL : 0);
		if (c)
			assert_int_equal(c->n, cases[i].n);
		check__free(c);
		budget__clear(&b);
	}
	/* A glob that fits nothing is broken, as one that matches nothing. */
	assert_int_equal(budget__add(&b, "other:* share < 3%", &e), 0);
	assert_int_equal(check__run(&b, s, &o, &c, &e), 0);
	assert_int_equal(c->cases[0].verdict, CHECK_BROKEN);
	assert_string_equal(c->cases[0].why,
			    "a keyed span nests in nothing: it has no self time and no share");
	check__free(c);
	budget__clear(&b);
	side__free(s);
}

static const struct diff_row *row(const struct diff *d, const char *name)
{
	for (size_t i = 0; i < d->n; i++) {
		size_t item;
		const struct side *s = diff_row__side(d, &d->rows[i], &item);
		char *path = side__path(s, item);
		bool is = !strcmp(path, name) && s->items[item].node == !!strchr(name, '/');

		free(path);
		if (is)
			return &d->rows[i];
	}
	fail_msg("no row %s", name);
	return NULL;
}

struct made {
	const char *name;
	int count, mean, lo, hi; /* all within one bucket, lo .. hi */
	bool histogram;
};

/* A document of those spans and of the tree "up/down". */
static struct side *make(const char *duration_ns, const struct made *spans, size_t n)
{
	char *text = NULL;
	struct side *s;
	struct err e;
	size_t len;
	FILE *f = open_memstream(&text, &len);

	assert_non_null(f);
	fprintf(f, "{\"schema\":\"qbpf.summary/1\",\"duration_ns\":%s,\"spans\":[", duration_ns);
	for (size_t i = 0; i < n; i++) {
		const struct made *m = &spans[i];

		fprintf(f,
			"%s{\"name\":\"%s\",\"kind\":\"marker\",\"count\":%d,\"sum_ns\":%d,"
			"\"min_ns\":%d,\"max_ns\":%d,\"p50_ns\":%d",
			i ? "," : "", m->name, m->count, m->count * m->mean, m->lo, m->hi, m->mean);
		if (m->histogram)
			fprintf(f, ",\"histogram\":[[%d,%d,%d]]", m->lo, m->hi, m->count);
		fputc('}', f);
	}
	fputs("],\"tree\":[{\"name\":\"up\",\"count\":1,\"sum_ns\":1,\"children\":["
	      "{\"name\":\"down\",\"count\":1,\"sum_ns\":1}]}]}",
	      f);
	fclose(f);
	assert_string_equal((load(text, &s, &e), e.text), "");
	free(text);
	return s;
}

static void t_diff(void **state)
{
	static const struct made a[] = {
	    {"up", 1000, 1000, 990, 1010, true},    {"down", 1000, 2000, 1990, 2010, true},
	    {"same", 1000, 1000, 990, 1010, true},  {"few", 3, 1000, 500, 1500, true},
	    {"bare", 1000, 1000, 990, 1010, false}, {"lost", 10, 1000, 990, 1010, false},
	};
	static const struct made b[] = {
	    {"up", 2000, 1200, 1190, 1210, true},    {"down", 2000, 1000, 990, 1010, true},
	    {"same", 2000, 1005, 995, 1015, true},   {"few", 3, 3000, 1500, 4500, true},
	    {"bare", 1000, 5000, 4990, 5010, false}, {"found", 10, 1000, 990, 1010, false},
	};
	struct diff_opts o = {.confidence = 0.99, .min_change = 0.02};
	/* The second is twice as long. */
	struct side *sa = make("1000000000", a, 6), *sb = make("2000000000", b, 6);
	struct diff *d;

	(void)state;
	assert_int_equal(diff__new(sa, sb, &o, &d), 0);
	assert_int_equal(d->nspans, 7);
	assert_int_equal(row(d, "up")->verdict, DIFF_SLOWER);
	assert_int_equal(row(d, "down")->verdict, DIFF_FASTER);
	assert_int_equal(row(d, "same")->verdict, DIFF_SAME);
	assert_false(row(d, "same")->changed);
	assert_int_equal(row(d, "few")->verdict, DIFF_TOO_FEW);
	assert_int_equal(row(d, "bare")->verdict, DIFF_NONE);
	assert_int_equal(row(d, "lost")->verdict, DIFF_GONE);
	assert_int_equal(row(d, "found")->verdict, DIFF_NEW);
	/* Per second: 2 ms a second less 1 ms; the first row explains most. */
	assert_float_equal(row(d, "down")->explains, -1e6, 1e-6);
	assert_ptr_equal(&d->rows[0], row(d, "bare"));
	assert_float_equal(d->rows[0].explains, 1.5e6, 1e-6);
	assert_float_equal(row(d, "up")->explains, 200000, 1e-6);
	/* The node "up/down" is there on both sides. */
	assert_int_not_equal(row(d, "up/down")->a, SIDE_NONE);
	assert_int_not_equal(row(d, "up/down")->b, SIDE_NONE);
	for (int k = 0; k < DIFF_FIGURES; k++) {
		const struct diff_figure *f = &row(d, "up")->figures[k];

		if (diff_figures[k].kind == FIG_MAX || diff_figures[k].kind == FIG_COUNT)
			assert_int_equal(f->verdict, DIFF_NONE);
		if (diff_figures[k].q == 0.5) {
			assert_int_equal(f->verdict, DIFF_SLOWER);
			assert_float_equal(f->change, 0.2, 1e-9);
			assert_true(f->ci.lo > 0.15 && f->ci.hi < 0.25);
		}
	}
	diff__free(d);
	/* The same change is none when less than a half does not matter. */
	o.min_change = 0.5;
	assert_int_equal(diff__new(sa, sb, &o, &d), 0);
	assert_int_equal(row(d, "up")->verdict, DIFF_SAME);
	assert_int_equal(row(d, "down")->verdict, DIFF_FASTER);
	diff__free(d);
	side__free(sa);
	side__free(sb);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(t_summary),	  cmocka_unit_test(t_bad_documents),
	    cmocka_unit_test(t_last_line_counts), cmocka_unit_test(t_deep_documents),
	    cmocka_unit_test(t_select),		  cmocka_unit_test(t_verdicts),
	    cmocka_unit_test(t_strict),		  cmocka_unit_test(t_misfits),
	    cmocka_unit_test(t_gpu_lost),	  cmocka_unit_test(t_diff),
	};

	return cmocka_run_group_tests_name("model_check", tests, NULL, NULL);
}

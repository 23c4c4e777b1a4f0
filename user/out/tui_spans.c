/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tui_spans.c - the first page: spans with their figures, and the selected one's histogram. */
#include <string.h>

#include "model/rows.h"
#include "out/text.h"
#include "out/tui_impl.h"

#define NAME_MIN      16
#define NAME_SUFFIXED 8 /* columns of a name that it must leave to be followed by anything */
#define FIGURE	      8 /* columns of a figure, blank included */
#define PICTURE	      16
#define HIST_SHARE    3 /* the histogram takes at most a third of the page... */
#define HIST_LEAST    8 /* ...and is left out below so many lines */

/* Figures leave in this order when the screen is narrow (the name never does). */
static const enum span_field leaving[] = {SF_SUM, SF_COUNT, SF_P90, SF_SHARE, SF_P999,
					  SF_MAX, SF_RATE,  SF_P99, SF_P50};
/* What follows a name, so that no figure is taken for a latency that is none. */
static const char *const suffixes[ROW_CLASSES] = {"", " (interval)", " (value)"};

struct layout {
	bool shown[SF_N];
	int width[SF_N];
	int name, picture;
};

static const char *name_of(const struct span_row *r)
{
	return r->span->name ? r->span->name : "?";
}

/* The columns of the longest name and a blank: what is left over is not given to names. */
static int longest_name(const struct tui *t)
{
	int most = NAME_MIN;

	for (size_t i = 0; i < t->rows.n; i++) {
		const struct span_row *r = &t->rows.rows[i];
		int w = tui_width(t, name_of(r)) + (int)strlen(suffixes[r->class]) + 1;

		most = w > most ? w : most;
	}
	return most;
}

static void lay_out(const struct tui *t, struct layout *l)
{
	/* The narrowest screen has room for one figure beside the name. */
	int used = 0, least = t->cols_n < NAME_MIN + FIGURE ? t->cols_n - FIGURE : NAME_MIN;
	int longest = longest_name(t);
	char buf[UNIT_TEXT];

	for (int c = 1; c < TUI_SPAN_COLUMNS; c++) {
		enum span_field f = tui_span_columns[c];

		l->shown[f] = true;
		l->width[f] = FIGURE;
		/* Counts are shown with all digits. */
		for (size_t i = 0; f == SF_COUNT && i < t->rows.n; i++) {
			int w = (int)strlen(unit__count(buf, t->rows.rows[i].count)) + 1;

			l->width[f] = w > l->width[f] ? w : l->width[f];
		}
		used += l->width[f];
	}
	l->picture = PICTURE;
	if (used + l->picture + least > t->cols_n)
		l->picture = 0;
	for (size_t i = 0; used + least > t->cols_n && i < sizeof(leaving) / sizeof(leaving[0]);
	     i++) {
		l->shown[leaving[i]] = false;
		used -= l->width[leaving[i]];
	}
	if (!l->picture && t->cols_n - used >= 24 + PICTURE)
		l->picture = PICTURE;
	l->name = t->cols_n - used - l->picture;
	l->name = l->name < longest ? l->name : longest;
}

/* Eight heights; of no value a blank, of any at least the lowest. */
static void draw_picture(struct tui *t, const struct span_row *r, int y, int x, int attr)
{
	static const char *const blocks[] = {" ",
					     "\xe2\x96\x81",
					     "\xe2\x96\x82",
					     "\xe2\x96\x83",
					     "\xe2\x96\x84",
					     "\xe2\x96\x85",
					     "\xe2\x96\x86",
					     "\xe2\x96\x87",
					     "\xe2\x96\x88"};
	static const char *const ascii[] = {" ", ".", ".", ":", ":", "-", "=", "+", "#"};
	uint64_t counts[PICTURE - 2], most = 0;
	char text[(PICTURE - 2) * 3 + 1] = "";

	if (!hist_rows__columns(r->span->hist, counts, PICTURE - 2))
		return;
	for (int i = 0; i < PICTURE - 2; i++)
		most = counts[i] > most ? counts[i] : most;
	for (int i = 0; i < PICTURE - 2 && most; i++) {
		int level = (int)((double)counts[i] / most * 8 + 0.5);

		level = counts[i] && !level ? 1 : level;
		strcat(text, t->utf8 ? blocks[level] : ascii[level]);
	}
	tui_put(t, y, x, PICTURE - 2, attr, text);
}

static void draw_heading(struct tui *t, const struct layout *l, int y)
{
	int x = l->name;
	char text[32];

	tui_fill(t, y, A_UNDERLINE);
	for (int c = 0; c < TUI_SPAN_COLUMNS; c++) {
		enum span_field f = tui_span_columns[c];
		bool sorted = (unsigned int)c == t->sort;
		int attr = A_UNDERLINE | (sorted ? A_BOLD : 0);

		if (c && !l->shown[f])
			continue;
		snprintf(text, sizeof(text), "%s%s", span_fields[f].heading,
			 !sorted      ? ""
			 : t->reverse ? "^"
			 : t->utf8    ? "\xe2\x96\xbe"
				      : "v");
		if (!c) {
			tui_put(t, y, 0, l->name - 1, attr, text);
		} else {
			tui_put_right(t, y, x, l->width[f], attr, text);
			x += l->width[f];
		}
	}
	if (l->picture)
		tui_put(t, y, x + 2, l->picture - 2, A_UNDERLINE, "distribution");
}

static void draw_row(struct tui *t, const struct layout *l, const struct span_row *r, int y,
		     bool selected)
{
	int x = l->name, attr = selected ? A_REVERSE : 0, used;
	int room = l->name - 1 - (int)strlen(suffixes[r->class]);
	struct field_value v;
	char buf[UNIT_TEXT];

	if (selected)
		tui_fill(t, y, A_REVERSE);
	if (room < NAME_SUFFIXED) { /* the name matters more */
		tui_put_name(t, y, 0, l->name - 1, attr, name_of(r));
	} else {
		used = tui_put_name(t, y, 0, room, attr, name_of(r));
		tui_put(t, y, used, l->name - 1 - used, attr, suffixes[r->class]);
	}
	for (int c = 1; c < TUI_SPAN_COLUMNS; c++) {
		enum span_field f = tui_span_columns[c];
		const char *text;

		if (!l->shown[f])
			continue;
		span_field__get(r, f, &v);
		text = field__format(&span_fields[f], &v, buf);
		/* The sum of intervals or of plain numbers is no time spent. */
		if (f == SF_SUM && r->class != ROW_SPAN)
			text = "-";
		tui_put_right(t, y, x, l->width[f], attr, text);
		x += l->width[f];
	}
	if (l->picture)
		draw_picture(t, r, y, x + 2, selected ? attr : tui_colour(COLOUR_BAR));
}

void tui_spans__draw(struct tui *t, int y, int height)
{
	struct layout l = {0};
	int hist = height / HIST_SHARE;
	const struct span_row *selected;

	if (hist < HIST_LEAST)
		hist = 0;
	/* The list gets what it needs; the histogram all that is left. */
	if (hist && (size_t)(height - 1 - hist) > t->spans.n)
		hist = height - 1 - (int)t->spans.n;
	lay_out(t, &l);
	draw_heading(t, &l, y);
	tui_list__fit(&t->spans, t->spans.n, height > 1 + hist ? height - 1 - hist : 0);
	for (size_t i = 0; i < t->spans.height && t->spans.top + i < t->spans.n; i++)
		draw_row(t, &l, t->order[t->spans.top + i], y + 1 + (int)i,
			 t->spans.top + i == t->spans.selected);
	if (!t->spans.n)
		tui_put(t, y + 1, 0, t->cols_n, tui_colour(COLOUR_DIM),
			*t->filter ? "no span has this in its name" : "no spans");
	selected = tui_view__selected(t);
	if (hist && selected)
		tui_hist__draw_rows(t, selected, y + height - hist + 1, hist - 1);
}

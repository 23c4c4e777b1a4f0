/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tui_hist.c - the large histogram of the selected span, and all its figures. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "model/rows.h"
#include "out/text.h"
#include "out/tui_impl.h"

#define ROWS_LEAST 9  /* what hist_rows__make asks for at least */
#define ROWS_MOST  40 /* finer is no clearer */
#define BOUNDS	   22
#define BAR_MOST   200

static void bound(const struct span_row *row, long double v, char buf[UNIT_TEXT])
{
	if (row->class == ROW_VALUE)
		unit__value(buf, v);
	else
		unit__time(buf, v);
}

static void draw_row(struct tui *t, const struct span_row *row, const struct hist_row *r,
		     uint64_t most, int y)
{
	char lo[UNIT_TEXT], hi[UNIT_TEXT], text[2 * UNIT_TEXT + 8];
	char bar[4 * BAR_MOST + 5];
	int x = 0, width;

	if (r->gap) {
		tui_put_right(t, y, 0, 9, tui_colour(COLOUR_DIM), "...");
		return;
	}
	bound(row, r->lo, lo);
	bound(row, r->hi, hi);
	snprintf(text, sizeof(text), "%9s .. %-8s", lo, hi);
	x += BOUNDS;
	tui_put(t, y, 0, x, 0, text);
	if (t->cols_n >= 60) {
		tui_put_right(t, y, x, 11, 0, unit__count(lo, r->n));
		x += 11;
		if (r->n)
			tui_put_right(t, y, x, 8, 0, unit__share(lo, (double)r->n / row->in_hist));
		x += 8;
	}
	width = t->cols_n - x - 2;
	width = width > BAR_MOST ? BAR_MOST : width;
	if (width < 1)
		return;
	text__bar(bar, (double)r->n / most, width, t->utf8);
	tui_put(t, y, x + 1, width, tui_colour(COLOUR_BAR), bar);
}

void tui_hist__draw_rows(struct tui *t, const struct span_row *row, int y, int height)
{
	static const char *const of[ROW_CLASSES] = {"span", "interval", "value"};
	struct hist_row *rows;
	uint64_t most = 0;
	size_t n, max;

	if (height < 1)
		return;
	tui_putf(t, y, 0, A_BOLD, "%s: %" PRIu64 " %s%s", row->span->name ? row->span->name : "?",
		 row->in_hist, of[row->class], row->in_hist == 1 ? "" : "s");
	y++;
	height--;
	max = height < ROWS_LEAST ? ROWS_LEAST : height > ROWS_MOST ? ROWS_MOST : height;
	n = hist_rows__make(row->span->hist, max, &rows);
	for (size_t i = 0; i < n; i++)
		most = rows[i].n > most ? rows[i].n : most;
	for (size_t i = 0; i < n && (int)i < height; i++) {
		/* Say that the screen ends before the histogram does. */
		if ((int)i == height - 1 && n > (size_t)height)
			tui_put(t, y + (int)i, 0, t->cols_n, tui_colour(COLOUR_DIM), "   (more)");
		else
			draw_row(t, row, &rows[i], most, y + (int)i);
	}
	if (!n && height > 0)
		tui_put(t, y, 0, t->cols_n, tui_colour(COLOUR_DIM), "   nothing yet");
	free(rows);
}

/* All figures of the span, as many to a line as fit. Returns the lines used. */
static int draw_figures(struct tui *t, const struct span_row *row, int y, int height)
{
	int x = 0, line = 0;

	for (enum span_field f = SF_KIND; f < SF_N; f++) {
		struct field_value v;
		char buf[UNIT_TEXT], text[96];
		int width;

		span_field__get(row, f, &v);
		if (v.state == FIELD_ABSENT)
			continue;
		/* What went wrong is worth a word only when it did. */
		if (f >= SF_OPEN && v.num == 0)
			continue;
		snprintf(text, sizeof(text), "%s %s", span_fields[f].heading,
			 field__format(&span_fields[f], &v, buf));
		width = (int)strlen(text);
		if (x && x + width > t->cols_n) {
			x = 0;
			line++;
		}
		if (line >= height)
			return height;
		tui_put(t, y + line, x, width, f > SF_OPEN ? tui_colour(COLOUR_WARN) : 0, text);
		x += width + 3;
	}
	return line + 1;
}

void tui_hist__draw(struct tui *t, int y, int height)
{
	const struct span_row *row = tui_view__selected(t);
	int used;

	if (!row) {
		tui_put(t, y, 0, t->cols_n, tui_colour(COLOUR_DIM), "no span selected");
		return;
	}
	used = draw_figures(t, row, y, height > 8 ? 4 : height / 2);
	tui_hist__draw_rows(t, row, y + used, height - used);
}

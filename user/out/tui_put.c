/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * tui_put.c - writing to the screen: clipped, so that nothing ever wraps, and in colours that
 * read on light and dark grounds (only middle tones; the ground itself is left alone).
 */
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "out/text.h"
#include "out/tui_impl.h"

static bool have_colours;

void tui_put__start_colours(void)
{
	const char *no = getenv("NO_COLOR");
	bool many;

	have_colours = false;
	if ((no && *no) || !has_colors() || start_color() == ERR)
		return;
	if (use_default_colors() == ERR)
		return;
	many = COLORS >= 256;
	init_pair(COLOUR_BAR, many ? 31 : COLOR_CYAN, -1);
	init_pair(COLOUR_WARN, many ? 166 : COLOR_MAGENTA, -1);
	init_pair(COLOUR_ALERT, many ? 160 : COLOR_RED, -1);
	have_colours = true;
}

int tui_colour(enum tui_colour c)
{
	switch (c) {
	case COLOUR_PLAIN:
		return 0;
	case COLOUR_DIM:
		return A_DIM;
	case COLOUR_WARN:
	case COLOUR_ALERT:
		return have_colours ? COLOR_PAIR(c) | A_BOLD : A_BOLD;
	case COLOUR_BAR:
		return have_colours ? COLOR_PAIR(c) : 0;
	}
	return 0;
}

enum place { PLACE_LEFT, PLACE_NAME, PLACE_RIGHT };

static int put_fitted(struct tui *t, int y, int x, int width, int attr, const char *text,
		      enum place place)
{
	char *clean, *fit = NULL;
	int used = 0;

	if (width > t->cols_n - x)
		width = t->cols_n - x;
	if (y < 0 || y >= t->rows_n || x < 0 || width <= 0)
		return 0;
	clean = text__printable(text, t->utf8);
	if (clean)
		fit = place == PLACE_NAME ? text__fit_name(clean, width, t->utf8)
					  : text__fit(clean, width, t->utf8);
	if (fit) {
		used = (int)text__width(fit, t->utf8);
		attrset(attr);
		mvaddstr(y, place == PLACE_RIGHT ? x + width - used : x, fit);
		attrset(A_NORMAL);
	}
	free(clean);
	free(fit);
	return used;
}

int tui_put(struct tui *t, int y, int x, int width, int attr, const char *text)
{
	return put_fitted(t, y, x, width, attr, text, PLACE_LEFT);
}

int tui_put_name(struct tui *t, int y, int x, int width, int attr, const char *text)
{
	return put_fitted(t, y, x, width, attr, text, PLACE_NAME);
}

int tui_put_right(struct tui *t, int y, int x, int width, int attr, const char *text)
{
	return put_fitted(t, y, x, width, attr, text, PLACE_RIGHT);
}

int tui_putf(struct tui *t, int y, int x, int attr, const char *fmt, ...)
{
	char buf[512];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(buf, sizeof(buf), fmt, ap);
	va_end(ap);
	return put_fitted(t, y, x, t->cols_n, attr, buf, PLACE_LEFT);
}

int tui_width(const struct tui *t, const char *text)
{
	char *clean = text__printable(text, t->utf8);
	int width = clean ? (int)text__width(clean, t->utf8) : 0;

	free(clean);
	return width;
}

void tui_fill(struct tui *t, int y, int attr)
{
	if (y < 0 || y >= t->rows_n)
		return;
	attrset(attr);
	mvhline(y, 0, ' ' | (chtype)attr, t->cols_n);
	attrset(A_NORMAL);
}

/* Keeps the selection on a line that exists and on the screen. */
void tui_list__fit(struct tui_list *l, size_t n, size_t height)
{
	l->n = n;
	l->height = height;
	if (l->selected >= n)
		l->selected = n ? n - 1 : 0;
	if (l->selected < l->top)
		l->top = l->selected;
	if (height && l->selected >= l->top + height)
		l->top = l->selected - height + 1;
	if (l->top + height > n)
		l->top = n > height ? n - height : 0;
}

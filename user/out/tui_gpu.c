// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* tui_gpu.c - the page of the GPU: the sections of the plain report, to scroll through. */
#include <stdlib.h>
#include <string.h>

#include "out/gpu.h"
#include "out/tui_impl.h"

#define GPU_TABLE_ROWS 20

/* The report as text; malloc'ed. NULL: no memory. */
static char *text_of(const struct tui *t)
{
	char *text = NULL;
	size_t len;
	FILE *f = open_memstream(&text, &len);
	struct page page = {
	    .f = f, .s = t->shown, .width = (unsigned int)t->cols_n, .utf8 = t->utf8};

	if (!f)
		return NULL;
	if (t->base)
		page__line(&page, 0,
			   "since the reset (- where only the time before it tells; up to a second "
			   "behind)");
	page__gpu(&page, t->shown->gpu, GPU_TABLE_ROWS);
	if (fclose(f)) {
		free(text);
		return NULL;
	}
	return text;
}

static void draw_lines(struct tui *t, int y, char *text)
{
	struct tui_list *l = &t->gpu;
	size_t line = 0;
	char *at = text;

	for (char *next; *at; at = next, line++) {
		size_t len = strcspn(at, "\n");

		next = at + len + (at[len] == '\n');
		at[len] = '\0';
		if (line < l->top || line >= l->top + l->height)
			continue;
		if (line == l->selected)
			tui_fill(t, y + (int)(line - l->top), A_REVERSE);
		tui_put(t, y + (int)(line - l->top), 0, t->cols_n,
			line == l->selected ? A_REVERSE : 0, at);
	}
}

void tui_gpu__draw(struct tui *t, int y, int height)
{
	char *text, *start;
	size_t lines = 0;

	if (!t->shown->gpu) {
		tui_put(t, y, 0, t->cols_n, tui_colour(COLOUR_DIM), "nothing of a GPU has come");
		return;
	}
	text = text_of(t);
	if (!text)
		return;
	start = text + (*text == '\n');
	for (const char *p = start; *p; p++)
		lines += *p == '\n';
	tui_list__fit(&t->gpu, lines, (size_t)(height > 0 ? height : 0));
	draw_lines(t, y, start);
	free(text);
}

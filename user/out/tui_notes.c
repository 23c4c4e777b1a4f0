/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tui_notes.c - the page of what was refused, failed, lost or said. */
#include <inttypes.h>

#include "out/tui_impl.h"

/* One pass over all lines: counts them, and draws those in the window. */
struct pager {
	struct tui *t;
	size_t line;
	int y;
};

static void put_line(struct pager *p, int attr, const char *word, const char *what, const char *why)
{
	const struct tui_list *l = &p->t->notes;
	size_t line = p->line++;

	if (!l->height || line < l->top || line >= l->top + l->height)
		return;
	tui_putf(p->t, p->y + (int)(line - l->top), 0, attr | (line == l->selected ? A_REVERSE : 0),
		 "%s%s%s%s", word, what, why ? ": " : "", why ? why : "");
}

static size_t pass(struct tui *t, int y)
{
	struct pager p = {.t = t, .y = y};
	const struct snapshot *s = t->shown;
	char buf[64];

	for (size_t i = 0; i < s->nspans; i++) {
		uint64_t lost = snap_span__lost(&s->spans[i]);

		if (!lost)
			continue;
		snprintf(buf, sizeof(buf), "%" PRIu64 " lost of ", lost);
		put_line(&p, tui_colour(COLOUR_ALERT), buf, s->spans[i].name, NULL);
	}
	for (size_t i = 0; i < s->nfailed; i++)
		put_line(&p, tui_colour(COLOUR_ALERT), "failed: ", s->failed[i].site,
			 s->failed[i].reason);
	for (size_t i = 0; i < s->nrefused; i++)
		put_line(&p, tui_colour(COLOUR_WARN), "refused: ", s->refused[i].site,
			 s->refused[i].reason);
	for (size_t i = 0; i < s->nnotes; i++)
		put_line(&p, 0, "note: ", s->notes[i], NULL);
	for (size_t i = 0; i < t->nmessages; i++)
		put_line(&p, 0, "", t->messages[i], NULL);
	return p.line;
}

void tui_notes__draw(struct tui *t, int y, int height)
{
	t->notes.height = 0; /* counts only */
	tui_list__fit(&t->notes, pass(t, y), height);
	pass(t, y);
	if (!t->notes.n)
		tui_put(t, y, 0, t->cols_n, tui_colour(COLOUR_DIM),
			"nothing was refused, failed or lost");
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tui.c - the full-screen view: snapshots come in, keys come in, the screen is painted. */
#include <errno.h>
#include <inttypes.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "out/text.h"
#include "out/tui_impl.h"

#define MESSAGE_S 8 /* how long a message stands before the keys come back */

int tui__new(struct tui **out, struct err *e)
{
	struct tui *t = calloc(1, sizeof(*t));
	int err;

	*out = NULL;
	if (!t)
		return err_set(e, -ENOMEM, "out of memory");
	t->utf8 = text__utf8();
	while (tui_span_columns[t->sort] != SF_SUM)
		t->sort++;
	err = tui_term__open(e);
	if (err) {
		free(t);
		return err;
	}
	*out = t;
	tui_paint(t);
	return 0;
}

void tui__free(struct tui *t)
{
	if (!t)
		return;
	tui_term__close();
	tui_view__clear(t);
	for (size_t i = 0; i < t->nmessages; i++)
		free(t->messages[i]);
	free(t);
}

int tui__fd(const struct tui *t)
{
	(void)t;
	return tui_term__fd();
}

static uint64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000000000ull + ts.tv_nsec;
}

static void paint_title(struct tui *t)
{
	const struct snapshot *s = t->shown;
	double overhead = snapshot__overhead_pct(s);
	uint64_t lost = snapshot__lost(s);
	char left[256], right[256], buf[UNIT_TEXT];
	size_t n = 0;
	unsigned int secs = (unsigned int)snapshot__duration_s(s);
	int used;

	snprintf(left, sizeof(left), " %s", s->comm ? s->comm : "target");
	if (s->npids)
		snprintf(left + strlen(left), sizeof(left) - strlen(left), " %d%s", s->pids[0],
			 s->npids > 1 ? "+" : "");
	snprintf(left + strlen(left), sizeof(left) - strlen(left), "  %02u:%02u:%02u%s%s",
		 secs / 3600, secs / 60 % 60, secs % 60, s->ended ? "  ended" : "",
		 t->paused ? "  PAUSED" : "");
	n += snprintf(right, sizeof(right), "armed %" PRIu64, s->armed);
	if (s->nrefused)
		n += snprintf(right + n, sizeof(right) - n, "  refused %zu", s->nrefused);
	if (s->nfailed)
		n += snprintf(right + n, sizeof(right) - n, "  failed %zu", s->nfailed);
	if (lost)
		n += snprintf(right + n, sizeof(right) - n, "  LOST %" PRIu64, lost);
	snprintf(right + n, sizeof(right) - n, "  overhead %s ",
		 overhead < 0 ? "unknown" : unit__share(buf, overhead / 100));
	tui_fill(t, 0, A_REVERSE);
	used = tui_put(t, 0, 0, t->cols_n, A_REVERSE, left);
	if (t->cols_n - used > 2)
		tui_put_right(t, 0, used + 2, t->cols_n - used - 2, A_REVERSE, right);
}

static void paint_tabs(struct tui *t)
{
	static const char *const names[PAGE_N] = {"1 spans", "2 tree", "3 histogram", "4 notes",
						  "5 GPU"};
	int x = 0;

	for (int p = 0; p < (int)PAGE_N; p++) {
		if (p == PAGE_GPU && !t->shown->gpu)
			continue;
		x += tui_put(t, 1, x, t->cols_n - x,
			     p == (int)t->page && !t->help ? A_BOLD | A_UNDERLINE : A_NORMAL,
			     names[p]);
		x += 2;
	}
	if (*t->filter && !t->editing && x < t->cols_n)
		tui_putf(t, 1, x, tui_colour(COLOUR_WARN), "/%s  (Esc: all)", t->filter);
}

static void paint_status(struct tui *t)
{
	int y = t->rows_n - 1;
	bool fresh = t->nmessages && now_ns() - t->message_ns < MESSAGE_S * 1000000000ull;

	move(y, 0);
	clrtoeol();
	if (t->editing) {
		int used = tui_putf(t, y, 0, A_BOLD, "/%s", t->filter);

		if (used < t->cols_n)
			tui_put(t, y, used, 1, A_REVERSE, " ");
	} else if (fresh) {
		tui_put(t, y, 0, t->cols_n, tui_colour(COLOUR_WARN), t->messages[t->nmessages - 1]);
	} else {
		tui_put(t, y, 0, t->cols_n, tui_colour(COLOUR_DIM),
			t->page == PAGE_TREE
			    ? "q quit  ? help  Tab page  Enter fold  / filter  p pause  r reset"
			    : "q quit  ? help  Tab page  < > sort  / filter  p pause  r reset");
	}
}

static void paint_page(struct tui *t, int y, int height)
{
	if (t->help) {
		tui_help__draw(t, y, height);
		return;
	}
	switch (t->page) {
	case PAGE_SPANS:
		tui_spans__draw(t, y, height);
		break;
	case PAGE_TREE:
		tui_tree__draw(t, y, height);
		break;
	case PAGE_HIST:
		tui_hist__draw(t, y, height);
		break;
	case PAGE_NOTES:
		tui_notes__draw(t, y, height);
		break;
	case PAGE_GPU:
		tui_gpu__draw(t, y, height);
		break;
	case PAGE_N:
		break;
	}
}

void tui_paint(struct tui *t)
{
	tui_term__changed();
	t->rows_n = LINES;
	t->cols_n = COLS;
	erase();
	if (t->cols_n < TUI_MIN_COLS || t->rows_n < TUI_MIN_ROWS) {
		mvaddnstr(t->rows_n / 2, 0, "terminal too small", t->cols_n);
	} else if (!t->shown) {
		tui_put(t, 0, 0, t->cols_n, 0, "waiting for the first figures");
		paint_status(t);
	} else {
		paint_title(t);
		paint_tabs(t);
		paint_page(t, 2, t->rows_n - 3);
		paint_status(t);
	}
	refresh();
}

enum tui_action tui__input(struct tui *t)
{
	enum tui_action action = TUI_NONE;
	int key;

	while ((key = getch()) != ERR) {
		enum tui_action a = key == KEY_RESIZE ? TUI_NONE : tui_key(t, key);

		if (a == TUI_QUIT)
			return a;
		if (a != TUI_NONE)
			action = a;
	}
	if (tui_term__gone())
		return TUI_QUIT;
	tui_paint(t);
	return action;
}

void tui__draw(struct tui *t, struct snapshot *s)
{
	/* Out of memory leaves the figures before on the screen. */
	tui_view__take(t, s);
	tui_paint(t);
}

void tui__message(struct tui *t, const char *line)
{
	char *copy = strdup(line);

	if (!copy)
		return;
	copy[strcspn(copy, "\n")] = '\0';
	if (t->nmessages == MESSAGES_MAX) {
		free(t->messages[0]);
		memmove(t->messages, t->messages + 1, (MESSAGES_MAX - 1) * sizeof(*t->messages));
		t->nmessages--;
	}
	t->messages[t->nmessages++] = copy;
	t->message_ns = now_ns();
	tui_paint(t);
}

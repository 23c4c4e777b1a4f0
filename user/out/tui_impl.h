/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Inside the full-screen view: the state that its files share.
 *
 *	tui.c		constructor, snapshots coming in, the frame around a page
 *	tui_term.c	the terminal's life cycle, restored on every way out
 *	tui_view.c	what is shown: the snapshot since the last reset, sorted and filtered
 *	tui_put.c	writing clipped, coloured text
 *	tui_spans.c, tui_tree.c, tui_hist.c, tui_notes.c, tui_gpu.c   the pages
 *	tui_keys.c	keys and the help page
 */
#ifndef QBPF_OUT_TUI_IMPL_H
#define QBPF_OUT_TUI_IMPL_H

#include <curses.h>

#include "err.h"
#include "out/fields.h"
#include "out/tui.h"

enum tui_page { PAGE_SPANS, PAGE_TREE, PAGE_HIST, PAGE_NOTES, PAGE_GPU, PAGE_N };

/* Colours by meaning; each is only a hint on top of text that says the same. */
enum tui_colour { COLOUR_PLAIN, COLOUR_BAR, COLOUR_WARN, COLOUR_ALERT, COLOUR_DIM };

#define FILTER_MAX   64
#define MESSAGES_MAX 50
#define TUI_MIN_COLS 20
#define TUI_MIN_ROWS 5

/* One list with a selection that scrolls. */
struct tui_list {
	size_t n;	 /* lines in all */
	size_t selected; /* line */
	size_t top;	 /* first line shown */
	size_t height;	 /* lines that fitted last time: a page */
};

/* The columns of the spans page, in order; the first is the name. */
#define TUI_SPAN_COLUMNS 10
extern const enum span_field tui_span_columns[TUI_SPAN_COLUMNS];

struct tui {
	/* snapshots, as they came: cumulative */
	struct snapshot *last; /* the newest */
	struct snapshot *base; /* at the last reset, NULL: none */

	/* what is shown */
	struct snapshot *shown; /* since base; owned */
	struct tree *tree;
	struct span_rows rows;
	double *rates;	  /* per span, of the latest interval; has nrates entries */
	uint64_t *counts; /* per span at the latest snapshot, for the next interval */
	size_t nrates;
	uint64_t counts_ns;
	struct span_row **order;	     /* sorted and filtered: spans.n entries */
	const struct tree_node **open_nodes; /* unfolded and filtered: nodes.n entries */
	uint8_t *folded;		     /* by node id */
	size_t nfolded;

	/* what the person chose */
	enum tui_page page;
	bool help, paused, editing, reverse;
	unsigned int sort; /* index into tui_span_columns */
	char filter[FILTER_MAX];
	struct tui_list spans, nodes, notes, gpu;
	bool chosen;	      /* the person moved the selection: it sticks to its span */
	size_t chosen_span;   /* index in the snapshot */
	uint32_t chosen_node; /* id, 0: none */

	/* talk, a ring */
	char *messages[MESSAGES_MAX];
	size_t nmessages;
	uint64_t message_ns; /* when the latest came */

	bool utf8;
	int rows_n, cols_n; /* of the screen */
};

/* tui_term.c */
int tui_term__open(struct err *e);
void tui_term__close(void);
int tui_term__fd(void);
/* Follows the terminal's size; true when the whole screen must be drawn anew. */
bool tui_term__changed(void);
bool tui_term__gone(void); /* hung up: no key will ever come */

/* tui_view.c */
int tui_view__take(struct tui *t, struct snapshot *s); /* takes ownership */
void tui_view__clear(struct tui *t);
int tui_view__reset(struct tui *t);
int tui_view__pause(struct tui *t, bool paused);
void tui_view__arrange(struct tui *t); /* sort, filter, fold: after any choice */
const struct span_row *tui_view__selected(const struct tui *t);
bool tui_view__folded(const struct tui *t, uint32_t id);
int tui_view__fold(struct tui *t, uint32_t id, bool folded);

/* tui_put.c */
void tui_put__start_colours(void);
int tui_colour(enum tui_colour c);
/* Printable text from x, cut to width and to the screen. Returns the columns written. */
int tui_put(struct tui *t, int y, int x, int width, int attr, const char *text);
/* The same of a span's name: text__fit_name. */
int tui_put_name(struct tui *t, int y, int x, int width, int attr, const char *text);
int tui_put_right(struct tui *t, int y, int x, int width, int attr, const char *text);
int tui_putf(struct tui *t, int y, int x, int attr, const char *fmt, ...)
    __attribute__((format(printf, 5, 6)));
void tui_fill(struct tui *t, int y, int attr);	      /* the whole line */
int tui_width(const struct tui *t, const char *text); /* the columns that it takes on the screen */
void tui_list__fit(struct tui_list *l, size_t n, size_t height);

/* pages: draw into the lines [y, y + height) */
void tui_spans__draw(struct tui *t, int y, int height);
void tui_tree__draw(struct tui *t, int y, int height);
void tui_hist__draw(struct tui *t, int y, int height); /* full page */
void tui_hist__draw_rows(struct tui *t, const struct span_row *row, int y, int height);
void tui_notes__draw(struct tui *t, int y, int height);
void tui_gpu__draw(struct tui *t, int y, int height);
void tui_help__draw(struct tui *t, int y, int height);

/* tui_keys.c */
enum tui_action tui_key(struct tui *t, int key);

/* tui.c */
void tui_paint(struct tui *t);

#endif

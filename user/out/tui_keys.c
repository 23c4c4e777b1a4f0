/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* tui_keys.c - what each key does, and the page that says so. */
#include <string.h>

#include "out/tui_impl.h"

static const struct {
	const char *keys, *what;
} help[] = {
    {"1 2 3 4  Tab", "spans, call tree, histogram, notes; the next page"},
    {"5  g", "what the GPU did, where one was heard of"},
    {"up down  k j", "select"},
    {"PgUp PgDn  Home End", "by the page; to the ends"},
    {"left right  < >", "spans: sort by the column to the left, to the right"},
    {"o", "spans: turn the order round"},
    {"n c t m x", "spans: sort by name, count, rate, p50, max"},
    {"left right  Enter", "tree: fold, unfold"},
    {"- +", "tree: fold all, unfold all"},
    {"Enter", "spans: the large histogram"},
    {"/", "show only names that contain a text; Esc shows all again"},
    {"p  Space", "pause: figures stand still, tracing goes on"},
    {"r", "reset: figures start at zero, tracing goes on"},
    {"?", "this page"},
    {"q", "quit, with a final report"},
};

static const char *const marks[] = {
    "~ marks what is below the measuring floor; - what the sample cannot tell",
    "After a reset a node's or GPU kernel's min and max are - until there is a new record,",
    "the GPU's percentiles for good: the final report counts from the start and has them all.",
};

void tui_help__draw(struct tui *t, int y, int height)
{
	for (size_t i = 0; i < sizeof(help) / sizeof(help[0]) && (int)i < height; i++) {
		tui_put(t, y + (int)i, 1, 20, A_BOLD, help[i].keys);
		tui_put(t, y + (int)i, 22, t->cols_n, 0, help[i].what);
	}
	for (size_t i = 0; i < sizeof(marks) / sizeof(marks[0]); i++) {
		int line = (int)(sizeof(help) / sizeof(help[0]) + 1 + i);

		if (line < height)
			tui_put(t, y + line, 1, t->cols_n, tui_colour(COLOUR_DIM), marks[i]);
	}
}

static struct tui_list *current_list(struct tui *t)
{
	switch (t->page) {
	case PAGE_TREE:
		return &t->nodes;
	case PAGE_NOTES:
		return &t->notes;
	case PAGE_GPU:
		return &t->gpu;
	default:
		return &t->spans;
	}
}

/* The selection stays with what was chosen. */
static void choose(struct tui *t)
{
	if (t->page == PAGE_TREE) {
		if (t->nodes.selected < t->nodes.n)
			t->chosen_node = t->open_nodes[t->nodes.selected]->node->id;
	} else if (t->page != PAGE_NOTES && t->page != PAGE_GPU && t->spans.selected < t->spans.n) {
		t->chosen = true;
		t->chosen_span = t->order[t->spans.selected]->index;
	}
}

static void move_by(struct tui *t, long by)
{
	struct tui_list *l = current_list(t);
	long at = (long)l->selected + by, last = l->n ? (long)l->n - 1 : 0;

	l->selected = at < 0 ? 0 : at > last ? last : at;
	choose(t);
}

static bool move_key(struct tui *t, int key)
{
	long page = (long)current_list(t)->height;

	page = page > 1 ? page - 1 : 1;
	switch (key) {
	case KEY_UP:
	case 'k':
		move_by(t, -1);
		return true;
	case KEY_DOWN:
	case 'j':
		move_by(t, 1);
		return true;
	case KEY_PPAGE:
		move_by(t, -page);
		return true;
	case KEY_NPAGE:
		move_by(t, page);
		return true;
	case KEY_HOME:
		move_by(t, -(1l << 40));
		return true;
	case KEY_END:
	case 'G':
		move_by(t, 1l << 40);
		return true;
	}
	return false;
}

static void sort_by(struct tui *t, unsigned int column)
{
	t->sort = column;
	t->reverse = false;
	tui_view__arrange(t);
}

static unsigned int column_of(enum span_field f)
{
	unsigned int c = 0;

	while (c < TUI_SPAN_COLUMNS - 1 && tui_span_columns[c] != f)
		c++;
	return c;
}

static bool spans_key(struct tui *t, int key)
{
	static const struct {
		int key;
		enum span_field f;
	} direct[] = {
	    {'n', SF_NAME}, {'c', SF_COUNT}, {'t', SF_RATE}, {'m', SF_P50}, {'x', SF_MAX}};

	switch (key) {
	case KEY_LEFT:
	case '<':
		sort_by(t, t->sort ? t->sort - 1 : TUI_SPAN_COLUMNS - 1);
		return true;
	case KEY_RIGHT:
	case '>':
		sort_by(t, (t->sort + 1) % TUI_SPAN_COLUMNS);
		return true;
	case 'o':
		t->reverse = !t->reverse;
		tui_view__arrange(t);
		return true;
	case '\r':
	case '\n':
	case KEY_ENTER:
		t->page = t->page == PAGE_SPANS ? PAGE_HIST : PAGE_SPANS;
		return true;
	}
	for (size_t i = 0; i < sizeof(direct) / sizeof(direct[0]); i++) {
		if (direct[i].key == key) {
			sort_by(t, column_of(direct[i].f));
			return true;
		}
	}
	return false;
}

static void fold_all(struct tui *t, bool folded)
{
	memset(t->folded, folded, t->nfolded);
	tui_view__arrange(t);
}

static bool tree_key(struct tui *t, int key)
{
	const struct tree_node *n =
	    t->nodes.selected < t->nodes.n ? t->open_nodes[t->nodes.selected] : NULL;
	uint32_t id = n ? n->node->id : 0;

	if (!n)
		return false;
	switch (key) {
	case '\r':
	case '\n':
	case KEY_ENTER:
		choose(t);
		tui_view__fold(t, id, n->first_child && !tui_view__folded(t, id));
		return true;
	case KEY_LEFT:
		/* Of a leaf or a folded node: on to its parent. */
		if ((!n->first_child || tui_view__folded(t, id)) && n->parent->node) {
			t->chosen_node = n->parent->node->id;
			tui_view__arrange(t);
		} else if (n->first_child) {
			choose(t);
			tui_view__fold(t, id, true);
		}
		return true;
	case KEY_RIGHT:
		choose(t);
		tui_view__fold(t, id, false);
		return true;
	case '-':
		fold_all(t, true);
		return true;
	case '+':
		fold_all(t, false);
		return true;
	}
	return false;
}

/* While a filter is typed every key is text, and what matches is shown at once. */
static void edit_key(struct tui *t, int key)
{
	size_t len = strlen(t->filter);

	switch (key) {
	case '\r':
	case '\n':
	case KEY_ENTER:
		t->editing = false;
		break;
	case 27: /* Esc */
		t->editing = false;
		t->filter[0] = '\0';
		break;
	case KEY_BACKSPACE:
	case 127:
	case 8:
		/* A whole character of UTF-8. */
		while (len && (t->filter[len - 1] & 0xc0) == 0x80)
			len--;
		t->filter[len ? len - 1 : 0] = '\0';
		break;
	case 21: /* Ctrl-U */
		t->filter[0] = '\0';
		break;
	default:
		if (key >= 32 && key < 256 && len + 1 < FILTER_MAX) {
			t->filter[len] = (char)key;
			t->filter[len + 1] = '\0';
		}
		break;
	}
	tui_view__arrange(t);
}

/* Round the pages, without that of the GPU when there is nothing on it. */
static void next_page(struct tui *t, int by)
{
	do
		t->page = (t->page + by) % PAGE_N;
	while (t->page == PAGE_GPU && !(t->shown && t->shown->gpu));
}

static enum tui_action common_key(struct tui *t, int key)
{
	switch (key) {
	case 'q':
	case 'Q':
		return TUI_QUIT;
	case '?':
	case 'h':
	case KEY_F(1):
		t->help = !t->help;
		break;
	case '\t':
		next_page(t, 1);
		break;
	case KEY_BTAB:
		next_page(t, PAGE_N - 1);
		break;
	case '5':
	case 'g':
		t->page = PAGE_GPU;
		break;
	case '1':
	case '2':
	case '3':
	case '4':
		t->page = key - '1';
		break;
	case 'p':
	case ' ':
		tui_view__pause(t, !t->paused);
		return t->paused ? TUI_NONE : TUI_REDRAW;
	case 'r':
		tui_view__reset(t);
		break;
	case '/':
		t->editing = true;
		break;
	case 27:
		t->filter[0] = '\0';
		tui_view__arrange(t);
		break;
	}
	return TUI_NONE;
}

enum tui_action tui_key(struct tui *t, int key)
{
	if (t->editing) {
		edit_key(t, key);
		return TUI_NONE;
	}
	if (t->help) { /* any key leaves it, and q means the help */
		t->help = false;
		return TUI_NONE;
	}
	if (t->shown && (move_key(t, key) ||
			 (t->page == PAGE_TREE				 ? tree_key(t, key)
			  : t->page == PAGE_NOTES || t->page == PAGE_GPU ? false
									 : spans_key(t, key))))
		return TUI_NONE;
	return common_key(t, key);
}

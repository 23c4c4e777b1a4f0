// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Overlapping spans in lanes; see lanes.h. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "model/lanes.h"

struct lane {
	uint64_t end_ns;
	uint32_t id;
};

struct lanes {
	struct lane *open; /* by end_ns */
	size_t nopen, room;
	uint32_t used; /* ids given out */
};

struct lanes *lanes__new(void)
{
	return calloc(1, sizeof(struct lanes));
}

void lanes__free(struct lanes *l)
{
	if (!l)
		return;
	free(l->open);
	free(l);
}

/* How many of open[from ..] end at this time or before, counted from 0. */
static size_t ended_by(const struct lanes *l, size_t from, uint64_t ns)
{
	size_t lo = from, hi = l->nopen;

	/* Nearly always the new end is the last of all. */
	if (hi > lo && l->open[hi - 1].end_ns <= ns)
		return hi;
	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (l->open[mid].end_ns <= ns)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static int add(struct lanes *l, size_t at, struct lane lane)
{
	if (l->nopen == l->room) {
		size_t room = l->room ? 2 * l->room : 8;
		struct lane *more = reallocarray(l->open, room, sizeof(*more));

		if (!more)
			return -ENOMEM;
		l->open = more;
		l->room = room;
	}
	memmove(&l->open[at + 1], &l->open[at], (l->nopen - at) * sizeof(*l->open));
	l->open[at] = lane;
	l->nopen++;
	return 0;
}

int lanes__take(struct lanes *l, uint64_t start_ns, uint64_t end_ns, uint32_t *lane, bool *fresh)
{
	/* The one that ended last of those that have: the others fit spans that begin earlier. */
	size_t free_lanes = ended_by(l, 0, start_ns), at;

	*fresh = !free_lanes;
	if (*fresh) {
		*lane = l->used++;
		if (l->nopen == LANES_MAX)
			return 0;
		return add(l, ended_by(l, 0, end_ns), (struct lane){end_ns, *lane});
	}
	*lane = l->open[free_lanes - 1].id;
	at = ended_by(l, free_lanes, end_ns) - 1;
	memmove(&l->open[free_lanes - 1], &l->open[free_lanes],
		(at - (free_lanes - 1)) * sizeof(*l->open));
	l->open[at] = (struct lane){end_ns, *lane};
	return 0;
}

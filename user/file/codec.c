// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Events of one thread to columns and back. */
#include "file/codec.h"

#include "file/varint.h"

/*
 * Fixed part of the payload: the lengths of the parts that follow it, in this order. The symbols'
 * length follows from the number of events and of symbols.
 */
struct columns_header {
	uint32_t nsymbols;
	uint32_t dictionary, a, b, child, arg, tid;
	uint32_t reserved;
	uint64_t base_ns; /* the end before the first event's */
};

_Static_assert(sizeof(struct columns_header) == 40, "columns");

/* How an event's two times are told. */
enum time_mode {
	TIME_NESTED, /* by the children it has, see event_codec__decode */
	TIME_APART,  /* a: its end after the end before it; b: its duration */
	TIME_POINT,  /* a alone: start and end are one */
};

enum symbol_flags { SYMBOL_ARG = 1, SYMBOL_TID = 2, SYMBOL_POINT = 4 };

struct symbol {
	struct event ev; /* kind, span, node and depth */
	uint64_t last_arg;
	uint8_t flags;
	uint8_t mode;
};

/* What is known of the children, at one depth, of a span that has not ended yet. */
struct level {
	uint64_t first_ns; /* start of the first */
	uint64_t sum_ns;   /* of their durations */
	uint64_t used;
};

struct event_codec {
	struct level *levels; /* by depth; the children of depth d are at d + 1 */
	size_t levels_cap;
	struct symbol *symbols;
	size_t symbols_cap;
	struct bytes work; /* the columns while they grow */
	uint32_t *hash;	   /* symbol + 1 */
	size_t hash_cap;
};

struct event_codec *event_codec__new(void)
{
	return calloc(1, sizeof(struct event_codec));
}

void event_codec__free(struct event_codec *c)
{
	if (!c)
		return;
	free(c->levels);
	free(c->symbols);
	free(c->work.p);
	free(c->hash);
	free(c);
}

/* Room for n things of `size` bytes; what was there is lost. */
static int reserve(void *array, size_t *cap, size_t n, size_t size)
{
	void **at = array, *p;

	if (n <= *cap)
		return 0;
	p = malloc(n * size);
	if (!p)
		return -ENOMEM;
	free(*at);
	*at = p;
	*cap = n;
	return 0;
}

static int reserve_symbols(struct event_codec *c, size_t n)
{
	return reserve(&c->symbols, &c->symbols_cap, n, sizeof(*c->symbols));
}

/* Nothing known at any depth up to `deepest` and of its children. */
static int reset_levels(struct event_codec *c, size_t deepest)
{
	int err = reserve(&c->levels, &c->levels_cap, deepest + 2, sizeof(*c->levels));

	if (!err)
		memset(c->levels, 0, (deepest + 2) * sizeof(*c->levels));
	return err;
}

static uint8_t mode_of(uint8_t kind, uint8_t flags)
{
	if (flags & SYMBOL_POINT)
		return TIME_POINT;
	return kind == EVENT_SPAN || kind == EVENT_OPEN ? TIME_NESTED : TIME_APART;
}

/* Tells its parent-to-be of an event at this depth. */
static inline void add_child(struct level *l, uint64_t start_ns, uint64_t duration_ns)
{
	if (!l->used) {
		l->used = 1;
		l->first_ns = start_ns;
		l->sum_ns = 0;
	}
	l->sum_ns += duration_ns;
}

static inline void widen(uint64_t *lowest, uint64_t *highest, uint64_t t)
{
	*lowest = t < *lowest ? t : *lowest;
	*highest = t > *highest ? t : *highest;
}

/* --- encoding ----------------------------------------------------------------------------------- */

static uint8_t flags_of(const struct event *ev)
{
	uint8_t flags = 0;

	if (ev->kind == EVENT_KEYED || ev->kind == EVENT_VALUE || ev->arg)
		flags |= SYMBOL_ARG;
	if (ev->kind == EVENT_KEYED || ev->begin_tid)
		flags |= SYMBOL_TID;
	if ((ev->kind == EVENT_INSTANT || ev->kind == EVENT_VALUE) && ev->start_ns == ev->end_ns)
		flags |= SYMBOL_POINT;
	return flags;
}

static bool is_symbol(const struct symbol *s, const struct event *ev, uint8_t flags)
{
	return s->ev.span == ev->span && s->ev.node == ev->node && s->ev.depth == ev->depth &&
	       s->ev.kind == ev->kind && s->flags == flags;
}

static uint32_t find_symbol(struct event_codec *c, const struct event *ev, size_t mask,
			    uint32_t *nsymbols)
{
	uint8_t flags = flags_of(ev);
	uint64_t h = ((uint64_t)ev->node << 32 | ev->span) * 0x9e3779b97f4a7c15ull;
	struct symbol *s;
	size_t slot;

	h = (h ^ (uint64_t)(ev->depth << 8 | ev->kind << 3 | flags)) * 0xd6e8feb86659fd93ull;
	for (slot = (h >> 32) & mask; c->hash[slot]; slot = (slot + 1) & mask)
		if (is_symbol(&c->symbols[c->hash[slot] - 1], ev, flags))
			return c->hash[slot] - 1;
	s = &c->symbols[*nsymbols];
	*s = (struct symbol){.flags = flags, .mode = mode_of(ev->kind, flags)};
	s->ev.span = ev->span;
	s->ev.node = ev->node;
	s->ev.depth = ev->depth;
	s->ev.kind = ev->kind;
	c->hash[slot] = ++*nsymbols;
	return *nsymbols - 1;
}

/* The columns while they grow, each with room for the worst case. */
struct columns {
	uint8_t *symbols, *a, *b, *child, *arg, *tid;
	uint8_t *a0, *b0, *child0, *arg0, *tid0;
};

#define WORST_BYTES (4 + 6 * VARINT_MAX) /* an event, all columns together */

static int reserve_columns(struct event_codec *c, size_t n, struct columns *to)
{
	int err;

	c->work.n = 0;
	err = bytes__reserve(&c->work, n * WORST_BYTES);
	if (err)
		return err;
	to->symbols = c->work.p;
	to->a = to->a0 = to->symbols + 4 * n;
	to->b = to->b0 = to->a + VARINT_MAX * n;
	to->child = to->child0 = to->b + VARINT_MAX * n;
	to->arg = to->arg0 = to->child + 2 * VARINT_MAX * n;
	to->tid = to->tid0 = to->arg + VARINT_MAX * n;
	return 0;
}

static void encode_times(struct event_codec *c, const struct event *ev, const struct symbol *s,
			 uint64_t before, uint64_t *expected_child, struct columns *to)
{
	struct level *own = &c->levels[ev->depth], *children = own + 1;
	uint64_t duration = ev->end_ns - ev->start_ns;

	*expected_child = 0;
	if (s->mode == TIME_APART) {
		to->a = varint__put(to->a, zigzag(ev->end_ns - before));
		to->b = varint__put(to->b, duration);
		return;
	}
	if (s->mode == TIME_POINT) {
		to->a = varint__put(to->a, zigzag(ev->end_ns - before));
	} else if (children->used) {
		to->a = varint__put(to->a, zigzag(ev->end_ns - before));
		to->b = varint__put(to->b, children->first_ns - ev->start_ns);
		*expected_child = children->sum_ns;
		children->used = 0;
	} else {
		to->a = varint__put(to->a, zigzag(ev->start_ns - before));
		to->b = varint__put(to->b, duration);
	}
	add_child(own, ev->start_ns, duration);
}

/* An empty hash of twice as many slots as there can be symbols. */
static int reset_hash(struct event_codec *c, size_t n, size_t *mask)
{
	int err;

	*mask = 63;
	while (*mask < 2 * n)
		*mask = *mask * 2 + 1;
	err = reserve(&c->hash, &c->hash_cap, *mask + 1, sizeof(*c->hash));
	if (!err)
		memset(c->hash, 0, (*mask + 1) * sizeof(*c->hash));
	return err;
}

static int encode_columns(struct event_codec *c, const struct event *events, size_t n,
			  uint64_t before, struct columns *to, uint32_t *nsymbols)
{
	size_t mask, last_fix = 0;
	uint32_t last_tid = 0;
	int err = reset_hash(c, n, &mask);

	if (err)
		return err;
	for (size_t i = 0; i < n; i++) {
		const struct event *ev = &events[i];
		uint32_t symbol;
		struct symbol *s;
		uint64_t expected;

		if (!ev->kind || ev->kind >= EVENT_KINDS)
			return -EINVAL;
		symbol = find_symbol(c, ev, mask, nsymbols);
		s = &c->symbols[symbol];
		memcpy(to->symbols + 4 * i, &symbol, sizeof(symbol));
		encode_times(c, ev, s, before, &expected, to);
		before = ev->end_ns;
		if (ev->child_ns != expected) {
			to->child = varint__put(to->child, i - last_fix);
			to->child = varint__put(to->child, zigzag(ev->child_ns - expected));
			last_fix = i;
		}
		if (s->flags & SYMBOL_ARG) {
			to->arg = varint__put(to->arg, zigzag(ev->arg - s->last_arg));
			s->last_arg = ev->arg;
		}
		if (s->flags & SYMBOL_TID) {
			to->tid = varint__put(to->tid, zigzag((uint64_t)ev->begin_tid - last_tid));
			last_tid = ev->begin_tid;
		}
	}
	return 0;
}

static int put_dictionary(const struct event_codec *c, uint32_t nsymbols, struct bytes *out)
{
	int err = bytes__reserve(out, (size_t)nsymbols * (2 + 3 * VARINT_MAX));
	uint8_t *p;

	if (err)
		return err;
	p = out->p + out->n;
	for (uint32_t i = 0; i < nsymbols; i++) {
		const struct symbol *s = &c->symbols[i];

		*p++ = s->ev.kind;
		*p++ = s->flags;
		p = varint__put(p, s->ev.span);
		p = varint__put(p, s->ev.node);
		p = varint__put(p, s->ev.depth);
	}
	out->n = (size_t)(p - out->p);
	return 0;
}

static int put_symbols(const uint8_t *symbols, size_t n, uint32_t nsymbols, struct bytes *out)
{
	size_t width = nsymbols <= 256 ? 1 : 2;
	int err = bytes__reserve(out, n * width);

	if (err)
		return err;
	/* Little-endian: the low bytes come first. */
	for (size_t i = 0; i < n; i++)
		memcpy(out->p + out->n + i * width, symbols + 4 * i, width);
	out->n += n * width;
	return 0;
}

int event_codec__encode(struct event_codec *c, const struct event *events, size_t n,
			struct bytes *out, struct trace_block *b)
{
	struct columns_header h = {0};
	struct columns cols;
	uint16_t deepest = 0;
	int err;

	if (!n || n > TRACE_EVENTS_MAX)
		return -EINVAL;
	*b = (struct trace_block){
	    .magic = TRACE_BLOCK_MAGIC,
	    .type = BLOCK_EVENTS,
	    .thread = events[0].thread,
	    .count = (uint32_t)n,
	    .start_ns = UINT64_MAX,
	};
	for (size_t i = 0; i < n; i++) {
		widen(&b->start_ns, &b->end_ns, events[i].start_ns);
		widen(&b->start_ns, &b->end_ns, events[i].end_ns);
		deepest = events[i].depth > deepest ? events[i].depth : deepest;
	}
	h.base_ns = b->start_ns;
	err = reserve_columns(c, n, &cols);
	if (!err)
		err = reserve_symbols(c, n);
	if (!err)
		err = reset_levels(c, deepest);
	if (!err)
		err = encode_columns(c, events, n, b->start_ns, &cols, &h.nsymbols);
	out->n = 0;
	if (!err)
		err = bytes__append(out, &h, sizeof(h));
	if (!err)
		err = put_dictionary(c, h.nsymbols, out);
	if (err)
		return err;
	h.dictionary = (uint32_t)(out->n - sizeof(h));
	h.a = (uint32_t)(cols.a - cols.a0);
	h.b = (uint32_t)(cols.b - cols.b0);
	h.child = (uint32_t)(cols.child - cols.child0);
	h.arg = (uint32_t)(cols.arg - cols.arg0);
	h.tid = (uint32_t)(cols.tid - cols.tid0);
	memcpy(out->p, &h, sizeof(h));
	err = put_symbols(cols.symbols, n, h.nsymbols, out);
	if (!err)
		err = bytes__append(out, cols.a0, h.a);
	if (!err)
		err = bytes__append(out, cols.b0, h.b);
	if (!err)
		err = bytes__append(out, cols.child0, h.child);
	if (!err)
		err = bytes__append(out, cols.arg0, h.arg);
	if (!err)
		err = bytes__append(out, cols.tid0, h.tid);
	b->raw_len = (uint32_t)out->n;
	return err;
}

/* --- decoding ----------------------------------------------------------------------------------- */

struct span_of_bytes {
	const uint8_t *p, *end;
};

/* EVENT_PADDING lets a varint that starts before the end be read without a look at each byte. */
static inline bool take(struct span_of_bytes *s, uint64_t *v)
{
	return s->p < s->end && varint__get(&s->p, v);
}

/* Also makes the levels that its depths need. */
static int get_dictionary(struct event_codec *c, struct span_of_bytes in, uint32_t nsymbols,
			  uint32_t thread, uint32_t nspans, const char **why)
{
	size_t deepest = 0;

	for (uint32_t i = 0; i < nsymbols; i++) {
		struct symbol *s = &c->symbols[i];
		uint64_t span, node, depth;

		*why = "its dictionary is too short";
		if (in.end - in.p < 2)
			return -EBADMSG;
		*s = (struct symbol){.ev.kind = in.p[0], .flags = in.p[1]};
		in.p += 2;
		if (!take(&in, &span) || !take(&in, &node) || !take(&in, &depth))
			return -EBADMSG;
		*why = "an event is of no known kind";
		if (!s->ev.kind || s->ev.kind >= EVENT_KINDS || s->flags > 7)
			return -EBADMSG;
		*why = "an event's span is not in the table";
		if (!span || span > nspans)
			return -EBADMSG;
		*why = "an event's node or depth is out of range";
		if (node > UINT32_MAX || depth > UINT16_MAX)
			return -EBADMSG;
		s->ev.span = (uint32_t)span;
		s->ev.node = (uint32_t)node;
		s->ev.depth = (uint16_t)depth;
		s->ev.thread = thread;
		s->mode = mode_of(s->ev.kind, s->flags);
		deepest = depth > deepest ? (size_t)depth : deepest;
	}
	*why = "its dictionary is too long";
	return in.p == in.end ? reset_levels(c, deepest) : -EBADMSG;
}

/* The main loop: everything but corrections of child_ns, arguments and threads. */
static bool get_times(struct event_codec *c, const uint8_t *symbols, uint32_t nsymbols,
		      struct span_of_bytes *a, struct span_of_bytes *b, uint64_t base_ns,
		      const struct trace_block *block, struct event *out)
{
	uint64_t before = base_ns, lowest = UINT64_MAX, highest = 0;
	bool wide = nsymbols > 256;

	for (size_t i = 0; i < block->count; i++, out++) {
		uint32_t symbol =
		    wide ? symbols[2 * i] | (uint32_t)symbols[2 * i + 1] << 8 : symbols[i];
		const struct symbol *s;
		uint64_t va, vb = 0, start, end;

		if (symbol >= nsymbols || !take(a, &va))
			return false;
		s = &c->symbols[symbol];
		va = unzigzag(va);
		*out = s->ev;
		if (s->mode != TIME_POINT && !take(b, &vb))
			return false;
		end = before + va;
		start = end - vb;
		if (s->mode != TIME_APART) {
			struct level *own = &c->levels[s->ev.depth], *children = own + 1;

			if (s->mode == TIME_NESTED && children->used) {
				start = children->first_ns - vb;
				out->child_ns = children->sum_ns;
				children->used = 0;
			} else if (s->mode == TIME_NESTED) {
				start = before + va;
				end = start + vb;
			}
			add_child(own, start, end - start);
		}
		out->start_ns = start;
		out->end_ns = end;
		before = end;
		widen(&lowest, &highest, start);
		widen(&lowest, &highest, end);
	}
	return a->p == a->end && b->p == b->end && lowest == block->start_ns &&
	       highest == block->end_ns;
}

static bool get_child_corrections(struct span_of_bytes in, struct event *events, size_t n)
{
	uint64_t i = 0, step, diff;

	while (in.p != in.end) {
		if (!take(&in, &step) || !take(&in, &diff) || step >= n - i)
			return false;
		i += step;
		events[i].child_ns += unzigzag(diff);
	}
	return true;
}

static bool get_rest(struct event_codec *c, const uint8_t *symbols, uint32_t nsymbols,
		     struct span_of_bytes arg, struct span_of_bytes tid, struct event *events,
		     size_t n)
{
	bool wide = nsymbols > 256;
	uint64_t v, last_tid = 0;

	if (arg.p == arg.end && tid.p == tid.end) {
		for (uint32_t i = 0; i < nsymbols; i++)
			if (c->symbols[i].flags & (SYMBOL_ARG | SYMBOL_TID))
				return false;
		return true;
	}
	for (size_t i = 0; i < n; i++) {
		struct symbol *s =
		    &c->symbols[wide ? symbols[2 * i] | (uint32_t)symbols[2 * i + 1] << 8
				     : symbols[i]];

		if (s->flags & SYMBOL_ARG) {
			if (!take(&arg, &v))
				return false;
			events[i].arg = s->last_arg += unzigzag(v);
		}
		if (s->flags & SYMBOL_TID) {
			if (!take(&tid, &v))
				return false;
			last_tid += unzigzag(v);
			if (last_tid > UINT32_MAX)
				return false;
			events[i].begin_tid = (uint32_t)last_tid;
		}
	}
	return arg.p == arg.end && tid.p == tid.end;
}

static struct span_of_bytes cut(const uint8_t **p, size_t len)
{
	struct span_of_bytes s = {*p, *p + len};

	*p += len;
	return s;
}

int event_codec__decode(struct event_codec *c, const uint8_t *raw, const struct trace_block *b,
			uint32_t nspans, struct event *events, const char **why)
{
	struct span_of_bytes dictionary, symbols, col_a, col_b, child, arg, tid;
	struct columns_header h;
	size_t nbytes;
	int err;

	*why = "its columns do not add up to its length";
	if (!b->count || b->count > TRACE_EVENTS_MAX || b->raw_len < sizeof(h))
		return -EBADMSG;
	memcpy(&h, raw, sizeof(h));
	if (!h.nsymbols || h.nsymbols > b->count)
		return -EBADMSG;
	nbytes = b->count * (h.nsymbols <= 256 ? 1 : 2);
	if ((uint64_t)sizeof(h) + h.dictionary + nbytes + h.a + h.b + h.child + h.arg + h.tid !=
	    b->raw_len)
		return -EBADMSG;
	raw += sizeof(h);
	dictionary = cut(&raw, h.dictionary);
	symbols = cut(&raw, nbytes);
	col_a = cut(&raw, h.a);
	col_b = cut(&raw, h.b);
	child = cut(&raw, h.child);
	arg = cut(&raw, h.arg);
	tid = cut(&raw, h.tid);
	err = reserve_symbols(c, h.nsymbols);
	if (err)
		return err;
	err = get_dictionary(c, dictionary, h.nsymbols, b->thread, nspans, why);
	if (err)
		return err;
	*why = "its columns do not fit together";
	if (!get_times(c, symbols.p, h.nsymbols, &col_a, &col_b, h.base_ns, b, events) ||
	    !get_child_corrections(child, events, b->count) ||
	    !get_rest(c, symbols.p, h.nsymbols, arg, tid, events, b->count))
		return -EBADMSG;
	return 0;
}

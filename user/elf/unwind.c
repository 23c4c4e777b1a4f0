/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * .eh_frame and .gcc_except_table (Itanium C++ ABI), read on demand.
 *
 * A frame description entry (FDE) tells the range of a function and where its language-specific
 * data (LSDA) lies: a table of call sites. To the C++ personality a call
 *  - in a record with a landing pad enters that pad, in this function;
 *  - in a record without one is left for the caller: the exception passes through;
 *  - in no record calls std::terminate.
 * So if no record lacks a landing pad nothing can leave: even what a pad resumes or rethrows is a
 * call in some record or in none. For other personalities (C, Rust) the last rule differs, hence an
 * object that names another one proves nothing. Where pads lie in another FDE (NAME.cold) that one
 * must hold as well.
 *
 * All bytes are foreign: every read is bounded, every offset checked.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "elf/unwind.h"

enum { ENC_OMIT = 0xff, ENC_PCREL = 0x10, ENC_DATAREL = 0x30, ENC_INDIRECT = 0x80 };

struct span {
	const uint8_t *data;
	size_t len;
	uint64_t addr;
};

struct cursor {
	const struct span *s;
	size_t at, end;
	bool bad;
};

struct fde {
	uint64_t start, size, lsda; /* lsda 0: none */
	bool framed; /* its first row says more than "the return address is at %rsp" */
};

struct unwind_table {
	const struct elf_image *img;
	struct span eh_frame, hdr, except;
	size_t hdr_table, hdr_n; /* the sorted table of .eh_frame_hdr; 0: none */
	struct fde *fdes;	 /* without that table: all, sorted */
	size_t nfdes;
	int cxx_only; /* -1: not asked yet */
};

static uint64_t take_fixed(struct cursor *c, size_t n)
{
	uint64_t v = 0;

	if (c->bad || c->end - c->at < n) {
		c->bad = true;
		return 0;
	}
	memcpy(&v, c->s->data + c->at, n);
	c->at += n;
	return v;
}

static uint64_t take_leb(struct cursor *c, bool is_signed)
{
	unsigned int shift = 0;
	uint64_t v = 0;
	uint8_t b;

	do {
		b = take_fixed(c, 1);
		if (shift < 64)
			v |= (uint64_t)(b & 0x7f) << shift;
		shift += 7;
	} while (b & 0x80 && !c->bad);
	if (is_signed && shift < 64 && b & 0x40)
		v |= ~0ull << shift;
	return v;
}

/* A pointer by its encoding; *zero tells that the stored value was 0 ("none"). */
static uint64_t take_encoded(struct cursor *c, uint8_t enc, uint64_t data_base, bool *zero)
{
	uint64_t here = c->s->addr + c->at, v;

	switch (enc & 0x0f) {
	case 0x00:
	case 0x04:
	case 0x0c:
		v = take_fixed(c, 8);
		break;
	case 0x01:
		v = take_leb(c, false);
		break;
	case 0x02:
		v = take_fixed(c, 2);
		break;
	case 0x03:
		v = take_fixed(c, 4);
		break;
	case 0x09:
		v = take_leb(c, true);
		break;
	case 0x0a:
		v = (int64_t)(int16_t)take_fixed(c, 2);
		break;
	case 0x0b:
		v = (int64_t)(int32_t)take_fixed(c, 4);
		break;
	default:
		c->bad = true;
		return 0;
	}
	if (zero)
		*zero = !v;
	switch (enc & 0x70) {
	case 0:
		return v;
	case ENC_PCREL:
		return v + here;
	case ENC_DATAREL:
		return v + data_base;
	default:
		c->bad = true;
		return 0;
	}
}

struct cie {
	uint8_t fde_enc, lsda_enc;
	bool augmented; /* FDEs have augmentation data */
	bool ordinary;	/* its rows begin with CFA = %rsp + 8, the return address below that */
};

/* The header of the entry at `at`: its body is [c->at, c->end). False: not an entry. */
static bool open_entry(const struct span *s, size_t at, struct cursor *c, size_t *id_at)
{
	uint64_t len;

	if (at > s->len)
		return false;
	*c = (struct cursor){.s = s, .at = at, .end = s->len};
	len = take_fixed(c, 4);
	if (len == 0xffffffff)
		len = take_fixed(c, 8);
	if (c->bad || len < 4 || len > c->end - c->at)
		return false;
	c->end = c->at + len;
	*id_at = c->at;
	return true;
}

/* DW_CFA_def_cfa: rsp + 8; DW_CFA_offset: return address at CFA - 8; then padding alone. */
static bool begins_ordinary(const struct cursor *c)
{
	static const uint8_t rules[] = {0x0c, 7, 8, 0x90, 1};
	size_t at = c->at;

	if (c->bad || c->end - at < sizeof(rules) || memcmp(c->s->data + at, rules, sizeof(rules)))
		return false;
	for (at += sizeof(rules); at < c->end; at++)
		if (c->s->data[at])
			return false;
	return true;
}

static bool read_cie(const struct span *s, size_t at, struct cie *out)
{
	struct cursor c;
	const char *aug;
	size_t id_at, len, program;
	uint8_t version, enc;
	bool signal = false;

	memset(out, 0, sizeof(*out));
	out->lsda_enc = ENC_OMIT;
	if (!open_entry(s, at, &c, &id_at) || take_fixed(&c, 4) != 0)
		return false;
	version = take_fixed(&c, 1);
	aug = (const char *)s->data + c.at;
	len = strnlen(aug, c.end - c.at);
	if (c.bad || (version != 1 && version != 3) || len == c.end - c.at)
		return false;
	c.at += len + 1;
	take_leb(&c, false);
	take_leb(&c, true);
	if (version == 1)
		take_fixed(&c, 1);
	else
		take_leb(&c, false);
	if (*aug != 'z') {
		out->ordinary = begins_ordinary(&c);
		return !*aug && !c.bad;
	}
	out->augmented = true;
	program = take_leb(&c, false);
	program += c.at;
	for (aug++; *aug; aug++) {
		if (*aug == 'L') {
			out->lsda_enc = take_fixed(&c, 1);
		} else if (*aug == 'R') {
			out->fde_enc = take_fixed(&c, 1);
		} else if (*aug == 'P') {
			enc = take_fixed(&c, 1);
			take_encoded(&c, enc & ~ENC_INDIRECT, 0, NULL);
		} else if (*aug == 'S') {
			signal = true;
		} else if (*aug != 'B') {
			return false;
		}
	}
	if (c.bad || program > c.end)
		return false;
	c.at = program;
	out->ordinary = !signal && begins_ordinary(&c);
	return true;
}

/* False: no FDE at this offset of .eh_frame, or one that makes no sense. */
static bool read_fde(const struct span *s, size_t at, struct fde *out)
{
	struct cursor c;
	struct cie cie;
	size_t id_at, after;
	uint64_t id, lsda, len;
	bool zero = true;
	uint8_t op;

	if (!open_entry(s, at, &c, &id_at))
		return false;
	id = take_fixed(&c, 4);
	if (c.bad || !id || id > id_at || !read_cie(s, id_at - id, &cie))
		return false;
	out->start = take_encoded(&c, cie.fde_enc, 0, NULL);
	out->size = take_encoded(&c, cie.fde_enc & 0x0f, 0, NULL);
	out->lsda = 0;
	if (cie.augmented) {
		len = take_leb(&c, false);
		after = c.at + len;
		if (len > c.end - c.at)
			return false;
		if (cie.lsda_enc != ENC_OMIT) {
			lsda = take_encoded(&c, cie.lsda_enc, 0, &zero);
			out->lsda = zero ? 0 : lsda;
		}
		c.at = after;
	}
	/* DW_CFA_nop is padding; 01xxxxxx and 1..4 advance the location; the rest are rules. */
	op = c.at < c.end ? s->data[c.at] : 0;
	out->framed = !cie.ordinary || (op && op >> 6 != 1 && op > 4);
	return !c.bad && out->size && out->start + out->size > out->start;
}

static int by_start(const void *pa, const void *pb)
{
	const struct fde *a = pa, *b = pb;

	return a->start < b->start ? -1 : a->start > b->start;
}

/* Without .eh_frame_hdr: every entry, once. */
static int read_all(struct unwind_table *t)
{
	size_t at = 0, id_at, cap = 0;
	struct cursor c;
	struct fde f, *bigger;

	while (open_entry(&t->eh_frame, at, &c, &id_at)) {
		if (read_fde(&t->eh_frame, at, &f)) {
			if (t->nfdes == cap) {
				cap = cap ? 2 * cap : 64;
				bigger = reallocarray(t->fdes, cap, sizeof(*bigger));
				if (!bigger)
					return -ENOMEM;
				t->fdes = bigger;
			}
			t->fdes[t->nfdes++] = f;
		}
		at = c.end;
	}
	if (t->nfdes)
		qsort(t->fdes, t->nfdes, sizeof(*t->fdes), by_start);
	return 0;
}

/* The binary search table: pairs of 32-bit distances from the header. */
static void find_hdr_table(struct unwind_table *t)
{
	struct cursor c = {.s = &t->hdr, .end = t->hdr.len};
	uint8_t frame_enc, count_enc;
	uint64_t n;

	if (take_fixed(&c, 1) != 1)
		return;
	frame_enc = take_fixed(&c, 1);
	count_enc = take_fixed(&c, 1);
	if (take_fixed(&c, 1) != (ENC_DATAREL | 0x0b) || count_enc == ENC_OMIT)
		return;
	take_encoded(&c, frame_enc, t->hdr.addr, NULL);
	n = take_encoded(&c, count_enc, t->hdr.addr, NULL);
	if (c.bad || n > (c.end - c.at) / 8)
		return;
	t->hdr_table = c.at;
	t->hdr_n = n;
}

static void get_section(const struct elf_image *img, const char *name, struct span *s)
{
	if (elf_image__section(img, name, &s->data, &s->len, &s->addr))
		memset(s, 0, sizeof(*s));
}

int unwind_table__read(const struct elf_image *img, struct unwind_table **out, struct err *e)
{
	struct unwind_table *t = calloc(1, sizeof(*t));
	int err = t ? 0 : -ENOMEM;

	*out = NULL;
	if (t) {
		t->img = img;
		t->cxx_only = -1;
		get_section(img, ".eh_frame", &t->eh_frame);
		get_section(img, ".eh_frame_hdr", &t->hdr);
		get_section(img, ".gcc_except_table", &t->except);
		find_hdr_table(t);
		if (!t->hdr_n)
			err = read_all(t);
	}
	if (err) {
		unwind_table__free(t);
		return err_set(e, err, "%s: out of memory", elf_image__name(img));
	}
	*out = t;
	return 0;
}

void unwind_table__free(struct unwind_table *t)
{
	if (!t)
		return;
	free(t->fdes);
	free(t);
}

static uint64_t hdr_entry(const struct unwind_table *t, size_t i, size_t field)
{
	int32_t v;

	memcpy(&v, t->hdr.data + t->hdr_table + 8 * i + 4 * field, 4);
	return t->hdr.addr + v;
}

static bool find_fde(const struct unwind_table *t, uint64_t addr, struct fde *out)
{
	size_t lo = 0, hi = t->hdr_n ? t->hdr_n : t->nfdes, mid;
	uint64_t start, at;

	while (lo < hi) {
		mid = lo + (hi - lo) / 2;
		start = t->hdr_n ? hdr_entry(t, mid, 0) : t->fdes[mid].start;
		if (start <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo)
		return false;
	if (t->hdr_n) {
		at = hdr_entry(t, lo - 1, 1) - t->eh_frame.addr;
		if (at >= t->eh_frame.len || !read_fde(&t->eh_frame, at, out))
			return false;
	} else {
		*out = t->fdes[lo - 1];
	}
	return addr - out->start < out->size;
}

bool unwind_table__starts_framed(const struct unwind_table *t, uint64_t addr)
{
	struct fde f;

	return find_fde(t, addr, &f) && f.framed;
}

/* Does a string table name the C++ personality (cxx), or another one (other)? */
static void scan_names(const struct elf_image *img, const char *section, bool *cxx, bool *other)
{
	static const char word[] = "personality", gxx[] = "__gxx_personality_v0";
	const uint8_t *data, *p, *start, *end;
	size_t len, n;

	if (elf_image__section(img, section, &data, &len, NULL))
		return;
	for (p = data; (p = memmem(p, data + len - p, word, sizeof(word) - 1)); p = end) {
		for (start = p; start > data && start[-1]; start--)
			;
		end = memchr(p, 0, data + len - p);
		if (!end)
			end = data + len;
		n = end - start;
		if (memchr(start, '@', n)) /* a version: __gxx_personality_v0@CXXABI_1.3 */
			n = (const uint8_t *)memchr(start, '@', n) - start;
		if (n > 7 && !memcmp(start, "DW.ref.", 7)) {
			start += 7;
			n -= 7;
		}
		if (n == sizeof(gxx) - 1 && !memcmp(start, gxx, n))
			*cxx = true;
		else
			*other = true;
	}
}

static bool is_cxx_only(struct unwind_table *t)
{
	bool cxx = false, other = false;

	if (t->cxx_only < 0) {
		scan_names(t->img, ".dynstr", &cxx, &other);
		scan_names(t->img, ".strtab", &cxx, &other);
		t->cxx_only = cxx && !other;
	}
	return t->cxx_only;
}

static bool nothing_leaves(const struct unwind_table *t, const struct fde *f, int depth);

/* The landing pad is in the FDE, or in one that nothing leaves either. */
static bool pad_holds(const struct unwind_table *t, const struct fde *f, uint64_t pad, int depth)
{
	struct fde other;

	if (pad - f->start < f->size)
		return true;
	return depth < 2 && find_fde(t, pad, &other) && nothing_leaves(t, &other, depth + 1);
}

static bool nothing_leaves(const struct unwind_table *t, const struct fde *f, int depth)
{
	uint64_t pads = f->start, len, pad, table;
	struct cursor c = {.s = &t->except, .end = t->except.len};
	uint64_t checked = 0;
	uint8_t enc;

	if (!f->lsda || f->lsda - t->except.addr >= t->except.len)
		return false;
	c.at = f->lsda - t->except.addr;
	enc = take_fixed(&c, 1);
	if (enc != ENC_OMIT)
		pads = take_encoded(&c, enc, 0, NULL);
	enc = take_fixed(&c, 1);
	if (enc != ENC_OMIT)
		take_leb(&c, false);
	enc = take_fixed(&c, 1);
	table = take_leb(&c, false);
	if (c.bad || table > c.end - c.at)
		return false;
	c.end = c.at + table;
	while (!c.bad && c.at < c.end) {
		take_encoded(&c, enc, 0, NULL);
		len = take_encoded(&c, enc, 0, NULL);
		pad = take_encoded(&c, enc, 0, NULL);
		take_leb(&c, false);
		if (c.bad || (len && !pad))
			return false;
		if (len && pads + pad != checked && !pad_holds(t, f, pads + pad, depth))
			return false;
		checked = pads + pad;
	}
	return !c.bad;
}

enum unwind_pass unwind_table__find(const struct unwind_table *t, uint64_t addr, uint64_t *start,
				    uint64_t *size)
{
	struct fde f;

	if (!find_fde(t, addr, &f))
		return UNWIND_UNKNOWN;
	*start = f.start;
	*size = f.size;
	/* Which personalities the object names is looked up once, and only when it matters. */
	if (!nothing_leaves(t, &f, 0) || !is_cxx_only((struct unwind_table *)(uintptr_t)t))
		return UNWIND_THROUGH;
	return UNWIND_NOEXCEPT;
}

/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * One ELF file: its headers checked, its segments, sections and bytes on demand.
 *
 * The file may be hostile, and it may be truncated by someone else while it is open. So it
 * is read with pread() and never mapped (a mapping turns a truncation into SIGBUS), and only
 * the pieces that are asked for are read: a 100 MB binary costs its headers and symbols.
 * libelf does the section table and decompression; counts and ranges are checked here first,
 * so that libelf is never asked for more memory than the file itself justifies.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "elf/image.h"
#include "elf/image_facts.h"

#define SEGMENTS_MAX	 1024
#define SECTIONS_MAX	 (1u << 17)
#define SECTION_MAX	 (512u << 20)
#define LOADED_MAX	 (1024u << 20) /* of all sections that are read */
#define INFLATED_MAX	 (256u << 20)  /* of one compressed section */
#define SECTION_NAME_MAX 256
#define EXTENTS_MAX	 (512u << 20) /* of all bytes kept for elf_image__bytes() */
#define EXTENT_MIN	 4096u
#define EXTENTS_TRIED	 8

struct segment {
	uint64_t addr, off, filesz;
	bool exec;
};

/* A piece of the file that was read for elf_image__bytes() and lives as long as the image. */
struct extent {
	uint64_t off;
	size_t len;
	uint8_t *data;
};

struct elf_image {
	char *name;
	int fd;
	const uint8_t *mem; /* instead of fd */
	uint64_t size;
	Elf *elf;
	size_t nsections, shstrndx;
	const uint8_t *names; /* of the sections */
	size_t names_len;
	uint8_t *loaded;      /* bitmap of sections whose content libelf holds */
	uint64_t loaded_len;  /* sum of their sizes */
	struct segment *segs; /* sorted by addr */
	size_t nsegs;
	struct extent *extents; /* sorted by off; they may overlap */
	size_t nextents, cap_extents;
	uint64_t extents_len;
	struct elf_info info;
	bool facts_known;
};

static size_t read_at(const struct elf_image *img, void *buf, size_t len, uint64_t off)
{
	size_t done = 0;

	if (off >= img->size)
		return 0;
	if (len > img->size - off)
		len = img->size - off;
	if (img->mem) {
		memcpy(buf, img->mem + off, len);
		return len;
	}
	while (done < len) {
		ssize_t n = pread(img->fd, (char *)buf + done, len - done, (off_t)(off + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		done += (size_t)n;
	}
	return done;
}

static int check_ident(struct elf_image *img, Elf64_Ehdr *eh, struct err *e)
{
	size_t got = read_at(img, eh, sizeof(*eh), 0);

	if (got < EI_NIDENT || memcmp(eh->e_ident, ELFMAG, SELFMAG))
		return err_set(e, -ENOEXEC, "%s: not an ELF file", img->name);
	if (eh->e_ident[EI_CLASS] == ELFCLASS32)
		return err_set(e, -EOPNOTSUPP,
			       "%s: a 32-bit ELF file; only 64-bit ones can be traced", img->name);
	if (eh->e_ident[EI_CLASS] != ELFCLASS64 || eh->e_ident[EI_DATA] != ELFDATA2LSB ||
	    got < sizeof(*eh))
		return err_set(e, -ENOEXEC, "%s: not a 64-bit little-endian ELF file", img->name);
	if (eh->e_type != ET_EXEC && eh->e_type != ET_DYN)
		return err_set(e, -ENOEXEC, "%s: neither an executable nor a shared library",
			       img->name);
	return 0;
}

/* Both tables must lie in the file, whatever the counts say, before libelf sees them. */
static int check_tables(struct elf_image *img, const Elf64_Ehdr *eh, size_t *nphdrs, struct err *e)
{
	Elf64_Shdr first = {0};
	uint64_t nsec = eh->e_shnum, nph = eh->e_phnum;

	if (eh->e_shoff) {
		if (eh->e_shentsize != sizeof(Elf64_Shdr) || eh->e_shoff > img->size ||
		    read_at(img, &first, sizeof(first), eh->e_shoff) != sizeof(first))
			return err_set(
			    e, -ENOEXEC,
			    "%s: truncated or damaged: the section headers are not in it",
			    img->name);
		if (!nsec)
			nsec = first.sh_size;
		if (nsec > (img->size - eh->e_shoff) / sizeof(Elf64_Shdr))
			return err_set(e, -ENOEXEC,
				       "%s: truncated or damaged: the section headers do not fit",
				       img->name);
		if (nsec > SECTIONS_MAX)
			return err_set(e, -E2BIG, "%s: %llu sections are too many", img->name,
				       (unsigned long long)nsec);
	} else if (nsec) {
		return err_set(e, -ENOEXEC, "%s: damaged: sections without section headers",
			       img->name);
	}
	if (nph == PN_XNUM)
		nph = first.sh_info;
	if (nph && (eh->e_phentsize != sizeof(Elf64_Phdr) || eh->e_phoff > img->size ||
		    nph > (img->size - eh->e_phoff) / sizeof(Elf64_Phdr)))
		return err_set(e, -ENOEXEC,
			       "%s: truncated or damaged: the program headers are not in it",
			       img->name);
	*nphdrs = nph;
	return 0;
}

static int cmp_segment(const void *pa, const void *pb)
{
	const struct segment *a = pa, *b = pb;

	return a->addr < b->addr ? -1 : a->addr > b->addr;
}

static int read_segments(struct elf_image *img, const Elf64_Ehdr *eh, size_t nph, struct err *e)
{
	Elf64_Phdr ph;

	img->segs = calloc(nph < SEGMENTS_MAX ? nph + 1 : SEGMENTS_MAX, sizeof(*img->segs));
	if (!img->segs)
		return err_set(e, -ENOMEM, "%s: out of memory", img->name);
	for (size_t i = 0; i < nph; i++) {
		struct segment *s = &img->segs[img->nsegs];

		if (read_at(img, &ph, sizeof(ph), eh->e_phoff + i * sizeof(ph)) != sizeof(ph))
			return err_set(e, -ENOEXEC, "%s: truncated while it was read", img->name);
		if (ph.p_type == PT_INTERP)
			img->info.has_interp = true;
		if (ph.p_type != PT_LOAD || !ph.p_filesz || ph.p_offset >= img->size)
			continue;
		if (ph.p_filesz > img->size - ph.p_offset)
			ph.p_filesz = img->size - ph.p_offset;
		if (ph.p_vaddr + ph.p_filesz < ph.p_vaddr)
			continue;
		if (img->nsegs == SEGMENTS_MAX - 1)
			return err_set(e, -E2BIG, "%s: more than %d loaded segments", img->name,
				       SEGMENTS_MAX - 1);
		s->addr = ph.p_vaddr;
		s->off = ph.p_offset;
		s->filesz = ph.p_filesz;
		s->exec = ph.p_flags & PF_X;
		img->nsegs++;
	}
	qsort(img->segs, img->nsegs, sizeof(*img->segs), cmp_segment);
	return 0;
}

static int image_init(struct elf_image *img, const char *name, struct err *e)
{
	Elf64_Ehdr eh;
	size_t nph = 0;
	int err;

	img->name = strdup(name);
	if (!img->name)
		return err_set(e, -ENOMEM, "out of memory");
	err = check_ident(img, &eh, e);
	if (err)
		return err;
	err = check_tables(img, &eh, &nph, e);
	if (err)
		return err;
	err = read_segments(img, &eh, nph, e);
	if (err)
		return err;

	elf_version(EV_CURRENT);
	/* libelf takes char *, but a file that is only read is never written to. */
	img->elf = img->mem ? elf_memory((char *)(uintptr_t)img->mem, img->size)
			    : elf_begin(img->fd, ELF_C_READ, NULL);
	if (!img->elf || elf_kind(img->elf) != ELF_K_ELF)
		return err_set(e, -ENOEXEC, "%s: %s", img->name, elf_errmsg(-1));
	if (eh.e_shoff && (elf_getshdrnum(img->elf, &img->nsections) ||
			   elf_getshdrstrndx(img->elf, &img->shstrndx))) {
		/* Sections without names still leave the segments usable. */
		img->nsections = 0;
		elf_errno();
	}
	img->loaded = calloc(1, img->nsections / 8 + 1);
	if (!img->loaded)
		return err_set(e, -ENOMEM, "%s: out of memory", img->name);

	if (elf_image__section_data(img, &(struct elf_section){.index = (uint32_t)img->shstrndx},
				    &img->names, &img->names_len))
		img->names_len = 0;

	img->info.machine = eh.e_machine == EM_X86_64	 ? ELF_X86_64
			    : eh.e_machine == EM_AARCH64 ? ELF_AARCH64
							 : ELF_OTHER;
	img->info.pie = eh.e_type == ET_DYN;
	img->info.entry = eh.e_entry;
	img->info.size = img->size;
	elf_facts__build_id(img, &img->info);
	return 0;
}

static int image_open(int fd, const void *mem, uint64_t size, const char *name,
		      struct elf_image **out, struct err *e)
{
	struct elf_image *img = calloc(1, sizeof(*img));
	int err;

	*out = NULL;
	if (!img) {
		if (fd >= 0)
			close(fd);
		return err_set(e, -ENOMEM, "%s: out of memory", name);
	}
	img->fd = fd;
	img->mem = mem;
	img->size = size;
	err = image_init(img, name, e);
	if (err) {
		elf_image__free(img);
		return err;
	}
	*out = img;
	return 0;
}

int elf_image__open(int fd, const char *name, struct elf_image **out, struct err *e)
{
	struct stat st;
	int own;

	*out = NULL;
	if (fstat(fd, &st))
		return err_set(e, -errno, "%s: %s", name, strerror(errno));
	/* A pipe or a device could block or never end. */
	if (!S_ISREG(st.st_mode))
		return err_set(e, -EINVAL, "%s: not a regular file", name);
	own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (own < 0)
		return err_set(e, -errno, "%s: %s", name, strerror(errno));
	return image_open(own, NULL, (uint64_t)st.st_size, name, out, e);
}

int elf_image__open_memory(const void *data, size_t len, const char *name, struct elf_image **out,
			   struct err *e)
{
	return image_open(-1, data, len, name, out, e);
}

void elf_image__free(struct elf_image *img)
{
	if (!img)
		return;
	elf_end(img->elf);
	for (size_t i = 0; i < img->nextents; i++)
		free(img->extents[i].data);
	free(img->extents);
	free(img->loaded);
	free(img->segs);
	free(img->name);
	if (img->fd >= 0)
		close(img->fd);
	free(img);
}

const struct elf_info *elf_image__info(const struct elf_image *cimg)
{
	/* The symbol names are scanned on the first question only. */
	struct elf_image *img = (struct elf_image *)(uintptr_t)cimg;

	if (!img->facts_known) {
		img->facts_known = true;
		elf_facts__read(img, &img->info);
	}
	return &img->info;
}

const struct elf_info *elf_image__headers(const struct elf_image *img)
{
	return &img->info;
}

const char *elf_image__name(const struct elf_image *img)
{
	return img->name;
}

static const struct segment *find_segment(const struct elf_image *img, uint64_t addr)
{
	size_t lo = 0, hi = img->nsegs;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (img->segs[mid].addr <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo || addr - img->segs[lo - 1].addr >= img->segs[lo - 1].filesz)
		return NULL;
	return &img->segs[lo - 1];
}

int elf_image__addr_to_off(const struct elf_image *img, uint64_t addr, uint64_t *off)
{
	const struct segment *s = find_segment(img, addr);

	if (!s)
		return -ENOENT;
	*off = s->off + (addr - s->addr);
	return 0;
}

int elf_image__off_to_addr(const struct elf_image *img, uint64_t off, uint64_t *addr)
{
	const struct segment *found = NULL;

	/* A page can be in two segments; code is what callers ask about. */
	for (size_t i = 0; i < img->nsegs; i++) {
		const struct segment *s = &img->segs[i];

		if (off >= s->off && off - s->off < s->filesz &&
		    (!found || (s->exec && !found->exec)))
			found = s;
	}
	if (!found)
		return -ENOENT;
	*addr = found->addr + (off - found->off);
	return 0;
}

bool elf_image__addr_is_code(const struct elf_image *img, uint64_t addr)
{
	const struct segment *s = find_segment(img, addr);

	return s && s->exec;
}

size_t elf_image__read_code(const struct elf_image *img, uint64_t *addr, void *buf, size_t len)
{
	for (size_t i = 0; i < img->nsegs; i++) {
		const struct segment *s = &img->segs[i];
		uint64_t skip = *addr > s->addr ? *addr - s->addr : 0, room = s->filesz - skip;

		if (!s->exec || skip >= s->filesz)
			continue;
		*addr = s->addr + skip;
		return read_at(img, buf, room < len ? room : len, s->off + skip);
	}
	return 0;
}

/* The number of extents that start at or before off. */
static size_t extents_before(const struct elf_image *img, uint64_t off)
{
	size_t lo = 0, hi = img->nextents;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (img->extents[mid].off <= off)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Reads *len bytes and a little more, and keeps them as extent number `at`. */
static const uint8_t *extent_read(struct elf_image *img, size_t at, uint64_t off, size_t *len,
				  uint64_t room)
{
	size_t want = *len;
	struct extent x = {.off = off}, *p;

	if (want < EXTENT_MIN)
		want = room < EXTENT_MIN ? room : EXTENT_MIN;
	if (img->extents_len + want > EXTENTS_MAX)
		return NULL;
	if (img->nextents == img->cap_extents) {
		size_t cap = img->cap_extents ? img->cap_extents * 2 : 16;

		p = realloc(img->extents, cap * sizeof(*p));
		if (!p)
			return NULL;
		img->extents = p;
		img->cap_extents = cap;
	}
	x.data = malloc(want);
	if (!x.data)
		return NULL;
	x.len = read_at(img, x.data, want, off);
	if (!x.len) {
		free(x.data);
		return NULL;
	}
	p = &img->extents[at];
	memmove(p + 1, p, (img->nextents - at) * sizeof(*p));
	*p = x;
	img->nextents++;
	img->extents_len += want;
	if (*len > x.len)
		*len = x.len;
	return x.data;
}

size_t elf_image__bytes(const struct elf_image *cimg, uint64_t addr, size_t len,
			const uint8_t **out)
{
	struct elf_image *img = (struct elf_image *)(uintptr_t)cimg;
	const struct segment *s = find_segment(img, addr);
	uint64_t off, room;
	size_t at;

	*out = NULL;
	if (!s || !len)
		return 0;
	off = s->off + (addr - s->addr);
	room = s->filesz - (addr - s->addr);
	if (len > ELF_BYTES_MAX)
		len = ELF_BYTES_MAX;
	if (len > room)
		len = room;
	if (img->mem) {
		*out = img->mem + off;
		return len;
	}
	at = extents_before(img, off);
	/* A longer one may start earlier; not to look for it costs only another read. */
	for (size_t i = at; i-- > 0 && at - i <= EXTENTS_TRIED;) {
		const struct extent *x = &img->extents[i];

		if (off - x->off < x->len && len <= x->len - (off - x->off)) {
			*out = x->data + (off - x->off);
			return len;
		}
	}
	*out = extent_read(img, at, off, &len, room);
	return *out ? len : 0;
}

int elf_image__section_header(const struct elf_image *img, uint32_t index, struct elf_section *out)
{
	Elf_Scn *scn;
	GElf_Shdr sh;
	const char *name = "";
	size_t room;

	if (!index || index >= img->nsections)
		return -ENOENT;
	scn = elf_getscn(img->elf, index);
	if (!scn || !gelf_getshdr(scn, &sh)) {
		elf_errno();
		return -ENOENT;
	}
	/* Not elf_strptr(): it looks for the NUL from the end of the table, each time. */
	if (sh.sh_name < img->names_len) {
		room = img->names_len - sh.sh_name;
		if (room > SECTION_NAME_MAX)
			room = SECTION_NAME_MAX;
		if (memchr(img->names + sh.sh_name, 0, room))
			name = (const char *)img->names + sh.sh_name;
	}
	*out = (struct elf_section){
	    .name = name,
	    .index = index,
	    .type = sh.sh_type,
	    .link = sh.sh_link,
	    .flags = sh.sh_flags,
	    .addr = sh.sh_addr,
	    .size = sh.sh_size,
	    .entsize = sh.sh_entsize,
	};
	return 0;
}

int elf_image__next_section(const struct elf_image *img, uint32_t after, const char *name,
			    uint32_t type, struct elf_section *out)
{
	for (uint32_t i = after + 1; i < img->nsections; i++) {
		if (elf_image__section_header(img, i, out))
			continue;
		if (type && out->type != type)
			continue;
		if (name && strcmp(out->name, name))
			continue;
		return 0;
	}
	return -ENOENT;
}

/*
 * Sections that overlap, or lie in the hole of a sparse file, could make a small file ask for
 * any amount of memory.
 */
static bool may_load(const struct elf_image *img, uint64_t size)
{
	uint64_t room = img->size + INFLATED_MAX;

	if (room > LOADED_MAX)
		room = LOADED_MAX;
	return size <= SECTION_MAX && img->loaded_len + size <= room;
}

static bool is_loaded(const struct elf_image *img, uint32_t index)
{
	return img->loaded[index / 8] & 1u << index % 8;
}

int elf_image__section_data(const struct elf_image *cimg, const struct elf_section *sec,
			    const uint8_t **data, size_t *len)
{
	struct elf_image *img = (struct elf_image *)(uintptr_t)cimg;
	uint32_t index = sec->index;
	Elf_Scn *scn;
	Elf_Data *d;
	GElf_Shdr sh;
	GElf_Chdr ch;
	uint64_t size;

	*data = NULL;
	*len = 0;
	scn = index < img->nsections ? elf_getscn(img->elf, index) : NULL;
	if (!scn || !gelf_getshdr(scn, &sh) || sh.sh_type == SHT_NOBITS)
		return -ENOENT;
	/* Once decompressed, its header tells of the decompressed contents. */
	if (!is_loaded(img, index)) {
		if (sh.sh_offset > img->size || sh.sh_size > img->size - sh.sh_offset)
			return -EINVAL;
		size = sh.sh_size;
		if (sh.sh_flags & SHF_COMPRESSED) {
			/* libelf would write to the headers of an image in memory. */
			if (img->mem || !gelf_getchdr(scn, &ch) || ch.ch_size > INFLATED_MAX ||
			    !may_load(img, ch.ch_size) || elf_compress(scn, 0, 0) < 0) {
				elf_errno();
				return -EINVAL;
			}
			size = ch.ch_size;
		}
		if (!may_load(img, size))
			return -E2BIG;
	}
	d = elf_rawdata(scn, NULL);
	if (!d || (d->d_size && !d->d_buf)) {
		elf_errno();
		return -EINVAL;
	}
	if (!is_loaded(img, index)) {
		img->loaded[index / 8] |= (uint8_t)(1u << index % 8);
		img->loaded_len += d->d_size;
	}
	*data = d->d_buf ? d->d_buf : (const uint8_t *)""; /* empty, never NULL */
	*len = d->d_size;
	return 0;
}

int elf_image__section(const struct elf_image *img, const char *name, const uint8_t **data,
		       size_t *len, uint64_t *addr)
{
	struct elf_section sec;
	int err = elf_image__next_section(img, 0, name, 0, &sec);

	if (!err && addr)
		*addr = sec.addr;
	return err ? err : elf_image__section_data(img, &sec, data, len);
}

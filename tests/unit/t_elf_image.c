// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Files that are right, truncated, or hostile: each gives its contents or one clear refusal. */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "elf/image.h"
#include "elf/symbols.h"
#include "elf/usdt.h"
#include "elf_maker.h"

/* A copy of exact size, so that AddressSanitizer sees any byte too many. */
static int open_copy(const struct maker *m, size_t len, struct elf_image **img, uint8_t **copy,
		     struct err *e)
{
	*copy = malloc(len ? len : 1);
	assert_non_null(*copy);
	memcpy(*copy, m->data, len);
	return elf_image__open_memory(*copy, len, "test", img, e);
}

static void make_plain(struct maker *m)
{
	static const uint8_t id[] = {4, 0, 0,	0,   4,	  0, 0, 0, 3, 0,
				     0, 0, 'G', 'N', 'U', 0, 1, 2, 3, 4};

	maker_init(m);
	maker_section(m, ".note.gnu.build-id", SHT_NOTE, id, sizeof(id), 0);
	maker_section(m, ".comment", SHT_PROGBITS, "made by hand", 12, 0);
	maker_finish(m);
}

static void t_addresses(void **state)
{
	struct elf_image *img;
	const uint8_t *bytes;
	struct maker m;
	uint64_t v;
	uint8_t *copy;
	struct err e;

	(void)state;
	make_plain(&m);
	assert_int_equal(open_copy(&m, m.len, &img, &copy, &e), 0);
	assert_int_equal(elf_image__headers(img)->build_id_len, 4);
	assert_memory_equal(elf_image__headers(img)->build_id, "\1\2\3\4", 4);
	assert_int_equal(elf_image__headers(img)->machine, ELF_X86_64);
	assert_false(elf_image__headers(img)->pie);
	assert_true(elf_image__info(img)->stripped);

	assert_int_equal(elf_image__addr_to_off(img, MAKER_TEXT_ADDR + 5, &v), 0);
	assert_int_equal(v, MAKER_TEXT_OFF + 5);
	assert_int_equal(elf_image__off_to_addr(img, MAKER_DATA_OFF + 7, &v), 0);
	assert_int_equal(v, MAKER_DATA_ADDR + 7);
	assert_int_equal(elf_image__addr_to_off(img, MAKER_TEXT_ADDR - 1, &v), -ENOENT);
	assert_int_equal(elf_image__addr_to_off(img, MAKER_TEXT_ADDR + MAKER_SIZE, &v), -ENOENT);
	/* .bss is in no file */
	assert_int_equal(elf_image__addr_to_off(img, MAKER_DATA_ADDR + MAKER_SIZE, &v), -ENOENT);
	assert_int_equal(elf_image__addr_to_off(img, UINT64_MAX, &v), -ENOENT);
	assert_int_equal(elf_image__off_to_addr(img, 0, &v), -ENOENT);
	assert_true(elf_image__addr_is_code(img, MAKER_TEXT_ADDR));
	assert_false(elf_image__addr_is_code(img, MAKER_DATA_ADDR));

	assert_int_equal(elf_image__bytes(img, MAKER_TEXT_ADDR + 0xf0, 100, &bytes), 16);
	assert_int_equal(bytes[15], 0x90);
	assert_int_equal(elf_image__bytes(img, MAKER_TEXT_ADDR, SIZE_MAX, &bytes), MAKER_SIZE);
	assert_int_equal(elf_image__bytes(img, 0, 1, &bytes), 0);
	assert_int_equal(elf_image__bytes(img, MAKER_TEXT_ADDR, 0, &bytes), 0);
	elf_image__free(img);
	free(copy);
	maker_free(&m);
}

static int temp_file(const void *data, size_t len)
{
	int fd = memfd_create("t_elf_image", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, len), len);
	return fd;
}

/* Also when someone shortens the file meanwhile: fewer bytes, never SIGBUS. */
static void t_file_and_truncation(void **state)
{
	const uint8_t *a, *b, *c;
	struct elf_image *img;
	struct maker m;
	struct err e;
	int fd;

	(void)state;
	make_plain(&m);
	fd = temp_file(m.data, m.len);
	assert_int_equal(elf_image__open(fd, "file", &img, &e), 0);
	assert_int_equal(elf_image__bytes(img, MAKER_TEXT_ADDR + 8, 8, &a), 8);
	assert_int_equal(elf_image__bytes(img, MAKER_TEXT_ADDR + 16, 4, &b), 4);
	assert_ptr_equal(b, a + 8); /* kept, not read again */
	assert_int_equal(ftruncate(fd, MAKER_DATA_OFF + 10), 0);
	assert_int_equal(elf_image__bytes(img, MAKER_DATA_ADDR, 64, &c), 10);
	assert_int_equal(elf_image__bytes(img, MAKER_DATA_ADDR + 20, 8, &c), 0);
	assert_int_equal(a[0], 0x90);
	assert_int_not_equal(elf_image__section(img, ".comment", &c, &(size_t){0}, NULL), 0);
	elf_image__info(img);
	elf_image__free(img);
	close(fd);
	maker_free(&m);
}

/* Python: zlib.compress(b"q" * 20000) */
static const uint8_t zipped[] = {0x78, 0x9c, 0xed, 0xc1, 0x21, 0x01, 0x00, 0x00, 0x00, 0xc3, 0xa0,
				 0xcc, 0xeb, 0x6f, 0x5e, 0xe3, 0x02, 0x28, 0x00, 0x00, 0x00, 0x00,
				 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00,
				 0x00, 0x00, 0x00, 0x00, 0x1e, 0x0c, 0x21, 0xcf, 0x7e, 0x1f};

/* A compressed section larger than its file, asked for twice. */
static void t_compressed(void **state)
{
	struct elf_image *img;
	const uint8_t *data, *again;
	struct maker m;
	struct err e;
	uint8_t packed[256] = {0};
	size_t len, n;
	int fd;

	(void)state;
	n = sizeof(Elf64_Chdr) + sizeof(zipped);
	assert_true(n <= sizeof(packed));
	memcpy(packed,
	       &(Elf64_Chdr){.ch_type = ELFCOMPRESS_ZLIB, .ch_size = 20000, .ch_addralign = 1},
	       sizeof(Elf64_Chdr));
	memcpy(packed + sizeof(Elf64_Chdr), zipped, sizeof(zipped));
	maker_init(&m);
	m.sh[maker_section(&m, ".comment", SHT_PROGBITS, packed, n, 0)].sh_flags = SHF_COMPRESSED;
	maker_finish(&m);
	assert_true(m.len < 20000);
	fd = temp_file(m.data, m.len);
	assert_int_equal(elf_image__open(fd, "file", &img, &e), 0);
	close(fd);
	assert_int_equal(elf_image__section(img, ".comment", &data, &len, NULL), 0);
	assert_int_equal(len, 20000);
	for (size_t i = 0; i < len; i++)
		assert_int_equal(data[i], 'q');
	assert_int_equal(elf_image__section(img, ".comment", &again, &len, NULL), 0);
	assert_ptr_equal(again, data);
	assert_int_equal(len, 20000);
	elf_image__free(img);
	maker_free(&m);
}

/* A terabyte of nothing: sections in the hole are refused, at once. */
static void t_sparse_file(void **state)
{
	struct elf_image *img;
	struct usdt_table *t;
	struct func_table *f;
	const uint8_t *data;
	struct maker m;
	Elf64_Ehdr *eh;
	Elf64_Shdr *sh;
	struct err e;
	uint32_t str;
	size_t len;
	int fd;

	(void)state;
	maker_init(&m);
	maker_section(&m, ".note.stapsdt", SHT_NOTE, "", 0, 0);
	str = maker_section(&m, ".strtab", SHT_STRTAB, "", 0, 0);
	maker_section(&m, ".symtab", SHT_SYMTAB, "", 0, str);
	maker_section(&m, ".comment", SHT_PROGBITS, "", 0, 0);
	eh = maker_finish(&m);
	sh = (Elf64_Shdr *)(m.data + eh->e_shoff);
	for (int i = 1; i <= 4; i++)
		sh[i].sh_size = 1ull << 39;
	((Elf64_Phdr *)(m.data + sizeof(Elf64_Ehdr)))->p_filesz = 1ull << 39;
	fd = temp_file(m.data, m.len);
	assert_int_equal(ftruncate(fd, 1ll << 40), 0);
	assert_int_equal(elf_image__open(fd, "sparse", &img, &e), 0);
	assert_int_equal(elf_image__section(img, ".comment", &data, &len, NULL), -E2BIG);
	elf_image__info(img);
	assert_int_equal(usdt_table__read(img, &t, &e), 0);
	assert_int_equal(t->n, 0);
	assert_int_equal(t->bad, 1);
	assert_int_equal(func_table__read(img, NULL, &f, &e), 0);
	assert_int_equal(f->n, 0);
	assert_int_equal(elf_image__bytes(img, MAKER_TEXT_ADDR, 1ull << 38, &data), ELF_BYTES_MAX);
	func_table__free(f);
	usdt_table__free(t);
	elf_image__free(img);
	close(fd);
	maker_free(&m);
}

static void t_refusals(void **state)
{
	static const char script[] =
	    "#!/bin/sh\necho an ordinary script, longer than an ELF header\n";
	struct elf_image *img;
	int fds[2], fd, err;
	struct maker m;
	struct err e;

	(void)state;
	assert_int_equal(elf_image__open(-1, "closed", &img, &e), -EBADF);
	assert_null(img);
	assert_int_equal(pipe(fds), 0);
	assert_int_equal(elf_image__open(fds[0], "pipe", &img, &e), -EINVAL);
	assert_string_equal(e.text, "pipe: not a regular file");
	close(fds[0]);
	close(fds[1]);
	fd = open("/", O_RDONLY);
	assert_int_equal(elf_image__open(fd, "/", &img, &e), -EINVAL);
	close(fd);
	fd = temp_file("", 0);
	assert_int_equal(elf_image__open(fd, "empty", &img, &e), -ENOEXEC);
	assert_string_equal(e.text, "empty: not an ELF file");
	close(fd);
	fd = temp_file(script, sizeof(script));
	assert_int_equal(elf_image__open(fd, "script", &img, &e), -ENOEXEC);
	close(fd);

	make_plain(&m);
	m.data[EI_CLASS] = ELFCLASS32;
	assert_int_equal(elf_image__open_memory(m.data, m.len, "x", &img, &e), -EOPNOTSUPP);
	assert_non_null(strstr(e.text, "32-bit"));
	m.data[EI_CLASS] = ELFCLASS64;
	m.data[EI_DATA] = ELFDATA2MSB;
	assert_int_equal(elf_image__open_memory(m.data, m.len, "x", &img, &e), -ENOEXEC);
	m.data[EI_DATA] = ELFDATA2LSB;
	((Elf64_Ehdr *)m.data)->e_type = ET_REL;
	assert_int_equal(elf_image__open_memory(m.data, m.len, "x", &img, &e), -ENOEXEC);
	assert_non_null(strstr(e.text, "neither an executable nor a shared library"));
	((Elf64_Ehdr *)m.data)->e_type = ET_DYN;
	assert_int_equal(elf_image__open_memory(m.data, m.len, "x", &img, NULL), 0);
	elf_image__free(img);
	/* every truncation is an error or a smaller file, and says so in one line */
	((Elf64_Ehdr *)m.data)->e_type = ET_EXEC;
	for (size_t len = 0; len < m.len; len++) {
		uint8_t *copy;

		e.text[0] = '\0';
		err = open_copy(&m, len, &img, &copy, &e);
		assert_int_equal(err, -ENOEXEC);
		assert_int_equal(strncmp(e.text, "test: ", 6), 0);
		assert_null(strchr(e.text, '\n'));
		free(copy);
	}
	maker_free(&m);
}

static void t_hostile_headers(void **state)
{
	struct elf_image *img;
	struct maker m;
	Elf64_Ehdr *eh, saved;
	Elf64_Shdr *sh;
	Elf64_Phdr *ph;
	struct err e;
	uint64_t v;

	(void)state;
	make_plain(&m);
	eh = (Elf64_Ehdr *)m.data;
	saved = *eh;
	eh->e_shnum = 0xfeff;
	assert_int_equal(elf_image__open_memory(m.data, m.len, "x", &img, &e), -ENOEXEC);
	*eh = saved;
	eh->e_phnum = 0xfffe;
	assert_int_equal(elf_image__open_memory(m.data, m.len, "x", &img, &e), -ENOEXEC);
	*eh = saved;
	eh->e_shoff = UINT64_MAX - 8;
	assert_int_equal(elf_image__open_memory(m.data, m.len, "x", &img, &e), -ENOEXEC);
	*eh = saved;
	eh->e_phoff = UINT64_MAX - 8;
	assert_int_equal(elf_image__open_memory(m.data, m.len, "x", &img, &e), -ENOEXEC);
	*eh = saved;
	eh->e_shentsize = 1;
	assert_int_equal(elf_image__open_memory(m.data, m.len, "x", &img, &e), -ENOEXEC);
	*eh = saved;
	eh->e_phentsize = 8;
	assert_int_equal(elf_image__open_memory(m.data, m.len, "x", &img, &e), -ENOEXEC);
	/* extended numbering: the counts are in the first section header */
	*eh = saved;
	sh = (Elf64_Shdr *)(m.data + eh->e_shoff);
	eh->e_shnum = 0;
	sh[0].sh_size = UINT64_MAX / 64;
	assert_int_equal(elf_image__open_memory(m.data, m.len, "x", &img, &e), -ENOEXEC);
	sh[0].sh_size = m.nsh;
	assert_int_equal(elf_image__open_memory(m.data, m.len, "x", &img, &e), 0);
	assert_int_equal(elf_image__headers(img)->build_id_len, 4);
	elf_image__free(img);
	eh->e_phnum = PN_XNUM;
	sh[0].sh_info = 0x7fffffff;
	assert_int_equal(elf_image__open_memory(m.data, m.len, "x", &img, &e), -ENOEXEC);
	/* no section headers at all: segments still work */
	*eh = saved;
	eh->e_shoff = 0;
	eh->e_shnum = 0;
	assert_int_equal(elf_image__open_memory(m.data, m.len, "x", &img, &e), 0);
	assert_true(elf_image__addr_is_code(img, MAKER_TEXT_ADDR));
	elf_image__free(img);
	/* a segment that claims more than the file, and one that wraps */
	*eh = saved;
	ph = (Elf64_Phdr *)(m.data + eh->e_phoff);
	ph[0].p_filesz = UINT64_MAX - ph[0].p_vaddr;
	ph[1].p_vaddr = UINT64_MAX - 4;
	assert_int_equal(elf_image__open_memory(m.data, m.len, "x", &img, &e), 0);
	assert_int_equal(elf_image__addr_to_off(img, UINT64_MAX - 2, &v), -ENOENT);
	assert_int_equal(elf_image__addr_to_off(img, MAKER_TEXT_ADDR + m.len, &v), -ENOENT);
	elf_image__free(img);
	maker_free(&m);
}

static void t_hostile_sections(void **state)
{
	struct elf_image *img;
	const uint8_t *data;
	struct elf_section sec;
	struct maker m;
	Elf64_Ehdr *eh;
	Elf64_Shdr *sh;
	Elf64_Chdr *ch;
	struct err e;
	size_t len;
	uint64_t addr;

	(void)state;
	make_plain(&m);
	eh = (Elf64_Ehdr *)m.data;
	sh = (Elf64_Shdr *)(m.data + eh->e_shoff);
	assert_int_equal(elf_image__open_memory(m.data, m.len, "x", &img, &e), 0);
	assert_int_equal(elf_image__section(img, ".comment", &data, &len, &addr), 0);
	assert_int_equal(len, 12);
	assert_memory_equal(data, "made by hand", 12);
	assert_int_equal(elf_image__section(img, ".none", &data, &len, NULL), -ENOENT);
	assert_int_equal(elf_image__section_header(img, 0, &sec), -ENOENT);
	assert_int_equal(elf_image__section_header(img, 99, &sec), -ENOENT);
	elf_image__free(img);

	sh[2].sh_size = UINT64_MAX; /* .comment */
	sh[1].sh_size = UINT64_MAX - 100;
	assert_int_equal(elf_image__open_memory(m.data, m.len, "x", &img, &e), 0);
	assert_int_equal(elf_image__section(img, ".comment", &data, &len, NULL), -EINVAL);
	assert_int_equal(elf_image__headers(img)->build_id_len, 0);
	elf_image__free(img);

	sh[2].sh_size = m.len;
	sh[2].sh_offset = 1;
	assert_int_equal(elf_image__open_memory(m.data, m.len, "x", &img, &e), 0);
	assert_int_equal(elf_image__section(img, ".comment", &data, &len, NULL), -EINVAL);
	elf_image__free(img);

	/* compressed, and claiming 2^40 bytes or nonsense */
	sh[2].sh_offset = MAKER_DATA_OFF;
	sh[2].sh_size = 64;
	sh[2].sh_flags = SHF_COMPRESSED;
	ch = (Elf64_Chdr *)(m.data + MAKER_DATA_OFF);
	*ch = (Elf64_Chdr){.ch_type = ELFCOMPRESS_ZLIB, .ch_size = 1ull << 40, .ch_addralign = 1};
	assert_int_equal(elf_image__open_memory(m.data, m.len, "x", &img, &e), 0);
	assert_int_equal(elf_image__section(img, ".comment", &data, &len, NULL), -EINVAL);
	elf_image__free(img);
	ch->ch_size = 4096;
	assert_int_equal(elf_image__open_memory(m.data, m.len, "x", &img, &e), 0);
	assert_int_equal(elf_image__section(img, ".comment", &data, &len, NULL), -EINVAL);
	elf_image__free(img);

	/* section names without an end */
	sh[m.nsh - 1].sh_size = 5;
	eh->e_shstrndx = (uint16_t)(m.nsh - 1);
	assert_int_equal(elf_image__open_memory(m.data, m.len, "x", &img, &e), 0);
	assert_int_equal(elf_image__section(img, ".comment", &data, &len, NULL), -ENOENT);
	elf_image__free(img);
	eh->e_shstrndx = 0xfffe;
	assert_int_equal(elf_image__open_memory(m.data, m.len, "x", &img, &e), 0);
	assert_int_equal(elf_image__section(img, ".comment", &data, &len, NULL), -ENOENT);
	elf_image__free(img);
	maker_free(&m);
}

/* Every single byte of the headers at four values: nothing crashes, nothing hangs. */
static void t_every_byte(void **state)
{
	static const uint8_t values[] = {0, 1, 0x7f, 0xff};
	size_t opened = 0;
	struct maker m;
	uint8_t note[256];
	Elf64_Sym syms[3] = {
	    {0},
	    {.st_name = 1,
	     .st_info = ELF64_ST_INFO(STB_GLOBAL, STT_FUNC),
	     .st_shndx = 1,
	     .st_value = MAKER_TEXT_ADDR,
	     .st_size = 8},
	    {.st_name = 3,
	     .st_info = ELF64_ST_INFO(STB_LOCAL, STT_OBJECT),
	     .st_shndx = 1,
	     .st_value = MAKER_DATA_ADDR,
	     .st_size = 8},
	};
	size_t n = maker_note(note, 0, MAKER_TEXT_ADDR, 0, MAKER_DATA_ADDR, "p", "n", "-4@g(%rip)");
	uint32_t str;

	(void)state;
	maker_init(&m);
	maker_section(&m, ".note.stapsdt", SHT_NOTE, note, n, 0);
	str = maker_section(&m, ".strtab", SHT_STRTAB, "\0f\0g", 5, 0);
	maker_section(&m, ".symtab", SHT_SYMTAB, syms, sizeof(syms), str);
	maker_finish(&m);
	for (size_t i = 0; i < m.len; i++) {
		/* the padding of the segments is of no interest */
		if (i >= MAKER_TEXT_OFF && i < MAKER_DATA_OFF + MAKER_SIZE)
			continue;
		for (size_t k = 0; k < sizeof(values); k++) {
			struct usdt_table *t = NULL;
			struct func_table *f = NULL;
			struct elf_image *img;
			uint8_t *copy, old = m.data[i];
			struct err e;

			m.data[i] = values[k];
			if (!open_copy(&m, m.len, &img, &copy, &e)) {
				opened++;
				elf_image__info(img);
				if (!usdt_table__read(img, &t, &e) && values[k] == old) {
					assert_int_equal(t->n, 1);
					assert_int_equal(t->markers[0].args[0].kind, USDT_ARG_MEM);
				}
				if (!func_table__read(img, NULL, &f, &e) && values[k] == old)
					assert_int_equal(f->n, 1);
			}
			func_table__free(f);
			usdt_table__free(t);
			elf_image__free(img);
			free(copy);
			m.data[i] = old;
		}
	}
	assert_true(opened > 100);
	maker_free(&m);
}

#define BYTES(...) (const uint8_t[]){__VA_ARGS__}, sizeof((const uint8_t[]){__VA_ARGS__})

static void scan(const uint8_t *code, size_t n, size_t at, bool *stack, bool *fork)
{
	struct elf_image *img;
	struct maker m;
	uint8_t *copy;
	struct err e;

	make_plain(&m);
	memcpy(m.data + MAKER_TEXT_OFF + at, code, n);
	assert_int_equal(open_copy(&m, m.len, &img, &copy, &e), 0);
	elf_image__scan_code(img, stack, fork);
	elf_image__free(img);
	free(copy);
	maker_free(&m);
}

static void t_scan_code(void **state)
{
	static const struct {
		const char *what;
		bool stack, fork;
		uint8_t len, bytes[32];
	} rows[] = {
	    {"nothing", false, false, 1, {0x90}},
	    {"a prologue and epilogue", false, false, 6, {0x48, 0x89, 0xe5, 0x48, 0x89, 0xec}},
	    {"save alone", false, false, 3, {0x48, 0x89, 0x27}},
	    {"load alone", false, false, 3, {0x48, 0x89, 0xf4}},
	    {"by a kept register", false, false, 6, {0x48, 0x89, 0xe3, 0x48, 0x89, 0xdc}},
	    {"by the same register", false, false, 6, {0x48, 0x89, 0xe0, 0x48, 0x89, 0xc4}},
	    {"through the frame", false, false, 8, {0x48, 0x89, 0x65, 8, 0x48, 0x8b, 0x65, 8}},
	    {"passed on, kept", false, false, 6, {0x48, 0x89, 0xe7, 0x48, 0x89, 0xdc}},
	    {"%r12 is not %rsp", false, false, 6, {0x49, 0x89, 0x27, 0x49, 0x89, 0xf4}},
	    {"(%rdi) = %rsp = %rsi", true, false, 6, {0x48, 0x89, 0x27, 0x48, 0x89, 0xf4}},
	    {"(%rdi) = %rsp = (%rsi)", true, false, 6, {0x48, 0x89, 0x27, 0x48, 0x8b, 0x26}},
	    {"%rax = %rsp = %rdi", true, false, 6, {0x48, 0x89, 0xe0, 0x48, 0x89, 0xfc}},
	    {"the other encoding", true, false, 6, {0x48, 0x8b, 0xc4, 0x48, 0x8b, 0xe7}},
	    {"by %r8 and %r13", true, false, 7, {0x49, 0x89, 0xe0, 0x49, 0x8b, 0x65, 8}},
	    {"x(%rip) = %rsp = x(%rip)",
	     true,
	     false,
	     14,
	     {0x48, 0x89, 0x25, 1, 2, 3, 4, 0x48, 0x8b, 0x25, 1, 2, 3, 4}},
	    {"syscall", false, false, 2, {0x0f, 0x05}},
	    {"getpid", false, false, 7, {0xb8, 39, 0, 0, 0, 0x0f, 0x05}},
	    {"fork", false, true, 7, {0xb8, 57, 0, 0, 0, 0x0f, 0x05}},
	    {"clone", false, true, 7, {0xb8, 56, 0, 0, 0, 0x0f, 0x05}},
	    {"clone3", false, true, 7, {0xb8, 0xb3, 1, 0, 0, 0x0f, 0x05}},
	    {"fork of an assembler", false, true, 9, {0x48, 0xc7, 0xc0, 57, 0, 0, 0, 0x0f, 0x05}},
	    {"24 bytes before", false, true, 26, {0xb8, 57, 0, 0, 0, [24] = 0x0f, 0x05}},
	    {"25 bytes before", false, false, 27, {0xb8, 57, 0, 0, 0, [25] = 0x0f, 0x05}},
	};
	bool stack, fork;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const size_t at[] = {0, 100, MAKER_SIZE - rows[i].len};

		for (size_t k = 0; k < 3; k++) {
			scan(rows[i].bytes, rows[i].len, at[k], &stack, &fork);
			if (stack != rows[i].stack || fork != rows[i].fork)
				fail_msg("%s at %zu: %d %d", rows[i].what, at[k], stack, fork);
		}
	}
	/* Data is not code. */
	scan(BYTES(0x48, 0x89, 0x27, 0x48, 0x89, 0xf4), MAKER_SIZE, &stack, &fork);
	assert_false(stack);
}

/* Wherever the pieces meet in which a large file is read. */
static void t_scan_large(void **state)
{
	static const uint8_t code[] = {0xb8, 57,   0,	 0,    0,    0x0f, 0x05,
				       0x48, 0x89, 0x27, 0x48, 0x89, 0xf4};
	const size_t size = 3u << 20;
	struct maker m;

	(void)state;
	make_plain(&m);
	maker_put(&m, size - 1, "", 1);
	((Elf64_Phdr *)(m.data + sizeof(Elf64_Ehdr)))->p_filesz = size - MAKER_TEXT_OFF;
	for (size_t back = 0; back < 60; back++) {
		uint8_t *at = m.data + MAKER_TEXT_OFF + (2u << 20) + 20 - back;
		struct elf_image *img;
		bool stack, fork;
		int fd;

		memcpy(at, code, sizeof(code));
		fd = temp_file(m.data, m.len);
		assert_int_equal(elf_image__open(fd, "large", &img, NULL), 0);
		elf_image__scan_code(img, &stack, &fork);
		assert_true(stack && fork);
		elf_image__free(img);
		close(fd);
		memset(at, 0, sizeof(code));
	}
	maker_free(&m);
}

static bool throws(const struct elf_info *i)
{
	return i->imports_throw;
}
static bool cancels(const struct elf_info *i)
{
	return i->imports_cancel;
}
static bool forks(const struct elf_info *i)
{
	return i->imports_fork;
}
static bool switches(const struct elf_info *i)
{
	return i->imports_stack_switch;
}
static bool loads(const struct elf_info *i)
{
	return i->imports_dlopen;
}
static bool altstack(const struct elf_info *i)
{
	return i->imports_sigaltstack;
}
static bool syscalls(const struct elf_info *i)
{
	return i->imports_syscall;
}

/* A name imported, exported, or linked in statically, and what it says. */
static void t_habits(void **state)
{
	static const struct {
		const char *name;
		bool (*told)(const struct elf_info *i);
	} rows[] = {
	    {"__cxa_throw", throws},   {"pthread_exit", cancels}, {"fork", forks},
	    {"swapcontext", switches}, {"dlopen", loads},	  {"dlmopen", loads},
	    {"dlsym", loads},	       {"dlvsym", loads},	  {"sigaltstack", altstack},
	    {"syscall", syscalls},
	};
	static bool (*const all[])(const struct elf_info *i) = {throws, cancels,  forks,   switches,
								loads,	altstack, syscalls};
	enum { IMPORTED, EXPORTED, LINKED, OTHER, FORMS };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]) * FORMS; i++) {
		const char *name = rows[i / FORMS].name;
		size_t form = i % FORMS;
		Elf64_Sym syms[2] = {{0}, {.st_name = 1, .st_shndx = form == EXPORTED}};
		struct elf_image *img;
		struct maker m;
		char names[32];
		uint32_t str;
		int n;

		n = snprintf(names, sizeof(names), "%c%s%s", 0, name, form == OTHER ? "x" : "") + 1;
		maker_init(&m);
		str = maker_section(&m, ".strtab", SHT_STRTAB, names, (size_t)n, 0);
		maker_section(&m, form == LINKED ? ".symtab" : ".dynsym",
			      form == LINKED ? SHT_SYMTAB : SHT_DYNSYM, syms, sizeof(syms), str);
		maker_finish(&m);
		assert_int_equal(elf_image__open_memory(m.data, m.len, name, &img, NULL), 0);
		for (size_t k = 0; k < sizeof(all) / sizeof(all[0]); k++) {
			bool want = all[k] == rows[i / FORMS].told &&
				    (form == IMPORTED || form == LINKED ||
				     (form == EXPORTED && all[k] == throws));

			if (all[k](elf_image__info(img)) != want)
				fail_msg("%s form %zu: flag %zu", name, form, k);
		}
		elf_image__free(img);
		maker_free(&m);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(t_addresses),	  cmocka_unit_test(t_file_and_truncation),
	    cmocka_unit_test(t_compressed),	  cmocka_unit_test(t_sparse_file),
	    cmocka_unit_test(t_refusals),	  cmocka_unit_test(t_hostile_headers),
	    cmocka_unit_test(t_hostile_sections), cmocka_unit_test(t_every_byte),
	    cmocka_unit_test(t_scan_code),	  cmocka_unit_test(t_scan_large),
	    cmocka_unit_test(t_habits),
	};

	return cmocka_run_group_tests_name("elf_image", tests, NULL, NULL);
}

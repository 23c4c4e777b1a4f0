/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Finds and checks separate debug files; unpacks .gnu_debugdata.
 *
 * The root may be a hostile container's: its links are resolved inside it (openat2), a FIFO in
 * place of a file must not block, and a file that does not prove to belong is not used.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <lzma.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "elf/debugfile.h"

#define LZMA_MEMORY_MAX (128u << 20)
#define EMBEDDED_MAX	(256u << 20)
#define CRC_MAX		(1024u << 20) /* a larger file is not worth the time */
#define LINK_MAX	255

struct debuglink {
	char name[LINK_MAX + 1];
	uint32_t crc;
	bool present;
};

/* .gnu_debuglink: a file name, padded to four bytes, and the CRC-32 of that file. */
static void read_debuglink(const struct elf_image *img, struct debuglink *l)
{
	const uint8_t *data;
	size_t len, n;

	l->present = false;
	if (elf_image__section(img, ".gnu_debuglink", &data, &len, NULL) || !data)
		return;
	n = strnlen((const char *)data, len);
	if (!n || n > LINK_MAX || ((n + 4) & ~(size_t)3) + 4 > len || memchr(data, '/', n))
		return;
	memcpy(l->name, data, n + 1);
	memcpy(&l->crc, data + ((n + 4) & ~(size_t)3), sizeof(l->crc));
	l->present = true;
}

static int open_under(int root_fd, const char *path)
{
	struct open_how how = {
	    .flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
	    .resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS,
	};
	int fd = (int)syscall(SYS_openat2, root_fd, path, &how, sizeof(how));

	return fd < 0 ? -errno : fd;
}

static bool crc_matches(int fd, uint32_t want)
{
	uint8_t *buf = malloc(1 << 20);
	uint32_t crc = 0;
	off_t at = 0;
	ssize_t n = -1;

	if (!buf)
		return false;
	while (at < CRC_MAX && (n = pread(fd, buf, 1 << 20, at)) > 0) {
		crc = lzma_crc32(buf, (size_t)n, crc);
		at += n;
	}
	free(buf);
	return n == 0 && crc == want;
}

/* Opens path when it is img's debug file. link is NULL when it was found by build ID. */
static int try_path(const struct elf_image *img, int root_fd, const char *path,
		    const struct debuglink *link, struct elf_image **out)
{
	const struct elf_info *a = elf_image__headers(img), *b;
	struct elf_image *dbg = NULL;
	int fd = open_under(root_fd, path), err;
	bool same;

	if (fd < 0)
		return fd;
	err = elf_image__open(fd, path, &dbg, NULL);
	if (err)
		goto out;
	b = elf_image__headers(dbg);
	if (a->build_id_len && b->build_id_len)
		same = a->build_id_len == b->build_id_len &&
		       !memcmp(a->build_id, b->build_id, a->build_id_len);
	else
		same = link && crc_matches(fd, link->crc);
	err = same ? 0 : -ENOENT;
	if (!err) {
		*out = dbg;
		dbg = NULL;
	}
out:
	elf_image__free(dbg);
	close(fd);
	return err;
}

static int try_build_id(const struct elf_image *img, int root_fd, struct elf_image **out)
{
	const struct elf_info *info = elf_image__headers(img);
	char path[64 + 2 * BUILD_ID_MAX];
	int n;

	if (info->build_id_len < 2)
		return -ENOENT;
	n = snprintf(path, sizeof(path), "/usr/lib/debug/.build-id/%02x/", info->build_id[0]);
	for (size_t i = 1; i < info->build_id_len; i++)
		n += snprintf(path + n, sizeof(path) - (size_t)n, "%02x", info->build_id[i]);
	snprintf(path + n, sizeof(path) - (size_t)n, ".debug");
	return try_path(img, root_fd, path, NULL, out);
}

/* In the order of gdb: beside the file, in .debug beside it, in the global directory. */
static int try_debuglink(const struct elf_image *img, int root_fd, struct elf_image **out)
{
	static const char *const forms[] = {"%.*s/%s", "%.*s/.debug/%s", "/usr/lib/debug%.*s/%s"};
	const char *name = elf_image__name(img), *slash = strrchr(name, '/');
	struct debuglink link;
	char path[4096];

	read_debuglink(img, &link);
	if (!link.present || name[0] != '/')
		return -ENOENT;
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
		int n =
		    snprintf(path, sizeof(path), forms[i], (int)(slash - name), name, link.name);
#pragma GCC diagnostic pop

		if (n < 0 || (size_t)n >= sizeof(path) || !strcmp(path, name))
			continue;
		if (!try_path(img, root_fd, path, &link, out))
			return 0;
	}
	return -ENOENT;
}

int debugfile__open(const struct elf_image *img, const char *root, struct elf_image **out)
{
	int fd, err;

	*out = NULL;
	fd = open(root && *root ? root : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	err = try_build_id(img, fd, out);
	if (err)
		err = try_debuglink(img, fd, out);
	close(fd);
	return err;
}

/* Both the decoder's memory and its output are bounded: a few bytes of xz can hold gigabytes. */
static int unpack(const uint8_t *in, size_t in_len, uint8_t **data, size_t *len)
{
	lzma_stream s = LZMA_STREAM_INIT;
	uint8_t *buf = NULL, *p;
	size_t cap = 0;
	lzma_ret ret;
	int err = -EINVAL;

	if (lzma_stream_decoder(&s, LZMA_MEMORY_MAX, 0) != LZMA_OK)
		return -ENOMEM;
	s.next_in = in;
	s.avail_in = in_len;
	do {
		if (!s.avail_out) {
			size_t want = cap ? cap * 2 : 1 << 18;

			if (want > EMBEDDED_MAX) {
				err = -E2BIG;
				goto out;
			}
			p = realloc(buf, want);
			if (!p) {
				err = -ENOMEM;
				goto out;
			}
			buf = p;
			s.next_out = buf + cap;
			s.avail_out = want - cap;
			cap = want;
		}
		ret = lzma_code(&s, LZMA_FINISH);
	} while (ret == LZMA_OK);
	if (ret != LZMA_STREAM_END)
		goto out;
	*data = buf;
	*len = cap - s.avail_out;
	buf = NULL;
	err = 0;
out:
	lzma_end(&s);
	free(buf);
	return err;
}

int debugfile__open_embedded(const struct elf_image *img, uint8_t **data, struct elf_image **out)
{
	const uint8_t *packed;
	size_t packed_len, len;
	char name[4096];
	int err;

	*data = NULL;
	*out = NULL;
	err = elf_image__section(img, ".gnu_debugdata", &packed, &packed_len, NULL);
	if (err)
		return err;
	err = unpack(packed, packed_len, data, &len);
	if (err)
		return err;
	snprintf(name, sizeof(name), "%.4000s (.gnu_debugdata)", elf_image__name(img));
	err = elf_image__open_memory(*data, len, name, out, NULL);
	if (err) {
		free(*data);
		*data = NULL;
	}
	return err;
}

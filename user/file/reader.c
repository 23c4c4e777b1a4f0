// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Opening a trace and walking its events. */
#include "file/reader.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file/reader_impl.h"

static int no_memory(const struct trace_reader *r, struct err *e)
{
	return err_set(e, -ENOMEM, "%.256s: %s", r->name, strerror(ENOMEM));
}

static int add_events(struct trace_reader *r, uint64_t off, const struct trace_block *b,
		      struct err *e)
{
	struct trace_info *info = &r->info;

	if (!b->count || b->count > TRACE_EVENTS_MAX)
		return reader_damaged(r, e, off, "a block of an impossible number of events");
	if (b->thread >= info->nthreads)
		return reader_damaged(r, e, off, "events of a thread that is not in the table");
	if (b->start_ns > b->end_ns)
		return reader_damaged(r, e, off, "a block that ends before it starts");
	if (r->nblocks == r->blocks_cap) {
		size_t cap = r->blocks_cap ? r->blocks_cap * 2 : 256;
		struct block_place *p = realloc(r->blocks, cap * sizeof(*p));

		if (!p)
			return no_memory(r, e);
		r->blocks = p;
		r->blocks_cap = cap;
	}
	r->blocks[r->nblocks++] = (struct block_place){.off = off,
						       .start_ns = b->start_ns,
						       .end_ns = b->end_ns,
						       .thread = b->thread,
						       .count = b->count};
	if (!info->nevents || b->start_ns < info->first_ns)
		info->first_ns = b->start_ns;
	if (b->end_ns > info->last_ns)
		info->last_ns = b->end_ns;
	info->nevents += b->count;
	info->event_bytes += sizeof(*b) + b->stored_len;
	return 0;
}

/* One block of the walk at opening; b may come from the index, so it lacks what only a header has. */
static int add_block(struct trace_reader *r, uint64_t off, const struct trace_block *listed,
		     struct err *e)
{
	enum header_state state;
	struct trace_block b;
	int err;

	if (listed->type == BLOCK_EVENTS)
		return add_events(r, off, listed, e);
	if (listed->type == BLOCK_GPU)
		return reader_gpu(r, off, listed, e);
	if (listed->type == BLOCK_AGGREGATES)
		return reader_aggregates(r, off, listed, e);
	if (!table__of(listed->type)) {
		r->info.unknown_blocks++;
		return 0;
	}
	err = reader_header(r, off, &b, &state, e);
	if (err)
		return err;
	if (state != HEADER_GOOD || b.type != listed->type || b.stored_len != listed->stored_len)
		return reader_damaged(r, e, off, "a block is not what the index says");
	err = reader_payload(r, off, &b, e);
	return err ? err : reader_table(r, off, &b, e);
}

static int check_file_header(struct trace_reader *r, struct err *e)
{
	struct trace_file_header h;
	size_t len = r->size < sizeof(h) ? (size_t)r->size : sizeof(h);
	int err = reader_pread(r, 0, &h, len, e);

	if (err)
		return err;
	if (len < sizeof(h.magic) || memcmp(h.magic, TRACE_MAGIC, sizeof(h.magic)) != 0)
		return err_set(e, -EBADMSG, "%.256s: not a qbpf trace", r->name);
	if (len < sizeof(h))
		return reader_damaged(r, e, len, "the file ends within its header");
	if (h.crc != trace_crc(&h, offsetof(struct trace_file_header, crc)))
		return reader_damaged(r, e, 0, "the header's checksum is wrong");
	if (h.major != TRACE_MAJOR)
		return err_set(e, -EPROTO, "%.256s: a trace of version %u.%u; this qbpf reads %u",
			       r->name, h.major, h.minor, TRACE_MAJOR);
	if (h.size != sizeof(h))
		return reader_damaged(r, e, 0, "the header has an impossible length");
	return 0;
}

static int no_file(const char *name, mode_t mode, struct err *e)
{
	return err_set(e, -EINVAL, "%.256s: a %s, not a regular file%s", name,
		       S_ISDIR(mode)	? "folder"
		       : S_ISFIFO(mode) ? "pipe"
		       : S_ISSOCK(mode) ? "socket"
					: "device",
		       S_ISDIR(mode)
			   ? ""
			   : "; a trace is not read from front to back: save it to a file first");
}

int trace_reader__open_fd(int fd, const char *name, struct trace_reader **out, struct err *e)
{
	struct trace_reader *r = calloc(1, sizeof(*r));
	struct stat st;
	int err;

	*out = NULL;
	if (!r) {
		close(fd);
		return err_set(e, -ENOMEM, "%.256s: %s", name, strerror(ENOMEM));
	}
	r->fd = fd;
	r->name = strdup(name);
	r->codec = event_codec__new();
	r->zstd = ZSTD_createDCtx();
	r->to_ns = UINT64_MAX;
	err = -ENOMEM;
	if (!r->name || !r->codec || !r->zstd) {
		err_set(e, err, "%.256s: %s", name, strerror(ENOMEM));
		goto out;
	}
	if (fstat(fd, &st)) {
		err = err_set(e, -errno, "%.256s: %s", name, strerror(errno));
		goto out;
	}
	err = -EINVAL;
	if (!S_ISREG(st.st_mode)) {
		no_file(name, st.st_mode, e);
		goto out;
	}
	r->size = r->info.file_bytes = (uint64_t)st.st_size;
	err = check_file_header(r, e);
	if (!err)
		err = reader_walk(r, add_block, e);
	if (!err)
		err = reader_tables_done(r, e);
out:
	if (err) {
		trace_reader__free(r);
		return err;
	}
	*out = r;
	return trace_reader__start(r, TRACE_ALL_THREADS, false);
}

int trace_reader__open(const char *path, struct trace_reader **out, struct err *e)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY), err = -errno;

	*out = NULL;
	if (fd < 0 && !strcmp(path, "-"))
		return no_file(path, S_IFIFO, e);
	if (fd < 0)
		return err_set(e, err, "%.256s: %s", path, strerror(-err));
	return trace_reader__open_fd(fd, path, out, e);
}

void trace_reader__free(struct trace_reader *r)
{
	if (!r)
		return;
	close(r->fd);
	event_codec__free(r->codec);
	ZSTD_freeDCtx(r->zstd);
	strings__free(&r->strings);
	free(r->info.spans);
	free(r->info.probes);
	free(r->info.mappings);
	free(r->info.processes);
	free(r->info.threads);
	free(r->info.nodes);
	free(r->info.losses);
	free(r->info.clocks);
	free(r->info.counts);
	free(r->info.gpu_names);
	free(r->info.gpu_losses);
	free(r->gpu);
	free(r->gpu_raw.p);
	free((void *)r->info.aggregates);
	free(r->parts);
	free(r->new_parts);
	free(r->stored.p);
	free(r->raw.p);
	free(r->events);
	free(r->blocks);
	free(r->by_thread);
	free(r->thread_first);
	free(r->name);
	free(r);
}

const struct trace_info *trace_reader__info(const struct trace_reader *r)
{
	return &r->info;
}

/* --- events ------------------------------------------------------------------------------------- */

/* Numbers of the blocks, sorted by thread, so that one thread's walk does not pass all others'. */
static int sort_by_thread(struct trace_reader *r)
{
	size_t n = r->info.nthreads, *first;

	if (r->by_thread)
		return 0;
	if (r->nblocks > UINT32_MAX)
		return -E2BIG;
	first = calloc(n + 2, sizeof(*first));
	r->by_thread = malloc((r->nblocks + 1) * sizeof(*r->by_thread));
	if (!first || !r->by_thread) {
		free(first);
		free(r->by_thread);
		r->by_thread = NULL;
		return -ENOMEM;
	}
	/* first[t + 2] counts t's blocks, then first[t + 1] is where the next of them goes. */
	for (size_t i = 0; i < r->nblocks; i++)
		first[r->blocks[i].thread + 2]++;
	for (size_t t = 2; t < n + 2; t++)
		first[t] += first[t - 1];
	for (size_t i = 0; i < r->nblocks; i++)
		r->by_thread[first[r->blocks[i].thread + 1]++] = (uint32_t)i;
	r->thread_first = first;
	return 0;
}

int trace_reader__start(struct trace_reader *r, uint32_t thread, bool backwards)
{
	int err;

	r->backwards = backwards;
	r->from_ns = 0;
	r->to_ns = UINT64_MAX;
	r->order = NULL;
	r->at = 0;
	r->left = r->nblocks;
	if (thread != TRACE_ALL_THREADS) {
		if (thread >= r->info.nthreads)
			return -EINVAL;
		err = sort_by_thread(r);
		if (err)
			return err;
		r->order = r->by_thread;
		r->at = r->thread_first[thread];
		r->left = r->thread_first[thread + 1] - r->at;
	}
	if (backwards && r->left)
		r->at += r->left - 1;
	return 0;
}

void trace_reader__between(struct trace_reader *r, uint64_t from_ns, uint64_t to_ns)
{
	r->from_ns = from_ns;
	r->to_ns = to_ns;
}

static int read_events(struct trace_reader *r, const struct block_place *place, struct err *e)
{
	enum header_state state;
	struct trace_block b;
	const char *why;
	int err;

	err = reader_header(r, place->off, &b, &state, e);
	if (err)
		return err;
	if (state != HEADER_GOOD || b.type != BLOCK_EVENTS || b.thread != place->thread ||
	    b.count != place->count || b.start_ns != place->start_ns || b.end_ns != place->end_ns)
		return reader_damaged(r, e, place->off, "a block is not what the index says");
	err = reader_payload(r, place->off, &b, e);
	if (err)
		return err;
	if (b.count > r->events_cap) {
		struct event *p = realloc(r->events, b.count * sizeof(*p));

		if (!p)
			return no_memory(r, e);
		r->events = p;
		r->events_cap = b.count;
	}
	err =
	    event_codec__decode(r->codec, r->raw.p, &b, (uint32_t)r->info.nspans, r->events, &why);
	if (err == -ENOMEM)
		return no_memory(r, e);
	return err ? reader_damaged(r, e, place->off, why) : 0;
}

int trace_reader__next(struct trace_reader *r, const struct event **events, size_t *n,
		       struct err *e)
{
	while (r->left) {
		const struct block_place *place = &r->blocks[r->order ? r->order[r->at] : r->at];
		int err;

		r->left--;
		if (r->left)
			r->at += r->backwards ? -1 : 1;
		if (place->end_ns < r->from_ns || place->start_ns > r->to_ns)
			continue;
		err = read_events(r, place, e);
		if (err)
			return err;
		*events = r->events;
		*n = place->count;
		return 1;
	}
	return 0;
}

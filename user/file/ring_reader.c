// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Makes a shared-memory ring and reads it, trusting nothing that the other side wrote. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "file/ring_reader.h"

#ifndef MFD_NOEXEC_SEAL /* glibc 2.38 */
#define MFD_NOEXEC_SEAL 8U
#endif

struct ring_reader {
	struct qbpf_ring ring; /* geometry as this side decided it */
	void *map;
	uint64_t bytes;
	int fd;
	int lock_fd; /* another open file description: it alone holds the lock */
	uint32_t bad_lanes;
	uint64_t unknown_types;
	uint64_t read[QBPF_RING_TYPES];
	struct {
		uint64_t consumed;
		bool bad;
	} lane[QBPF_RING_LANES_MAX];
};

/* The least size of a record of each type. */
static const uint16_t least[QBPF_RING_TYPES] = {
    [QBPF_RING_KERNEL] = sizeof(struct qbpf_ring_kernel),
    [QBPF_RING_COPY] = sizeof(struct qbpf_ring_copy),
    [QBPF_RING_SET] = sizeof(struct qbpf_ring_set),
    [QBPF_RING_SYNC] = sizeof(struct qbpf_ring_sync),
    [QBPF_RING_CALL] = sizeof(struct qbpf_ring_call),
    [QBPF_RING_GRAPH] = sizeof(struct qbpf_ring_graph),
    [QBPF_RING_OVERHEAD] = sizeof(struct qbpf_ring_overhead),
    [QBPF_RING_DEVICE] = sizeof(struct qbpf_ring_device),
    [QBPF_RING_CONTEXT] = sizeof(struct qbpf_ring_context),
    [QBPF_RING_STREAM] = sizeof(struct qbpf_ring_stream),
    [QBPF_RING_CLOCK] = sizeof(struct qbpf_ring_clock_point),
    [QBPF_RING_DROPPED] = sizeof(struct qbpf_ring_dropped),
    [QBPF_RING_START] = sizeof(struct qbpf_ring_start),
    [QBPF_RING_WINDOW] = sizeof(struct qbpf_ring_window),
};

uint32_t ring_type_size(unsigned type)
{
	return type < QBPF_RING_TYPES && least[type] ? least[type]
						     : sizeof(struct qbpf_ring_record);
}

static uint32_t power_of_two(uint32_t n, uint32_t min, uint32_t max)
{
	uint32_t p = min;

	while (p < n && p < max)
		p <<= 1;
	return p;
}

/* What the options ask for, within the limits of the layout. */
static uint64_t geometry(struct qbpf_ring_head *h, const struct ring_options *o)
{
	static const struct ring_options none;
	uint32_t strings;

	if (!o)
		o = &none;
	memset(h, 0, sizeof(*h));
	h->magic = QBPF_RING_MAGIC;
	h->version = QBPF_RING_VERSION;
	h->head_bytes = sizeof(*h);
	h->lanes = o->lanes ? o->lanes : 16;
	if (h->lanes > QBPF_RING_LANES_MAX)
		h->lanes = QBPF_RING_LANES_MAX;
	h->lane_bytes = power_of_two(o->lane_bytes ? o->lane_bytes : 2u << 20,
				     4 * QBPF_RING_RECORD_MAX, 1u << 30);
	strings = o->strings ? o->strings : 16384;
	/* at most half full, so that a search stays short */
	h->nslots = strings < 1u << 19 ? power_of_two(2 * strings, 16, 1u << 20) : 1u << 20;
	h->strings_bytes = o->strings_bytes ? o->strings_bytes : 2u << 20;
	if (h->strings_bytes > 1u << 28)
		h->strings_bytes = 1u << 28;
	h->strings_bytes = (h->strings_bytes + 63) & ~63u;
	h->wants = o->wants;
	h->flush_ms = o->flush_ms ? o->flush_ms : 100;
	h->total_bytes = qbpf_ring_lay_out(h);
	return h->total_bytes;
}

/* The lock lies on an open file description that no child can inherit. */
static int take_lock(struct ring_reader *r, struct err *e)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", r->fd);
	r->lock_fd = open(path, O_RDWR | O_CLOEXEC);
	if (r->lock_fd < 0)
		return err_set(e, -errno, "%s: %m (the ring for the CUDA agent)", path);
	if (fcntl(r->lock_fd, F_OFD_SETLK, &lock) < 0)
		return err_set(e, -errno, "cannot lock the ring for the CUDA agent: %m");
	return 0;
}

/* r->fd is an empty memfd: gives it its size for good, fills in the head, locks it. */
static int set_up(struct ring_reader *r, const struct ring_options *o, struct err *e)
{
	struct qbpf_ring_head h;
	struct stat st;
	int seals = fcntl(r->fd, F_GET_SEALS);

	r->bytes = geometry(&h, o);
	/* Whoever handed it over may have meant harm: nothing else is made longer. */
	if (fstat(r->fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size || seals < 0 ||
	    (seals & F_SEAL_SEAL))
		return err_set(e, -EINVAL, "the ring for the CUDA agent is no empty memfd");
	if (ftruncate(r->fd, (off_t)r->bytes) < 0)
		return err_set(e, -errno, "no room for a ring of %llu bytes: %m",
			       (unsigned long long)r->bytes);
	/* Now, so that the memory is ours and not the target's, and cannot run out while it writes. */
	if (fallocate(r->fd, 0, 0, (off_t)r->bytes) < 0)
		return err_set(e, -errno, "no memory for a ring of %llu bytes: %m",
			       (unsigned long long)r->bytes);
	if (fcntl(r->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return err_set(e, -errno, "cannot seal the ring for the CUDA agent: %m");
	r->map = mmap(NULL, r->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, r->fd, 0);
	if (r->map == MAP_FAILED) {
		r->map = NULL;
		return err_set(e, -errno, "cannot map a ring of %llu bytes: %m",
			       (unsigned long long)r->bytes);
	}
	memcpy(r->map, &h, sizeof(h));
	if (qbpf_ring_open(&r->ring, r->map, r->bytes))
		return err_set(e, -EINVAL, "the ring for the CUDA agent was changed meanwhile");
	return take_lock(r, e);
}

/* fd is taken, whether this succeeds or not. */
static struct ring_reader *reader_on(int fd, const struct ring_options *o, struct err *e)
{
	struct ring_reader *r = calloc(1, sizeof(*r));
	int err = -ENOMEM;

	if (!r) {
		close(fd);
		err_set(e, err, "out of memory");
		goto out;
	}
	r->fd = fd;
	r->lock_fd = -1;
	err = set_up(r, o, e);
	if (err) {
		ring_reader__free(r);
		r = NULL;
	}
out:
	if (!r)
		errno = -err;
	return r;
}

struct ring_reader *ring_reader__new(const struct ring_options *o, struct err *e)
{
	int fd = memfd_create("qbpf-ring", MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL);

	if (fd < 0 && errno == EINVAL) /* before 6.3 */
		fd = memfd_create("qbpf-ring", MFD_ALLOW_SEALING);
	if (fd < 0) {
		err_set(e, -errno, "memfd_create: %m");
		return NULL;
	}
	return reader_on(fd, o, e);
}

struct ring_reader *ring_reader__adopt(int fd, const struct ring_options *o, struct err *e)
{
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 3);

	if (own < 0) {
		err_set(e, -errno, "descriptor %d: %m", fd);
		return NULL;
	}
	return reader_on(own, o, e);
}

void ring_reader__free(struct ring_reader *r)
{
	if (!r)
		return;
	if (r->map)
		munmap(r->map, r->bytes);
	if (r->lock_fd >= 0)
		close(r->lock_fd);
	close(r->fd);
	free(r);
}

int ring_reader__fd(const struct ring_reader *r)
{
	return r->fd;
}

static void give_up(struct ring_reader *r, uint32_t n)
{
	r->lane[n].bad = true;
	r->bad_lanes++;
}

/* How many bytes of lane n can be read; 0 as well when they make no sense. */
static uint64_t waiting(const struct ring_reader *r, uint32_t n, bool *bad)
{
	uint64_t written = __atomic_load_n(&r->ring.lane[n].written, __ATOMIC_ACQUIRE);
	uint64_t bytes = written - r->lane[n].consumed;

	*bad = bytes > r->ring.lane_bytes || (bytes & 7);
	return *bad ? 0 : bytes;
}

/*
 * One record from the `left` bytes before `end`, copied to buf. Its head is read once: the writer may
 * change it behind our back. Returns its size, 0: no record can look like this.
 */
static uint32_t take(const unsigned char *at, uint64_t left, unsigned char *buf)
{
	struct qbpf_ring_record *rec = (struct qbpf_ring_record *)buf;
	uint64_t head = __atomic_load_n((const uint64_t *)(const void *)at, __ATOMIC_RELAXED);

	memcpy(rec, &head, sizeof(head));
	if (rec->size < sizeof(*rec) || (rec->size & 7) || rec->size > left)
		return 0;
	if (rec->type == QBPF_RING_PAD)
		return rec->size;
	if (rec->size > QBPF_RING_RECORD_MAX || rec->size < ring_type_size(rec->type))
		return 0;
	memcpy(buf + sizeof(head), at + sizeof(head), rec->size - sizeof(head));
	return rec->size;
}

static int poll_lane(struct ring_reader *r, uint32_t n, ring_record_fn fn, void *ctx)
{
	_Alignas(8) unsigned char buf[QBPF_RING_RECORD_MAX];
	const struct qbpf_ring_record *rec = (const struct qbpf_ring_record *)buf;
	const unsigned char *data = r->ring.data + (uint64_t)n * r->ring.lane_bytes;
	uint64_t consumed = r->lane[n].consumed, left, edge;
	uint32_t pos, size;
	bool bad;
	int ret = 0;

	for (left = waiting(r, n, &bad); left && !ret; left -= size, consumed += size) {
		pos = (uint32_t)consumed & (r->ring.lane_bytes - 1);
		edge = r->ring.lane_bytes - pos;
		size = take(data + pos, left < edge ? left : edge, buf);
		if (!size) {
			bad = true;
			break;
		}
		if (rec->type == QBPF_RING_PAD)
			continue;
		if (!ring_type_name(rec->type)) {
			r->unknown_types++;
			continue;
		}
		r->read[rec->type]++;
		ret = fn(ctx, rec);
	}
	if (bad)
		give_up(r, n);
	r->lane[n].consumed = consumed;
	__atomic_store_n(&r->ring.lane[n].consumed, consumed, __ATOMIC_RELEASE);
	return ret;
}

int ring_reader__poll(struct ring_reader *r, ring_record_fn fn, void *ctx)
{
	uint32_t n;
	int ret;

	for (n = 0; n < r->ring.lanes; n++) {
		if (r->lane[n].bad)
			continue;
		ret = poll_lane(r, n, fn, ctx);
		if (ret)
			return ret;
	}
	return 0;
}

unsigned ring_reader__fill(const struct ring_reader *r)
{
	uint64_t most = 0, bytes;
	uint32_t n;
	bool bad;

	for (n = 0; n < r->ring.lanes; n++) {
		bytes = r->lane[n].bad ? 0 : waiting(r, n, &bad);
		if (bytes > most)
			most = bytes;
	}
	return (unsigned)(most * 100 / r->ring.lane_bytes);
}

int ring_reader__string(const struct ring_reader *r, uint32_t id, char *buf, size_t size)
{
	const struct qbpf_ring_string *s;
	uint32_t kept;

	if (size)
		buf[0] = 0;
	s = __qbpf_ring_string(&r->ring, id, &kept);
	if (!s)
		return -ENOENT;
	if (size) {
		size_t n = kept < size - 1 ? kept : size - 1;

		memcpy(buf, s + 1, n);
		buf[n] = 0;
	}
	return (int)kept;
}

void ring_reader__stop(struct ring_reader *r)
{
	__atomic_store_n(&r->ring.head->command, QBPF_RING_STOP, __ATOMIC_RELEASE);
	syscall(SYS_futex, &r->ring.head->command, FUTEX_WAKE, 64, NULL, NULL, 0);
}

/* A text that the other side may be writing at this moment. */
static void copy_text(char *to, const char *from, size_t size)
{
	size_t i;

	for (i = 0; i < size - 1; i++) {
		unsigned char c = (unsigned char)__atomic_load_n(from + i, __ATOMIC_RELAXED);

		if (!c)
			break;
		to[i] = c >= 0x20 && c < 0x7f ? (char)c : '?';
	}
	memset(to + i, 0, size - i);
}

void ring_reader__status(const struct ring_reader *r, struct ring_status *s)
{
	const struct qbpf_ring_head *h = r->ring.head;
	unsigned i;

	memset(s, 0, sizeof(*s));
#define GET(f) s->f = __atomic_load_n(&h->f, __ATOMIC_RELAXED)
	s->state = __atomic_load_n(&h->state, __ATOMIC_ACQUIRE);
	GET(reason), GET(fault), GET(fault_code), GET(clock);
	GET(warnings), GET(generation), GET(tgid);
	GET(cupti_version), GET(cupti_major), GET(driver_version), GET(runtimes);
	GET(kinds), GET(kinds_refused), GET(kind_fault), GET(threads), GET(buffers_out);
	GET(started_ns), GET(on_ns), GET(off_ns), GET(heartbeat_ns), GET(in_call_ns);
	for (i = 0; i < QBPF_RING_TYPES; i++)
		GET(lost[i]);
	GET(lost_strings), GET(dropped), GET(discarded), GET(unknown), GET(broken), GET(buffers);
	GET(callbacks), GET(late), GET(flushed_ns);
#undef GET
	copy_text(s->in_call, h->in_call, sizeof(s->in_call));
	copy_text(s->fault_call, h->fault_call, sizeof(s->fault_call));
	copy_text(s->rival, h->rival, sizeof(s->rival));
	copy_text(s->cupti_path, h->cupti_path, sizeof(s->cupti_path));
	memcpy(s->read, r->read, sizeof(s->read));
	s->unknown_types = r->unknown_types;
	s->bad_lanes = r->bad_lanes;
}

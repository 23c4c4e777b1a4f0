// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* The ring as a file: mapping it, taking the producer's place, and whether its reader lives. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "probes/cupti/agent.h"

void set_state(enum qbpf_ring_state state)
{
	__atomic_store_n(&agent.ring.head->state, state, __ATOMIC_RELEASE);
}

bool reader_lives(void)
{
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};

	return fcntl(agent.fd, F_OFD_GETLK, &lock) < 0 || lock.l_type != F_UNLCK;
}

/*
 * Where the ring is mapped is known before it is there, and until there is nothing any more: a child,
 * forked at any moment, finds it and keeps none of its memory.
 */
static void *cover(void *place)
{
	return mmap(place, agent.map_bytes, PROT_NONE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | (place ? MAP_FIXED : 0), -1, 0);
}

void close_ring(void)
{
	void *map = agent.map;
	int fd = __atomic_exchange_n(&agent.fd, -1, __ATOMIC_SEQ_CST);

	memset(&agent.ring, 0, sizeof(agent.ring));
	if (map && cover(map) == map) {
		__atomic_store_n(&agent.map, NULL, __ATOMIC_SEQ_CST);
		munmap(map, agent.map_bytes);
	}
	if (fd >= 0)
		close(fd);
}

/* A file that could be made shorter would end the target with SIGBUS: it has to be sealed. */
int open_ring(const char *path)
{
	struct stat st;
	void *map;
	int err, seals;

	agent.fd = open(path, O_RDWR | O_CLOEXEC);
	if (agent.fd < 0)
		return -errno;
	err = -EINVAL;
	seals = fcntl(agent.fd, F_GET_SEALS);
	if (seals < 0 || !(seals & F_SEAL_SHRINK) || fstat(agent.fd, &st) < 0 ||
	    st.st_size < (off_t)sizeof(struct qbpf_ring_head))
		goto out;
	agent.map_bytes = (uint64_t)st.st_size;
	map = cover(NULL);
	if (map != MAP_FAILED) {
		__atomic_store_n(&agent.map, map, __ATOMIC_SEQ_CST);
		map = mmap(map, agent.map_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
			   agent.fd, 0);
	}
	if (map == MAP_FAILED) {
		err = -errno;
		goto out;
	}
	if (qbpf_ring_open(&agent.ring, map, agent.map_bytes))
		goto out;
	agent.wants = agent.ring.head->wants;
	agent.flush_ms = agent.ring.head->flush_ms;
	if (agent.flush_ms < 1 || agent.flush_ms > 10000)
		agent.flush_ms = ROUND_MS;
	err = reader_lives() ? 0 : -ESRCH;
out:
	if (err)
		close_ring();
	return err;
}

/* Takes the producer's place if it is free, or was left by a process that is gone or was us before
 * exec. Whoever is left out goes without a word but this bit. */
bool become_producer(void)
{
	struct qbpf_ring_head *h = agent.ring.head;
	uint32_t pid = (uint32_t)getpid(), was = 0, i;

	if (!__atomic_compare_exchange_n(&h->holder, &was, pid, false, __ATOMIC_ACQ_REL,
					 __ATOMIC_ACQUIRE)) {
		if ((was != pid && !(kill((pid_t)was, 0) < 0 && errno == ESRCH)) ||
		    !__atomic_compare_exchange_n(&h->holder, &was, pid, false, __ATOMIC_ACQ_REL,
						 __ATOMIC_ACQUIRE)) {
			warn(QBPF_RING_WARN_SECOND);
			return false;
		}
		for (i = 0; i < agent.ring.lanes; i++) /* their threads are gone */
			__atomic_store_n(&agent.ring.lane[i].owner, 0, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&agent.held, 1, __ATOMIC_RELAXED);
	h->tgid = pid;
	h->generation++;
	h->reason = h->fault = 0;
	h->fault_code = h->kind_fault = 0;
	h->kinds = h->kinds_refused = h->on_ns = h->off_ns = 0;
	h->rival[0] = h->fault_call[0] = h->in_call[0] = 0;
	h->in_call_ns = h->flushed_ns = 0;
	h->warnings &= QBPF_RING_WARN_SECOND;
	__atomic_fetch_and(&h->command, ~(uint32_t)QBPF_RING_WAKE, __ATOMIC_RELAXED);
	h->threads = 1;
	h->started_ns = h->heartbeat_ns = monotonic_ns();
	set_state(QBPF_RING_STARTING);
	return true;
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Switches CUPTI on, in the order that it wants; the first failure is left in the ring. */
#include "probes/cupti/agent.h"

/* CUDA 13.0 before update 1. */
#define VERSION_13_0 130000u

static int subscribe(void)
{
	struct qbpf_ring_head *h = agent.ring.head;
	struct cupti_subscriber_params params = {.size = sizeof(params), .name = "qbpf"};
	char rival[64] = "";
	int code;

	if (!cupti.cuptiSubscribe_v2)
		return CUPTI(cuptiSubscribe, &agent.subscriber, on_callback, NULL);
	params.old_name = rival;
	params.old_size = sizeof(rival);
	code = CUPTI(cuptiSubscribe_v2, &agent.subscriber, on_callback, NULL, &params);
	rival[sizeof(rival) - 1] = 0;
	if (code == CUPTI_RIVAL)
		set_text(h->rival, sizeof(h->rival), rival);
	return code;
}

/* Before any other call: CUPTI keeps the clock that a device's first record had. */
static void choose_clock(void)
{
	agent.clock = QBPF_RING_CLOCK_CUPTI;
	if (!agent.first_in)
		warn(QBPF_RING_WARN_LATE);
	else if (cupti.cuptiActivityRegisterTimestampCallback &&
		 CUPTI(cuptiActivityRegisterTimestampCallback, clock_for_cupti) == CUPTI_OK)
		agent.clock = QBPF_RING_CLOCK_MONOTONIC;
	else
		warn(QBPF_RING_WARN_CLOCK);
	agent.ring.head->clock = agent.clock;
}

static void put_start(void)
{
	struct qbpf_ring_start r = {.type = QBPF_RING_START, .size = sizeof(r)};
	struct qbpf_ring_writer w;

	r.generation = agent.ring.head->generation;
	r.tgid = agent.ring.head->tgid;
	r.clock = agent.clock;
	r.monotonic_ns = monotonic_ns();
	qbpf_ring_claim(&agent.ring, thread_id(), 0, &w);
	qbpf_ring_put(&w, &r);
	qbpf_ring_release(&w);
	mark_time();
}

bool switch_on(void)
{
	size_t one = 1;
	uint8_t yes = 1;
	int code;

	if (!cupti_load())
		return false;
	if (agent.ring.head->cupti_version == VERSION_13_0)
		warn(QBPF_RING_WARN_13_0);
	choose_clock();
	if (cupti.cuptiSetThreadIdType)
		CUPTI(cuptiSetThreadIdType, THREAD_ID_SYSTEM);
	code = subscribe();
	if (code != CUPTI_OK) {
		agent.subscriber = NULL;
		return fault(QBPF_RING_CUPTI_CALL,
			     cupti.cuptiSubscribe_v2 ? "cuptiSubscribe_v2" : "cuptiSubscribe",
			     code);
	}
	CUPTI(cuptiEnableCallback, 1, agent.subscriber, DOMAIN_STATE, STATE_FATAL_ERROR);
	if (!buffers_make())
		return false;
	/* The attribute is a promise to hand over zeroed buffers, which spares the target's threads
	 * the zeroing. Buffers that are zeroed for nothing do no harm. */
	CUPTI(cuptiActivitySetAttribute, ATTR_ZEROED_BUFFER, &one, &yes);
	code = CUPTI(cuptiActivityRegisterCallbacks, buffers_request, buffers_complete);
	if (code != CUPTI_OK)
		return fault(QBPF_RING_CUPTI_CALL, "cuptiActivityRegisterCallbacks", code);
	agent.registered = true;
	put_start();
	__atomic_store_n(&agent.recording, 1, __ATOMIC_SEQ_CST);
	return kinds_enable();
}

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Leaves CUPTI as if the agent had never been there. All of it runs on the agent's own thread, so
 * whatever hangs in it (a persistent kernel never ends) holds up nothing of the target.
 *
 * cuptiFinalize may be called only from the exit of an API call. Instead of waiting for one of the
 * target's and stalling that, the agent makes one itself, cuDriverGetVersion, with a callback on
 * that function alone: launches never run through us.
 */
#include "probes/cupti/agent.h"

static uint32_t caller; /* the thread in detach(); 0: none */
static bool finalized;

void on_callback(void *context, int domain, uint32_t cbid, const void *data)
{
	uint32_t site;

	(void)context;
	__atomic_fetch_add(&agent.callbacks, 1, __ATOMIC_RELAXED);
	if (domain == DOMAIN_STATE && cbid == STATE_FATAL_ERROR)
		__atomic_store_n(&agent.fatal, 1, __ATOMIC_RELAXED);
	if (domain != DOMAIN_DRIVER || cbid != CBID_DRIVER_VERSION || !data)
		return;
	memcpy(&site, data, sizeof(site));
	if (site != SITE_EXIT || __atomic_load_n(&caller, __ATOMIC_RELAXED) != thread_id() ||
	    finalized)
		return;
	finalized = true;
	CUPTI(cuptiUnsubscribe, agent.subscriber);
	if (CUPTI(cuptiFinalize) != CUPTI_OK)
		warn(QBPF_RING_WARN_LINGERS);
}

void detach(void)
{
	if (!agent.subscriber || __atomic_load_n(&agent.fatal, __ATOMIC_RELAXED))
		return; /* nothing was begun, or CUPTI took itself away */
	kinds_disable();
	if (agent.registered)
		CUPTI(cuptiActivityFlushAll, FLUSH_FORCED);
	count_dropped();
	finalized = false;
	__atomic_store_n(&caller, thread_id(), __ATOMIC_RELAXED);
	if (cupti.cuptiFinalize && CUPTI(cuptiEnableCallback, 1, agent.subscriber, DOMAIN_DRIVER,
					 CBID_DRIVER_VERSION) == CUPTI_OK) {
		call_enter("cuDriverGetVersion");
		driver_version();
		call_leave();
	}
	__atomic_store_n(&caller, 0, __ATOMIC_RELAXED);
	if (!finalized) {
		CUPTI(cuptiUnsubscribe, agent.subscriber);
		warn(QBPF_RING_WARN_LINGERS);
	}
	agent.subscriber = NULL;
}

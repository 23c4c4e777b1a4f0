/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * cupti_sim.h - the parts of the simulated libcupti
 *
 * records.c turns calls and activities into records; buffers.c owns the tool's buffers and the
 * threads that fill and return them; api.c and callbacks.c are the entry points. No lock is held
 * while a function of the tool runs.
 */
#ifndef CUDASIM_CUPTI_SIM_H
#define CUDASIM_CUPTI_SIM_H

#include <cupti.h>

#include "sim.h"

#define RECORD_MAX 512

/* --- records.c -------------------------------------------------------------------------------- */

struct record {
	struct record *next, *prev;
	uint64_t due; /* ns of the simulator's clock: when the device has done it */
	uint32_t correlation;
	bool api;
	uint16_t size;
	_Alignas(8) uint8_t bytes[RECORD_MAX];
};

void records_api(const struct sim_call *c);
void records_activity(const struct sim_activity *a);
size_t record_size(CUpti_ActivityKind kind);
CUptiResult records_enable(CUpti_ActivityKind kind, bool on);
void records_enable_call(enum sim_domain domain, uint32_t cbid, bool on);
CUptiResult records_clock(CUpti_TimestampCallbackFunc fn);
void records_context_seen(void);
uint64_t records_now(void);
void records_thread_ids(CUpti_ActivityThreadIdType type);
CUpti_ActivityThreadIdType records_thread_id_type(void);
CUptiResult records_push(CUpti_ExternalCorrelationKind kind, uint64_t id);
CUptiResult records_pop(CUpti_ExternalCorrelationKind kind, uint64_t *id);
void records_reset(void);

/* --- buffers.c -------------------------------------------------------------------------------- */

void buffers_register(CUpti_BuffersCallbackRequestFunc request,
		      CUpti_BuffersCallbackCompleteFunc complete);
bool buffers_registered(void);
/* From the thread that made the call; takes r. */
void buffers_api(struct record *r);
/* By one of the worker threads, once it is due; takes r. Holds no lock of the tool's. */
void buffers_device(struct record *r, uint32_t stream);
bool buffers_flush(void); /* false: CUPTI has given up */
size_t buffers_dropped(void);
/* Returns what is in the buffers and ends the threads. */
void buffers_stop(void);
void buffers_forked(void);

/* --- callbacks.c ------------------------------------------------------------------------------ */

void callbacks_call(struct sim_call *c, CUpti_ApiCallbackSite site);
bool callbacks_subscribed(void);
/* Tells the subscriber that all is over. */
void callbacks_fatal(void);
void callbacks_reset(void);

#endif /* CUDASIM_CUPTI_SIM_H */

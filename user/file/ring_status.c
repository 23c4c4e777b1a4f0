// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* What the producer of a ring says about itself, in words, with the remedy where there is one. */
#include "file/ring_reader.h"

static const char *const type_names[] = {
    [QBPF_RING_KERNEL] = "kernel",     [QBPF_RING_COPY] = "copy",
    [QBPF_RING_SET] = "set",	       [QBPF_RING_SYNC] = "sync",
    [QBPF_RING_CALL] = "call",	       [QBPF_RING_GRAPH] = "graph",
    [QBPF_RING_OVERHEAD] = "overhead", [QBPF_RING_DEVICE] = "device",
    [QBPF_RING_CONTEXT] = "context",   [QBPF_RING_STREAM] = "stream",
    [QBPF_RING_CLOCK] = "clock",       [QBPF_RING_DROPPED] = "dropped",
    [QBPF_RING_START] = "start",       [QBPF_RING_WINDOW] = "window",
};

const char *ring_type_name(unsigned type)
{
	return type < sizeof(type_names) / sizeof(type_names[0]) ? type_names[type] : NULL;
}

uint64_t ring_status__lost(const struct ring_status *s)
{
	uint64_t n = s->dropped + s->discarded;
	unsigned i;

	for (i = 0; i < QBPF_RING_TYPES; i++)
		n += s->lost[i];
	return n;
}

/* CUptiResult values whose cause and remedy are known. */
static const struct {
	int code;
	const char *text;
} cupti_errors[] = {
    {8, "out of memory"},
    {15, "CUPTI is not initialised: the CUDA driver did not start in this process"},
    {27, "not supported on this system"},
    {33, "not supported on a virtual GPU"},
    {35,
     "profiling needs privileges: load the driver with NVreg_RestrictProfilingToAdminUsers=0 "
     "(options nvidia ... in /etc/modprobe.d), or run the target as root or with CAP_SYS_ADMIN"},
    {38, "the GPU is too new or too old for this CUPTI"},
    {39, "another profiler holds CUPTI"},
    {40, "the hypervisor does not allow profiling of this virtual GPU"},
    {41, "not supported in confidential-computing mode"},
    {999, "no usable CUDA driver or GPU"},
};

static const char *cupti_error(int code)
{
	size_t i;

	for (i = 0; i < sizeof(cupti_errors) / sizeof(cupti_errors[0]); i++)
		if (cupti_errors[i].code == code)
			return cupti_errors[i].text;
	return NULL;
}

static void explain_call(const struct ring_status *s, char *buf, size_t size)
{
	const char *text = cupti_error(s->fault_code);
	bool named = s->fault_code == 39 && s->rival[0];

	snprintf(buf, size, "CUDA agent: %s%s%s%s (%s returned %d)%s",
		 text ? text : "CUPTI does not work here", named ? " (" : "", named ? s->rival : "",
		 named ? "); end it and attach again" : "", s->fault_call, s->fault_code,
		 s->warnings & QBPF_RING_WARN_STUBS
		     ? "; a stubs folder is on LD_LIBRARY_PATH: take it off"
		     : "");
}

static void explain_fault(const struct ring_status *s, char *buf, size_t size)
{
	switch (s->fault) {
	case QBPF_RING_NO_CUPTI:
		snprintf(buf, size,
			 "CUDA agent: no libcupti.so of CUDA %u found: install the CUPTI "
			 "of that toolkit, or set CUDA_HOME",
			 s->driver_version / 1000);
		break;
	case QBPF_RING_OLD_CUPTI:
		snprintf(buf, size, "CUDA agent: %s has no %s: CUDA 11 or later is needed",
			 s->cupti_path, s->fault_call);
		break;
	case QBPF_RING_OTHER_MAJOR:
		snprintf(buf, size,
			 "CUDA agent: %s is of CUDA %u, the driver of CUDA %u: set "
			 "CUDA_HOME to a toolkit of CUDA %u",
			 s->cupti_path, s->cupti_major, s->driver_version / 1000,
			 s->driver_version / 1000);
		break;
	case QBPF_RING_STUBS:
		snprintf(buf, size,
			 "CUDA agent: the target uses the toolkit's libcuda stub instead of "
			 "the driver: take the stubs folder off LD_LIBRARY_PATH");
		break;
	case QBPF_RING_NO_THREAD:
		snprintf(buf, size, "CUDA agent: cannot start a thread in the target: %s",
			 strerror(s->fault_code));
		break;
	case QBPF_RING_NO_MEMORY:
		snprintf(buf, size, "CUDA agent: no memory in the target: %s",
			 strerror(s->fault_code));
		break;
	default:
		explain_call(s, buf, size);
	}
}

static const char *reason_text(const struct ring_status *s)
{
	switch (s->reason) {
	case QBPF_RING_ASKED:
		return "detached";
	case QBPF_RING_READER_GONE:
		return "detached by itself, its reader was gone";
	case QBPF_RING_EXIT:
		return "done, the process ended";
	default:
		return "off";
	}
}

static void explain_fatal(const struct ring_status *s, char *buf, size_t size)
{
	uint64_t ms = s->flushed_ns > s->on_ns ? (s->flushed_ns - s->on_ns) / 1000000 : 0;

	snprintf(
	    buf, size,
	    "CUDA agent: CUPTI reported a fatal error and gave up: nothing of the GPU is known "
	    "since it had been at work for %llu.%03llu s",
	    (unsigned long long)(ms / 1000), (unsigned long long)(ms % 1000));
}

void ring_status__explain(const struct ring_status *s, char *buf, size_t size)
{
	switch (s->state) {
	case QBPF_RING_ABSENT:
		snprintf(buf, size, "CUDA agent: not loaded: the target has not initialised CUDA");
		break;
	case QBPF_RING_STARTING:
		snprintf(buf, size, "CUDA agent: starting%s%s", s->in_call[0] ? ", in " : "",
			 s->in_call);
		break;
	case QBPF_RING_ON:
		snprintf(buf, size, "CUDA agent: on, CUPTI of CUDA %u (%s)%s", s->cupti_major,
			 s->cupti_path,
			 s->warnings & QBPF_RING_WARN_13_0
			     ? "; CUDA 13.0 before update 1 can deadlock the target when detaching"
			     : "");
		break;
	case QBPF_RING_STOPPING:
		snprintf(buf, size, "CUDA agent: detaching%s%s", s->in_call[0] ? ", in " : "",
			 s->in_call);
		break;
	case QBPF_RING_OFF:
		if (s->reason == QBPF_RING_FATAL) {
			explain_fatal(s, buf, size);
			break;
		}
		snprintf(buf, size, "CUDA agent: %s%s", reason_text(s),
			 s->warnings & QBPF_RING_WARN_LINGERS
			     ? "; CUPTI could not be finalised and stays loaded, idle"
			     : "");
		break;
	default:
		explain_fault(s, buf, size);
	}
}

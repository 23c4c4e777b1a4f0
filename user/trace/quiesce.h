/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Waiting until every BPF program that runs now has returned. */
#ifndef QBPF_TRACE_QUIESCE_H
#define QBPF_TRACE_QUIESCE_H

/*
 * After it, no program that was running is: what has been switched off before is off. 0 or a
 * negative errno. Takes an RCU grace period, some tens of ms.
 */
int quiesce_programs(void);

#endif

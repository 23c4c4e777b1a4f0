/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* --cuda of attach and run: who gets an agent, and what it means when none can be had. */
#ifndef QBPF_CMD_CUDA_H
#define QBPF_CMD_CUDA_H

#include "cmd/options.h"
#include "trace/agents.h"

/*
 * Before the program is started. *out: NULL when no agent is wanted, or none can be had and none was
 * asked for by name: a line says why.
 */
int cuda__for_run(const struct options *o, struct agents **out, struct err *e);
/* For running processes: *out NULL when no agent is wanted. */
int cuda__for_attach(const struct options *o, struct agents **out, struct err *e);
/* Brings one into each, before any probe is armed. A fault only where it was asked for by name. */
int cuda__attach(const struct options *o, struct agents *a, struct err *e);
/* After the last report. Fails when the agent that was asked for by name was never at work. */
int cuda__finish(const struct options *o, struct agents *a, struct err *e);

#endif

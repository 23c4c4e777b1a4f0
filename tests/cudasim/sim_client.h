/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* sim_client.h - a small CUPTI client that prints what it gets */
#ifndef CUDASIM_SIM_CLIENT_H
#define CUDASIM_SIM_CLIENT_H

#include <cupti.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Set before the first record. */
extern struct client {
	size_t buffer_size, buffer_records; /* 0 records: no limit */
	bool no_buffers;
} client;

void CUPTIAPI client_request(uint8_t **buffer, size_t *size, size_t *max);
void CUPTIAPI client_complete(CUcontext ctx, uint32_t stream, uint8_t *buffer, size_t size,
			      size_t valid);
/* Flushes, and prints `dropped,N` and `buffers,REQUESTED,RETURNED,MOST AT ONCE`. */
void client_stop(void);

#endif /* CUDASIM_SIM_CLIENT_H */

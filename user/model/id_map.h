/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* A map of 64-bit keys to indices: open addressing, grows, never shrinks. */
#ifndef QBPF_MODEL_ID_MAP_H
#define QBPF_MODEL_ID_MAP_H

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>

#define ID_MAP_NONE UINT32_MAX

struct id_map {
	struct id_map_slot {
		uint64_t key;
		uint32_t value; /* + 1; 0: free */
	} * slots;
	size_t cap, n;
};

static inline size_t id_map__place(const struct id_map *m, uint64_t key)
{
	size_t i = (key * 0x9e3779b97f4a7c15ull >> 20) & (m->cap - 1);

	while (m->slots[i].value && m->slots[i].key != key)
		i = (i + 1) & (m->cap - 1);
	return i;
}

static inline uint32_t id_map__get(const struct id_map *m, uint64_t key)
{
	return m->cap ? m->slots[id_map__place(m, key)].value - 1 : ID_MAP_NONE;
}

/* The key must not be there yet. 0 or -ENOMEM. */
static inline int id_map__put(struct id_map *m, uint64_t key, uint32_t value)
{
	size_t i;

	if (m->n + m->n / 2 >= m->cap) {
		struct id_map old = *m;

		m->cap = old.cap ? 2 * old.cap : 64;
		m->slots = (struct id_map_slot *)calloc(m->cap, sizeof(*m->slots));
		if (!m->slots) {
			*m = old;
			return -ENOMEM;
		}
		for (i = 0; i < old.cap; i++)
			if (old.slots[i].value)
				m->slots[id_map__place(m, old.slots[i].key)] = old.slots[i];
		free(old.slots);
	}
	i = id_map__place(m, key);
	m->slots[i].key = key;
	m->slots[i].value = value + 1;
	m->n++;
	return 0;
}

static inline void id_map__clear(struct id_map *m)
{
	free(m->slots);
	m->slots = NULL;
	m->cap = m->n = 0;
}

#endif

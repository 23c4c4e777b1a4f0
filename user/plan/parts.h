/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Which code belongs to which function of one object: its symbol, the unwind table's second
 * opinion, and the cold parts that the compiler moved away. Private to plan/.
 */
#ifndef QBPF_PLAN_PARTS_H
#define QBPF_PLAN_PARTS_H

#include "plan/plan.h"

#define PARTS_MAX 8

struct parts; /* of one object; made on first use */

/* The code of one function. n = 0: no one knows what function this is. */
struct func_code {
	struct code_range ranges[PARTS_MAX];
	size_t n;
	const struct elf_func *func; /* NULL: known from the unwind table only */
	bool size_from_fde;
	bool guessed; /* a symbol without size, and no unwind table: it may be any label */
};

struct parts *parts__new(const struct plan_object *obj);
void parts__free(struct parts *p);

/*
 * The function around addr. When addr lies in NAME.cold, that of NAME. `entry`: a symbol there
 * was chosen as a function, else addr is some place in the code.
 */
void parts__find(struct parts *p, uint64_t addr, bool entry, struct func_code *out);
/*
 * The facts of the function with all its cold parts: those that go by another name (an alias) or by
 * none (a stripped file) are found by the jumps into them and added to `code`. An FDE is a part
 * and no function when it is entered in the middle, begins in a built frame, or jumps back.
 */
int parts__facts(const struct parts *p, struct func_code *code, struct func_facts *out);
/* Is addr where a function starts, or in a PLT? */
bool parts__may_be_called(const struct parts *p, uint64_t addr);

#endif

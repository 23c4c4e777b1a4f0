/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/* Reads one argument of a marker from where its site says it lies. */
#ifndef QBPF_ARGS_BPF_H
#define QBPF_ARGS_BPF_H

#include "maps.bpf.h"

static __always_inline bool read_reg(struct pt_regs *ctx, __u32 off, __u64 *out)
{
	if (off > sizeof(struct pt_regs) - sizeof(*out))
		return false;
	return !bpf_probe_read_kernel(out, sizeof(*out), (void *)ctx + off);
}

/* The bits of a float as those of the double of equal value. */
static __always_inline __u64 f32_to_f64(__u32 bits)
{
	__u64 sign = (__u64)(bits >> 31) << 63, m = bits & 0x7fffff;
	__u32 exp = (bits >> 23) & 0xff;

	if (exp == 0xff)
		return sign | 0x7ffULL << 52 | m << 29;
	if (exp)
		return sign | (__u64)(exp + 1023 - 127) << 52 | m << 29;
	if (!m)
		return sign;
	/* A subnormal is m * 2^-149; a double can hold it as a normal number. */
	for (int i = 0; i < 23 && !(m & 0x800000); i++) {
		m <<= 1;
		exp++;
	}
	return sign | (__u64)(1023 - 126 - exp) << 52 | (m & 0x7fffff) << 29;
}

/*
 * Integers come out sign- or zero-extended to 64 bits, floats as the bits of a double. False:
 * unreadable (no such argument, or its memory is not present).
 */
static __always_inline bool read_arg(struct pt_regs *ctx, const struct qbpf_arg *a, __u64 *out)
{
	__u64 v = a->off, r;
	__u32 size = a->size;

	if (!(a->flags & QBPF_ARG_VALID) || !size || size > sizeof(v))
		return false;
	if (a->base != QBPF_NO_REG) {
		if (!read_reg(ctx, a->base, &r))
			return false;
		v += r >> (a->shift & 63);
	}
	if (a->index != QBPF_NO_REG) {
		if (!read_reg(ctx, a->index, &r))
			return false;
		v += r * a->scale;
	}
	if (a->flags & QBPF_ARG_DEREF) {
		r = v;
		v = 0;
		if (bpf_probe_read_user(&v, size, (void *)r))
			return false;
	}
	if (a->flags & QBPF_ARG_FLOAT) {
		if (size == 4)
			v = f32_to_f64(v);
		else if (size != 8)
			return false;
	} else {
		__u32 unused = 64 - 8 * size;

		v <<= unused;
		v = a->flags & QBPF_ARG_SIGNED ? (__u64)((__s64)v >> unused) : v >> unused;
	}
	*out = v;
	return true;
}

#endif

// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Any bytes as a summary document; whatever is one is compared with itself and checked. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "model/check.h"
#include "model/diff.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int ok)
{
	if (!ok)
		abort();
}

static void compare(const struct side *s)
{
	struct diff_opts o = {.confidence = 0.99, .min_change = 0.02};
	struct diff *d;

	check(!diff__new(s, s, &o, &d));
	check(d->n == s->n);
	/* Nothing differs from itself. */
	for (size_t i = 0; i < d->n; i++)
		check(d->rows[i].verdict <= DIFF_TOO_FEW && !d->rows[i].changed);
	diff__free(d);
}

static void judge(const struct side *s)
{
	static const char *const rules[] = {"* lost == 0",
					    "* p99 < 50us",
					    "* p75 < baseline * 1.05",
					    "*/* share < 30%",
					    "a p50 < 3",
					    "a/b mean < 5us",
					    "/* self/span > 0",
					    "*:x total <= baseline",
					    "*:tick rate > 10/2",
					    "a max < baseline - 5ns"};
	struct check_opts o = {.baseline = s, .confidence = 0.99};
	struct err e;

	for (size_t i = 0; i < sizeof(rules) / sizeof(*rules); i++) {
		struct budget b = {0};
		struct check *c = NULL;

		check(!budget__add(&b, rules[i], &e));
		if (!check__run(&b, s, &o, &c, &e))
			check(c->n == c->counts[CHECK_OK] + c->counts[CHECK_BROKEN] +
					  c->counts[CHECK_TOO_FEW]);
		else
			check(*e.text);
		check__free(c);
		budget__clear(&b);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("summary", MFD_CLOEXEC);
	struct side *s;
	struct err e = {{0}};
	char path[64];

	check(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	if (side__load(path, NULL, 0, &s, &e)) {
		check(*e.text);
	} else if (s->n < 200) {
		compare(s);
		judge(s);
	}
	side__free(s);
	close(fd);
	return 0;
}

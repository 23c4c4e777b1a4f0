// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Any bytes as a budget file, and as one rule; whatever is a rule is evaluated. */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "model/budget.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(int ok)
{
	if (!ok)
		abort();
}

static void evaluate(const struct budget *b)
{
	static const struct quantity baselines[] = {
	    {true, 1000, {900, 1100}},
	    {false, 0, {-1, 1}},
	    {true, 1e300, {-INFINITY, INFINITY}},
	};
	char place[RULE_PLACE];

	for (size_t i = 0; i < b->n; i++) {
		check(*rule__place(place, &b->rules[i]));
		check(b->rules[i].span && *b->rules[i].text);
		for (size_t k = 0; k < sizeof(baselines) / sizeof(*baselines); k++)
			for (int time = 0; time < 2; time++) {
				struct quantity out;

				if (limit__eval(b->rules[i].limit, time, &baselines[k], &out))
					continue;
				check(isfinite(out.value));
				check(!isnan(out.ci.lo) && !isnan(out.ci.hi));
				check(out.is_time == time || out.value == 0);
			}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int fd = memfd_create("budget", MFD_CLOEXEC);
	struct budget b = {0};
	struct err e = {{0}};
	char path[64], *text = malloc(size + 1);

	check(fd >= 0 && text && write(fd, data, size) == (ssize_t)size);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	/* A fault names the file and, where there is one, a line and a column. */
	check(!budget__read(&b, path, &e) || !strncmp(e.text, path, strlen(path)));
	evaluate(&b);
	budget__clear(&b);
	close(fd);
	memcpy(text, data, size);
	text[size] = '\0';
	check(!budget__add(&b, text, &e) == (b.n == 1));
	evaluate(&b);
	budget__clear(&b);
	free(text);
	return 0;
}

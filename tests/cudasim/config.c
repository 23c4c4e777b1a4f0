/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * config.c - CUDASIM, CUDASIM_FAIL and CUDASIM_KERNELS: what the simulator is told to be like
 *
 * Read once, when the library is loaded. A word that is not understood ends the program at once
 * with status 120: a test that asks for a fault must never run without it.
 */
#include <ctype.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim.h"

#define RULES_MAX 64

struct fault {
	char name[64];
	int error;
	unsigned long every, calls;
};

struct rule {
	char name[128];
	int arg; /* < 0: ns */
	uint64_t ns;
};

static struct sim_config config = {
    .seed = 1,
    .devices = 1,
    .slots = 16,
    .queue = SIM_QUEUE_MAX,
    .call_ns = 2000,
    .init_ns = 2000000,
    .load_ns = 300000,
    .latency_ns = 3000,
    .node_ns = 1000,
    .kernel_ns = 10000,
    .host_ns = 5000,
    .copy_ns = 1000,
    .h2d_mbs = 25000,
    .d2h_mbs = 25000,
    .d2d_mbs = 1000000,
    .p2p_mbs = 50000,
    .pageable_mbs = 6000,
    .memset_mbs = 1000000,
    .correlation = 1,
    .version = 130001,
    .threads = 2,
    .times_every = 1,
};

static struct fault faults[RULES_MAX];
static unsigned int n_faults;
static struct rule rules[RULES_MAX];
static unsigned int n_rules;

static const char *const clock_words[] = {"real", "virtual", NULL};
static const char *const hang_words[] = {"none", "finalize", "flush", NULL};
static const char *const order_words[] = {"natural", "api-first", "api-last", "shuffle", NULL};
static const char *const times_words[] = {"true", "zero", "reversed", "future", NULL};

static const struct {
	const char *name;
	int64_t *value;
	int64_t min, max;
	const char *const *words;
} fields[] = {
    {"clock", &config.virtual_clock, 0, 0, clock_words},
    {"seed", &config.seed, 0, INT64_MAX, NULL},
    {"devices", &config.devices, 0, SIM_DEVICES, NULL},
    {"slots", &config.slots, 1, SIM_SLOTS, NULL},
    {"queue", &config.queue, 1, SIM_QUEUE_MAX, NULL},
    {"jitter", &config.jitter, 0, 100, NULL},
    {"call_ns", &config.call_ns, 0, 1000000000, NULL},
    {"init_ns", &config.init_ns, 0, 10000000000, NULL},
    {"load_ns", &config.load_ns, 0, 10000000000, NULL},
    {"latency_ns", &config.latency_ns, 0, 1000000000, NULL},
    {"node_ns", &config.node_ns, 0, 1000000000, NULL},
    {"kernel_ns", &config.kernel_ns, 0, 1000000000000, NULL},
    {"host_ns", &config.host_ns, 0, 1000000000, NULL},
    {"copy_ns", &config.copy_ns, 0, 1000000000, NULL},
    {"h2d_mbs", &config.h2d_mbs, 1, 1000000000, NULL},
    {"d2h_mbs", &config.d2h_mbs, 1, 1000000000, NULL},
    {"d2d_mbs", &config.d2d_mbs, 1, 1000000000, NULL},
    {"p2p_mbs", &config.p2p_mbs, 1, 1000000000, NULL},
    {"pageable_mbs", &config.pageable_mbs, 1, 1000000000, NULL},
    {"memset_mbs", &config.memset_mbs, 1, 1000000000, NULL},
    {"correlation", &config.correlation, 0, UINT32_MAX, NULL},
    {"version", &config.version, 1, INT32_MAX, NULL},
    {"record_pad", &config.record_pad, 0, 256, NULL},
    {"threads", &config.threads, 1, 16, NULL},
    {"subscribe", &config.subscribe, 0, 999, NULL},
    {"enable_kind", &config.enable_kind, 0, 1000, NULL},
    {"enable_error", &config.enable_error, 0, 999, NULL},
    {"drop", &config.drop, 0, INT32_MAX, NULL},
    {"order", &config.order, 0, 0, order_words},
    {"times", &config.times, 0, 0, times_words},
    {"times_every", &config.times_every, 1, INT32_MAX, NULL},
    {"offset_ns", &config.offset_ns, INT64_MIN, INT64_MAX, NULL},
    {"drift_ppb", &config.drift_ppb, -1000000000, 1000000000, NULL},
    {"hang", &config.hang, 0, 0, hang_words},
    {"race", &config.race, 0, 64, NULL},
    {"complete_ns", &config.complete_ns, 0, 999999999, NULL},
    {"fatal", &config.fatal, 0, INT32_MAX, NULL},
};

static void __attribute__((noreturn)) refuse(const char *variable, const char *word)
{
	fprintf(stderr, "cudasim: %s: '%s' is not understood\n", variable, word);
	_exit(120);
}

static bool number(const char *s, int64_t *n)
{
	char *end;

	if (!*s || isspace((unsigned char)*s))
		return false;
	*n = strtoll(s, &end, 0);
	return !*end;
}

static void set_field(char *word)
{
	char *value = strchr(word, '=');
	int64_t n;

	if (!value)
		refuse("CUDASIM", word);
	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		if (strncmp(fields[i].name, word, (size_t)(value - word)) ||
		    fields[i].name[value - word])
			continue;
		if (fields[i].words) {
			for (n = 0; fields[i].words[n]; n++) {
				if (!strcmp(fields[i].words[n], value + 1))
					break;
			}
			if (!fields[i].words[n])
				refuse("CUDASIM", word);
		} else if (!number(value + 1, &n) || n < fields[i].min || n > fields[i].max) {
			refuse("CUDASIM", word);
		}
		*fields[i].value = n;
		return;
	}
	refuse("CUDASIM", word);
}

/* CALL=ERROR or CALL=ERROR/EVERY */
static void set_fault(char *word)
{
	struct fault *f = &faults[n_faults];
	char *value = strchr(word, '='), *every;
	int64_t n, k = 1;
	bool ok;

	if (!value || n_faults == RULES_MAX || (size_t)(value - word) >= sizeof(f->name))
		refuse("CUDASIM_FAIL", word);
	memcpy(f->name, word, (size_t)(value - word));
	every = strchr(value, '/');
	if (every)
		*every = '\0';
	ok = number(value + 1, &n) && n >= 0 && n <= 999 && (!every || number(every + 1, &k)) &&
	     k >= 1;
	if (every)
		*every = '/';
	if (!ok)
		refuse("CUDASIM_FAIL", word);
	f->error = (int)n;
	f->every = (unsigned long)k;
	n_faults++;
}

/* GLOB=NS, GLOB=argN or GLOB=inf */
static void set_rule(char *word)
{
	struct rule *r = &rules[n_rules];
	char *value = strchr(word, '=');
	int64_t n;

	if (!value || n_rules == RULES_MAX || (size_t)(value - word) >= sizeof(r->name))
		refuse("CUDASIM_KERNELS", word);
	memcpy(r->name, word, (size_t)(value - word));
	value++;
	r->arg = -1;
	if (!strcmp(value, "inf")) {
		r->ns = SIM_NEVER;
	} else if (!strncmp(value, "arg", 3) && number(value + 3, &n) && n >= 0 && n < SIM_PARAMS) {
		r->arg = (int)n;
	} else if (number(value, &n) && n >= 0) {
		r->ns = (uint64_t)n;
	} else {
		refuse("CUDASIM_KERNELS", word);
	}
	n_rules++;
}

static void each_word(const char *variable, void (*set)(char *word))
{
	const char *text = getenv(variable);
	char *copy, *save = NULL;

	if (!text)
		return;
	copy = strdup(text);
	if (!copy)
		refuse(variable, "out of memory");
	for (char *w = strtok_r(copy, ", ", &save); w; w = strtok_r(NULL, ", ", &save))
		set(w);
	free(copy);
}

static void __attribute__((constructor(101))) config_read(void)
{
	each_word("CUDASIM", set_field);
	each_word("CUDASIM_FAIL", set_fault);
	each_word("CUDASIM_KERNELS", set_rule);
}

const struct sim_config *sim_config(void)
{
	return &config;
}

int sim_fault(const char *name)
{
	for (unsigned int i = 0; i < n_faults; i++) {
		if (strcmp(faults[i].name, name))
			continue;
		if (__atomic_add_fetch(&faults[i].calls, 1, __ATOMIC_RELAXED) % faults[i].every ==
		    0)
			return faults[i].error;
	}
	return 0;
}

bool sim_kernel_rule(const char *name, int *arg, uint64_t *ns)
{
	for (unsigned int i = 0; i < n_rules; i++) {
		if (fnmatch(rules[i].name, name, 0))
			continue;
		*arg = rules[i].arg;
		*ns = rules[i].ns;
		return true;
	}
	return false;
}

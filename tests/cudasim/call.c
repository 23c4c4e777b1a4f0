/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * call.c - what happens around every entry point: ids, host time, errors on demand, the tool
 *
 * A driver call made by a runtime call is part of it and has its correlation id. The host time of
 * a call is spent in the outermost one.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "sim.h"

pthread_mutex_t sim_lock = PTHREAD_MUTEX_INITIALIZER;

static __thread struct sim_thread self;
static const struct sim_tools *tools;
static uint32_t next_correlation;
static pthread_once_t start_once = PTHREAD_ONCE_INIT;
static _Atomic bool started, forked;

static void __attribute__((constructor(103))) call_init(void)
{
	next_correlation = (uint32_t)sim_config()->correlation;
	truth_open();
}

struct sim_thread *sim_self(void)
{
	if (!self.tid)
		self.tid = (uint32_t)syscall(SYS_gettid);
	return &self;
}

void sim_tools_set(const struct sim_tools *t)
{
	__atomic_store_n(&tools, t, __ATOMIC_SEQ_CST);
}

static const struct sim_tools *tools_now(void)
{
	return __atomic_load_n(&tools, __ATOMIC_SEQ_CST);
}

/* --- start and fork --------------------------------------------------------------------------- */

/* A child of a process that used the GPU cannot use it: as with the driver. */
static void in_child(void)
{
	const struct sim_tools *t = tools_now();

	pthread_mutex_init(&sim_lock, NULL);
	self.tid = 0;
	if (!started)
		return;
	forked = true;
	truth_forget();
	if (t)
		t->forked();
}

static void before_fork(void)
{
	pthread_mutex_lock(&sim_lock);
}

static void in_parent(void)
{
	pthread_mutex_unlock(&sim_lock);
}

/* The driver loads what CUDA_INJECTION64_PATH names, and calls InitializeInjection there. */
static void inject(void)
{
	const char *path = getenv("CUDA_INJECTION64_PATH");
	int (*initialize)(void);
	void *lib;

	if (!path || !*path)
		return;
	lib = dlopen(path, RTLD_NOW);
	if (!lib) {
		fprintf(stderr, "cudasim: CUDA_INJECTION64_PATH: %s\n", dlerror());
		return;
	}
	*(void **)&initialize = dlsym(lib, "InitializeInjection");
	if (initialize)
		initialize();
}

static void __attribute__((constructor(104))) watch_fork(void)
{
	pthread_atfork(before_fork, in_parent, in_child);
}

static void start(void)
{
	inject();
	started = true;
	sim_spend((uint64_t)sim_config()->init_ns);
}

bool sim_start(void)
{
	if (forked)
		return false;
	pthread_once(&start_once, start);
	return true;
}

bool sim_started(void)
{
	return started && !forked;
}

/* --- calls ------------------------------------------------------------------------------------ */

int sim_call_enter(struct sim_call *c)
{
	struct sim_thread *t = sim_self();
	const struct sim_tools *tool = tools_now();

	c->parent = t->call;
	c->tid = t->tid;
	if (c->parent)
		c->correlation = c->parent->correlation;
	else
		c->correlation = __atomic_fetch_add(&next_correlation, 1, __ATOMIC_SEQ_CST);
	t->call = c;
	if (tool && !forked)
		tool->enter(c);
	c->enter = sim_now();
	if (!c->parent && !forked)
		sim_spend((uint64_t)sim_config()->call_ns);
	return forked ? CUDA_ERROR_NOT_INITIALIZED : sim_fault(c->name);
}

int sim_call_exit(struct sim_call *c, int result)
{
	const struct sim_tools *tool = tools_now();

	c->exit = sim_now();
	c->result = result;
	truth_call(c);
	/* Work of the tool itself is not the call's. */
	self.call = c->parent;
	if (tool && !forked) {
		tool->api(c);
		tool->exit(c);
	}
	return result;
}

void sim_activity_done(const struct sim_activity *a)
{
	const struct sim_tools *tool = tools_now();

	truth_activity(a);
	if (tool && !forked)
		tool->activity(a);
}

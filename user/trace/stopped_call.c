// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/* Making interrupted system calls anew; see stopped_call.h. */
#include "trace/stopped_call.h"

#include <elf.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>

#include "elf/proc_state.h"
#include "trace/waits.h"

#define CODE_64BIT 0x33 /* %cs */

/* In the kernel's include/linux/errno.h, seen by tracers alone. */
#define ERESTARTSYS	      512
#define ERESTARTNOINTR	      513
#define ERESTARTNOHAND	      514
#define ERESTART_RESTARTBLOCK 516

int stopped_regs__get(pid_t tid, struct user_regs_struct *r)
{
	struct iovec v = {.iov_base = r, .iov_len = sizeof(*r)};

	return ptrace(PTRACE_GETREGSET, tid, (void *)NT_PRSTATUS, &v) ? -errno : 0;
}

int stopped_regs__set(pid_t tid, struct user_regs_struct *r)
{
	struct iovec v = {.iov_base = r, .iov_len = sizeof(*r)};

	return ptrace(PTRACE_SETREGSET, tid, (void *)NT_PRSTATUS, &v) ? -errno : 0;
}

static bool at_syscall(pid_t tid, uint64_t ip)
{
	errno = 0;
	return (ptrace(PTRACE_PEEKTEXT, tid, (void *)(uintptr_t)(ip - 2), NULL) & 0xffff) ==
		   0x050f &&
	       !errno;
}

bool stopped_call__is_interrupted(const struct user_regs_struct *r)
{
	return (long)r->rax == -EINTR && wait__is_interrupted((long)r->orig_rax);
}

bool stopped_call__has_rest(const struct user_regs_struct *r)
{
	return (long)r->orig_rax >= 0 && (long)r->rax == -ERESTART_RESTARTBLOCK;
}

bool stopped_call__restart(pid_t tid, struct user_regs_struct *r, bool *changed)
{
	long call = (long)r->orig_rax;

	*changed = false;
	if (call < 0)
		return true;
	switch (-(long)r->rax) {
	case ERESTARTSYS:
	case ERESTARTNOINTR:
	case ERESTARTNOHAND:
		r->rax = (unsigned long)call;
		break;
	case ERESTART_RESTARTBLOCK:
		r->rax = SYS_restart_syscall;
		break;
	case EINTR:
		if (!wait__is_interrupted(call))
			return false;
		r->rax = (unsigned long)call;
		break;
	default: /* it had just come to its end */
		r->orig_rax = -1ul;
		*changed = true;
		return true;
	}
	if (!at_syscall(tid, r->rip))
		return false;
	r->rip -= 2;
	r->orig_rax = -1ul;
	*changed = true;
	return true;
}

static uint64_t hex_after(const char *text, const char *key)
{
	const char *p = strstr(text, key);

	return p ? strtoull(p + strlen(key), NULL, 16) : 0;
}

const char *stopped_call__signals(pid_t pid, pid_t tid)
{
	char dir[64], *text = NULL;
	uint64_t pending;
	size_t len;

	snprintf(dir, sizeof(dir), "/proc/%d/task/%d", pid, tid);
	if (proc_state__read_file(dir, "status", &text, &len))
		return "it is gone";
	pending = (hex_after(text, "\nSigPnd:") | hex_after(text, "\nShdPnd:")) &
		  ~hex_after(text, "\nSigBlk:");
	free(text);
	return pending ? "a signal is on its way to it" : NULL;
}

void stopped_call__mend(pid_t pid, pid_t tid)
{
	struct user_regs_struct r;
	bool changed;

	if (!stopped_regs__get(tid, &r) && r.cs == CODE_64BIT && stopped_call__is_interrupted(&r) &&
	    !stopped_call__signals(pid, tid) && stopped_call__restart(tid, &r, &changed))
		stopped_regs__set(tid, &r);
}

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

/*
 * Calls that a mere stop ends with EINTR, and that have done nothing then: some always, those of
 * sockets when they have SO_RCVTIMEO or SO_SNDTIMEO, the last when the kernel could not write the time
 * that was left.
 */
static bool stop_interrupts(long call)
{
	switch (call) {
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
	case 441: /* epoll_pwait2 */
	case SYS_semop:
	case SYS_semtimedop:
	case SYS_rt_sigtimedwait:
	case SYS_io_getevents:
	case 333: /* io_pgetevents */
	case 426: /* io_uring_enter */
	case SYS_read:
	case SYS_readv:
	case SYS_recvfrom:
	case SYS_recvmsg:
	case SYS_recvmmsg:
	case SYS_write:
	case SYS_writev:
	case SYS_sendto:
	case SYS_sendmsg:
	case SYS_sendmmsg:
	case SYS_connect:
	case SYS_accept:
	case SYS_accept4:
	case SYS_select:
	case SYS_pselect6:
	case SYS_ppoll:
		return true;
	default:
		return false;
	}
}

static bool at_syscall(pid_t tid, uint64_t ip)
{
	errno = 0;
	return (ptrace(PTRACE_PEEKTEXT, tid, (void *)(uintptr_t)(ip - 2), NULL) & 0xffff) ==
		   0x050f &&
	       !errno;
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
		if (!stop_interrupts(call))
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

	if (!stopped_regs__get(tid, &r) && r.cs == CODE_64BIT && (long)r.rax == -EINTR &&
	    stop_interrupts((long)r.orig_rax) && !stopped_call__signals(pid, tid) &&
	    stopped_call__restart(tid, &r, &changed))
		stopped_regs__set(tid, &r);
}

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 900
"""qbpf attach --cuda agent on a single thread that waits in the kernel: no wait becomes longer for it."""

import os
import time

import agent_session as a
from agent_session import until
from harness import case, check, equal
from inject_session import LINE, Target, once

TARGET = os.path.join(a.SIM, "wait_target")
LIMIT_MS = 1000
SLACK_US = 500000  # less than what a wait is made longer by that begins again after a few attaches
# They begin again for a stop.
LIMITED = "epoll_wait epoll_pwait epoll_pwait2 ppoll_const sigtimedwait semtimedop io_getevents io_pgetevents " \
          "io_uring recv recv_tcp recv_datagram read_socket accept connect terminal".split()  # fmt: skip
# They do not.
EXACT = "poll ppoll select pselect mq futex nanosleep nanosleep_same clock_nanosleep_same clock_nanosleep_abs".split()
ENDLESS = "epoll_wait epoll_pwait epoll_pwait2 poll ppoll select pselect sigtimedwait semtimedop recv recv_tcp " \
          "recv_datagram read_socket terminal mq futex".split()  # fmt: skip


def target(call, limit):
    return Target([TARGET, call, limit], env=a.env())


def attached(pid, times, what):
    for i in range(times):
        _, err = once(pid)
        check(LINE.search(err), f"{what}, attach {i}: {err}")


def ended(w, what):
    """Its counts: no wait was too short or too long, and none returned what it should not."""
    counts = w.end()
    if counts.get("unknown"):
        return None
    check(counts["rounds"] > 0, f"{what}: {counts}")
    equal(counts["early"], 0, f"{what}: waits that were too short")
    check(counts["late_us"] < SLACK_US, f"{what}: longer by {counts['late_us']} us: {counts}")
    return counts


def waits(calls, times):
    worst = 0
    for call in calls:
        with target(call, LIMIT_MS) as w:
            attached(w.pid, times, call)
            counts = ended(w, call)
        worst = max(worst, counts["late_us"]) if counts else worst
        if not counts:
            print(f"# no {call} here", flush=True)
    print(f"# the longest was {worst} us longer than its limit", flush=True)


@case
def limits_that_would_begin_again():
    "a wait of 1 s in each call whose limit a stop begins again, attached to again and again: none is longer"
    waits(LIMITED, 3)


@case
def limits_that_stay():
    "a wait of 1 s in each call that goes on, attached to again and again: the same, and what is slept is unchanged"
    waits(EXACT, 2)


@case
def short_limits():
    "waits of 3 ms and of 30 ms"
    for limit in (3, 30):
        for call in ("epoll_wait", "sigtimedwait", "recv"):
            with target(call, limit) as w:
                attached(w.pid, 3, f"{call} {limit} ms")
                ended(w, f"{call} {limit} ms")


@case
def what_comes_meanwhile():
    "waits without a limit, which end by what another process sends: each gets all of it, none sees EINTR"
    for call in ENDLESS:
        with target(call, -1) as w:
            attached(w.pid, 2, call)
            counts = w.end()
            check(counts["rounds"] > 0, f"{call}: {counts}")


@case
def a_long_limit():
    "a wait that does not end while qbpf watches is left alone: one line, and with --cuda auto none"
    with target("epoll_wait", 20000) as w:
        start = time.monotonic()
        _, err = once(w.pid, code=1)
        lines = [line for line in err.splitlines() if line.strip()]
        check(len(lines) == 1 and "waits in epoll_wait, with a limit that would begin again" in lines[0], err)
        doc, err = once(w.pid, mode="auto")
        check("CUDA's calls are seen by uprobes" in err and doc, err)
        check(time.monotonic() - start < 20, f"{time.monotonic() - start} s")
        ended(w, "epoll_wait")


@case
def a_write_that_is_done_in_part():
    "1 MB into a full pipe: it is left alone until that is done, and all is written"
    with target("write", "write") as w:
        until("it writes", lambda: open(f"/proc/{w.pid}/syscall").read().startswith("1 "))
        _, err = once(w.pid, code=1)
        check("waits in write, of whose work a part may be done already" in err, err)
        until("it has written", lambda: open(f"/proc/{w.pid}/syscall").read().startswith("7 "))
        attached(w.pid, 1, "write")
        w.end()


if __name__ == "__main__":
    a.main()

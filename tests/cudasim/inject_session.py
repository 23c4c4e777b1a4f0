# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""What the tests of `qbpf attach --cuda agent` share: a target, an attach, and what it may not leave."""

import os
import re

from agent_session import Grower, threads, until
from harness import Qbpf, Workload, equal, summary

LINE = re.compile(r"thread (\d+) was stopped for at most ([\d.]+) ms, and away from its work for ([\d.]+) ms")
STAGES = 11


class Target(Workload):
    def end(self, timeout=60):
        """Ends it; fails when a thread of it was disturbed."""
        self.p.stdin.close()
        self.p.stdin = None
        counts = self.finish(timeout)
        equal(counts["disturbed"], 0, f"disturbances: {self.err}")
        return counts


def attach(pid, *options, mode="agent", **kw):
    return Qbpf("attach", "-p", pid, "--cuda", mode, "--json", *options, **kw)


def once(pid, *options, code=0, **kw):
    q = attach(pid, "-d", "0.05", *options, **kw)
    out = q.finish(code=code)
    return (summary(out) if out else None), q.err_text()


def once_at_work(pid, log, mode="agent"):
    """Attached until the target has launched 20 kernels with the agent there."""
    with attach(pid, mode=mode) as q:
        q.wait_err("CUDA agent: on")
        Grower(log).await_more("kernel", 20)
        return summary(q.stop()), q.err_text()


def areas(pid):
    """What an injection maps; the file of the agent stays."""
    return sum("/memfd:" in line for line in open(f"/proc/{pid}/maps"))


def files(pid):
    """What stays open, without what a thread of the target's own opens in dlopen() all the time."""
    names = []
    for f in os.listdir(f"/proc/{pid}/fd"):
        try:
            names.append(os.readlink(f"/proc/{pid}/fd/{f}"))
        except FileNotFoundError:
            pass  # it was closed in between
    return sorted(n for n in names if not n.endswith(("/ld.so.cache", "/libutil.so.1")))


def nothing_left(pid, before):
    until(f"no thread is left behind: {threads(pid)}", lambda: threads(pid) == before[0], 120)
    until(f"no file is left open: {files(pid)} {before[1]}", lambda: files(pid) == before[1], 120)
    equal(areas(pid), 0, "memfds mapped")

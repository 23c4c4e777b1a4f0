#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 900
"""qbpf attach --cuda agent on processes in states that are hard on it: no harm, or one line that says why not."""

import os
import shutil
import signal
import subprocess

import agent_session as a
from agent_session import threads, until
from harness import Skip, Workload, case, check, equal
from inject_session import LINE, STAGES, Target, attach, files, nothing_left, once

TARGET = os.path.join(a.SIM, "attack_target")
SEIZED, SENT = 2, 5  # stages
INSIDE = os.path.join(a.SIM, "inject_target")


def target(*words, argv=(), **kw):
    return Target([*argv, TARGET, *words], env=a.env(), **kw)


def mappings(pid):
    """Without those that come and go with a thread's stack and its heap."""
    return [line for line in open(f"/proc/{pid}/maps") if "/" in line or "[" in line]


def attached(pid, times):
    for i in range(times):
        _, err = once(pid)
        check(LINE.search(err), f"attach {i}: {err}")


def refused(pid, words):
    """One line, whose words are these."""
    _, err = once(pid, code=1)
    lines = [line for line in err.splitlines() if line.strip()]
    check(len(lines) == 1 and words in lines[0], f"{words}: {err}")


@case
def a_filter_of_one_thread():
    "a thread whose own seccomp filter would kill the process is never chosen, others are"
    with target("filter") as w:
        attached(w.pid, 5)
        check(w.end()["filter"] > 0, "rounds")


@case
def many_that_cannot_be_had():
    "40 threads wait in code of no file and one can be had: it gets its turn"
    with target("jit:40") as w:
        attached(w.pid, 2)
        w.end()


@case
def waits_that_a_stop_ends():
    "io_uring_enter, recv and send with limits, ppoll with a constant time: no EINTR, no result changed"
    for word in ("ring", "timeo", "sticky"):
        with target(word) as w:
            attached(w.pid, 8)
            counts = w.end()
            check(all(n > 0 for key, n in counts.items() if key != "disturbed"), counts)


@case
def each_wait_is_stopped():
    "threads in such waits alone, stopped and let go or sent: no EINTR, no result changed"
    with target("leader", "ring", "timeo", "sticky") as w:
        until("the first thread ends", lambda: a.is_dead(w.pid))
        for _ in range(4):
            q = attach(w.pid, "--follow", "-d", "0.05")
            q.finish()
            check(LINE.search(q.err_text()), q.err_text())
        w.end()


@case
def in_a_storm_of_signals():
    "SIGALRM every 100 us, vector registers, threads that are cancelled, a program that forks all the time"
    with target("storm", "avx", "fork", "cancel") as w:
        before = files(w.pid)
        attached(w.pid, 30)
        until("no file is left open", lambda: files(w.pid) == before)
        counts = w.end()
    for word in ("storm", "avx", "fork", "cancel"):
        check(counts[word] > 0, f"{word}: {counts}")


@case
def again_and_again():
    "100 attaches: no more mappings, files or threads than after the first"
    with Target([INSIDE, "cuda", "regs", "cond", "read"], env=a.env()) as w:
        before = threads(w.pid), files(w.pid)
        attached(w.pid, 3)
        nothing_left(w.pid, before)
        maps = mappings(w.pid)
        memory = sum(int(line.split()[1]) for line in open(f"/proc/{w.pid}/smaps_rollup") if line.startswith("Pss:"))
        attached(w.pid, 100)
        nothing_left(w.pid, before)
        equal(len(mappings(w.pid)), len(maps), "mappings")
        now = sum(int(line.split()[1]) for line in open(f"/proc/{w.pid}/smaps_rollup") if line.startswith("Pss:"))
        check(now < memory + 4096, f"{memory} kB, then {now} kB")
        w.end()


def library(name, body):
    source, lib = os.path.join(a.tmp, name + ".c"), os.path.join(a.tmp, name + ".so")
    with open(source, "w") as f:
        f.write(body)
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", lib, source], check=True)
    return lib


@case
def the_linker_is_busy():
    "a thread holds the dynamic linker's lock: given up in time, nothing left when it lets go"
    lib = library("slow", "#include <unistd.h>\n__attribute__((constructor)) static void f(void)"
                  "{ char c = write(1, \"held\\n\", 5); while (read(0, &c, 1) > 0); sleep(2); }")  # fmt: skip
    with target("dlopen:" + lib) as w:
        w.wait_for("held")
        before = threads(w.pid), files(w.pid)
        refused(w.pid, "its dynamic linker is busy")
        check(len(threads(w.pid)) <= len(before[0]) + 1, threads(w.pid))
        w.p.stdin.close()
        w.p.stdin = None
        equal(w.finish()["disturbed"], 0, w.err)


@case
def no_more_memory_or_threads():
    "a limit on memory or threads: refused at once, nothing is left"
    with target("as") as w:
        before = threads(w.pid), files(w.pid), len(mappings(w.pid))
        refused(w.pid, "may map no more memory, or start no more threads")
        nothing_left(w.pid, before)
        w.end()
    if not shutil.which("setpriv"):
        raise Skip("no setpriv")
    os.chmod(a.tmp, 0o755)
    with target("nproc", argv=["setpriv", "--reuid=61234", "--clear-groups"]) as w:
        before = threads(w.pid), files(w.pid)
        anonymous = sum("/" not in line for line in open(f"/proc/{w.pid}/maps"))
        refused(w.pid, "may map no more memory, or start no more threads")
        nothing_left(w.pid, before)
        now = sum("/" not in line for line in open(f"/proc/{w.pid}/maps"))
        check(now <= anonymous + 3, f"{anonymous} mappings of no file, then {now}")  # a stack that glibc keeps
        w.end()


@case
def nothing_to_be_had():
    "the only thread stands in vfork(): refused; without /proc in its root: refused"
    with target("vfork") as w:
        refused(w.pid, "no thread of process")
        w.end()
    root = os.path.join(a.tmp, "root")
    os.makedirs(root, exist_ok=True)
    with target("chroot:" + root) as w:
        before = threads(w.pid), files(w.pid)
        refused(w.pid, "cannot open the agent")
        nothing_left(w.pid, before)
        w.end()


def at_stage(w, stage, act):
    """What happens to the target while qbpf stands at a stage of the injection; its line."""
    q = attach(w.pid, "-d", "0.05", env={"QBPF_TEST_STOP_AT": str(stage)})
    state = f"/proc/{q.p.pid}/stat"
    until("qbpf is there", lambda: open(state).read().rpartition(")")[2].split()[0] == "T")
    act()
    os.kill(q.p.pid, signal.SIGCONT)
    q.finish(code=None)
    code = q.p.returncode
    err = q.err_text()
    check(code in (0, 1) and err.count("\n") <= 6, f"stage {stage}: {code}: {err}")
    return code, err


@case
def the_target_is_killed():
    "SIGKILL of the target at each stage: one line, in time"
    for stage in range(1, STAGES + 1):
        with Workload([INSIDE, "cuda", "sleep"], env=a.env()) as w:

            def kill():
                os.kill(w.pid, signal.SIGKILL)
                until("it is dead", lambda: a.is_dead(w.pid))

            code, err = at_stage(w, stage, kill)
            if stage < 10:
                equal(code, 1, f"stage {stage}: {err}")
                check("it has ended, or started another program" in err, f"stage {stage}: {err}")


@case
def the_target_starts_another_program():
    "exec at each stage: the next program is left alone"
    for stage in range(1, STAGES + 1):
        with Workload([TARGET, "exec", "avx"], env=a.env()) as w:

            def is_cat():
                return open(f"/proc/{w.pid}/comm").read() == "cat\n"

            def become():
                os.kill(w.pid, signal.SIGUSR1)
                if not SEIZED <= stage <= SENT:  # a thread that is ptraced holds an exec up
                    until("it is another", is_cat)

            code, err = at_stage(w, stage, become)
            if stage < 10:
                equal(code, 1, f"stage {stage}: {err}")
                check("it has ended, or started another program" in err, f"stage {stage}: {err}")
            until("it is another", is_cat)
            w.go("still here")
            w.wait_for("still here")
            w.p.stdin.close()
            w.p.stdin = None
            equal(w.p.wait(60), 0, f"stage {stage}: the exit status of cat")


if __name__ == "__main__":
    a.main()

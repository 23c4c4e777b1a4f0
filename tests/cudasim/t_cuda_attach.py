#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 900
"""qbpf attach --cuda agent: in, at work, and out again, and the target never notices."""

import os
import re
import shutil
import signal
import subprocess

import agent_session as a
from agent_session import threads, until
from harness import Skip, Workload, case, check, equal, spans, summary
from inject_session import LINE, STAGES, Target, attach, files, nothing_left, once, once_at_work

TARGET = os.path.join(a.SIM, "inject_target")
EVERY = "cuda malloc dlopen print read sleep cond epoll poll select sigwait msg regs errno signal eintr".split()


def target(*words, sim="", **kw):
    return Target([TARGET, *words], env=a.env(kw.pop("log", None), sim, **kw.pop("env", {})), **kw)


@case
def every_record_while_attached():
    "a strategy that runs: attached, then left alone; what happened between is what was recorded"
    log = a.fresh(".csv")
    with Workload([a.QUANT, "--ticks", "600", "--rate", "300", "--wait"], env=a.env(log)) as w:
        with attach(w.pid) as q:
            q.wait_err("CUDA agent: on")
            w.go()
            w.finish()
            doc = summary(q.finish())
    got, lost = a.counts(doc)
    truth = a.truth(log)
    equal(lost, 0, "lost")
    for kind in ("kernels", "copies", "syncs"):
        equal(got[kind], truth[kind], kind)
    m = LINE.search(q.err_text())
    check(m, q.err_text())
    print(f"# stopped for {m[2]} ms, back after {m[3]} ms", flush=True)
    equal({s["name"]: s["count"] for s in doc["spans"]}["strategy:tick"], 600, "ticks, by their marker")


@case
def left_alone_again():
    "after the detach: no thread, no file, no activity of the agent; the target runs on"
    log = a.fresh(".csv")
    with target("cuda", "idle:2", log=log) as w:
        before = threads(w.pid), files(w.pid)
        doc, err = once_at_work(w.pid, log)
        check(a.counts(doc)[0].get("kernels", 0) > 10, f"kernels: {a.gpu_note(doc)}")
        nothing_left(w.pid, before)
        seen = a.Grower(log)
        calls = seen.count("cupti")
        seen.await_more("kernel", 300)
        equal(seen.count("cupti"), calls, "calls of CUPTI afterwards")
        w.end()


@case
def nobody_is_disturbed():
    "40 attaches to threads in malloc, dlopen and printf, in each kind of wait, with values in every register"
    worst = 0
    with target(*EVERY) as w:
        before = threads(w.pid), files(w.pid)
        for i in range(40):
            doc, err = once(w.pid)
            m = LINE.search(err)
            check(m, err)
            worst = max(worst, float(m[2]))
            check(a.gpu_note(doc) is not None, f"attach {i}: {err}")
        nothing_left(w.pid, before)
        counts = w.end()
    for word in EVERY:
        check(counts[word] > 0, f"{word}: {counts}")
    print(f"# the longest stop was {worst} ms", flush=True)


@case
def nothing_goes_where_it_may_vanish():
    "the code goes into what the target cannot unload, though a library with more room is open"
    with target("cuda", "read", "opened") as w:
        mapped = open(f"/proc/{w.pid}/maps").read()
        check("/libutil.so.1" in mapped, "the library that was opened")
        for _ in range(2):
            _, err = once(w.pid, "-v")
            where = re.findall(r"code goes behind that of (.*)", err)
            equal(len(where), 1, err)
            name = os.path.basename(where[0])
            linked = re.fullmatch(r"inject_target|lib(c|cuda|cudart|m|pthread|dl)\.so.*|ld-linux.*", name)
            check(linked, f"the code was put into {where[0]}")
        w.end()


@case
def each_kind_of_wait_alone():
    "the only thread that can be had waits in read, nanosleep, a condition, epoll, poll, select, semtimedop ..."
    for word in ("sleep", "cond", "epoll", "poll", "select", "sigwait", "msg", "read"):
        with target(word) as w:
            for _ in range(4):
                _, err = once(w.pid)
                check(LINE.search(err), err)
            w.end()


@case
def the_only_thread_is_busy():
    "a thread that makes no system call is taken at any instruction, 20 times"
    with target("lazy") as w:
        for _ in range(20):
            doc, err = once(w.pid)
            check(LINE.search(err), err)
        w.end()


@case
def the_only_thread_shares_its_cpu():
    "a strategy of one thread, with no CPU but that which qbpf has, too: it never runs while qbpf looks"
    cpu = min(os.sched_getaffinity(0))

    def there():
        os.sched_setaffinity(0, {cpu})

    log = a.fresh(".csv")
    with Workload([a.QUANT, "--seconds", "600", "--rate", "300", "--wait"], env=a.env(log), preexec_fn=there) as w:
        w.go()
        a.Grower(log).await_more("kernel", 20)
        for _ in range(5):
            _, err = once(w.pid, preexec_fn=there)
            check(LINE.search(err), err)
        w.p.send_signal(signal.SIGTERM)
        w.finish()


@case
def two_hundred_threads():
    "200 threads: one is chosen, the others are not stopped"
    with target("idle:200", "cuda") as w:
        before = threads(w.pid), files(w.pid)
        for _ in range(5):
            doc, err = once(w.pid)
            check(LINE.search(err), err)
        nothing_left(w.pid, before)
        w.end()


@case
def attached_twice():
    "a second qbpf is refused in one line, and the first goes on"
    log = a.fresh(".csv")
    with target("cuda", log=log) as w:
        seen = a.Grower(log)
        with attach(w.pid) as first:
            first.wait_err("CUDA agent: on")
            _, err = once(w.pid, code=1)
            check("at work for another qbpf" in err, err)
            with attach(w.pid, mode="auto") as second:
                second.wait_ready()
                seen.await_more("kernel", 20)
                doc, err = summary(second.stop()), second.err_text()
            check("CUDA's calls are seen by uprobes" in err and not LINE.search(err), err)
            check(spans(doc)["cuda:cudaLaunchKernel"]["count"] >= 20, "launches, beside the agent")
            seen.await_more("kernel", 60)
            doc = summary(first.stop())
        check(a.counts(doc)[0]["kernels"] > 50, f"{a.gpu_note(doc)}")
        equal(a.counts(doc)[1], 0, "lost")
        w.end()


@case
def killed_at_each_stage():
    "SIGKILL of qbpf at each stage of the injection: the target lives, undisturbed, and can be attached to again"
    for stage in range(1, STAGES + 1):
        with target("cuda", "sleep", "cond", "regs", "errno", "signal", "malloc", "print") as w:
            before = threads(w.pid), files(w.pid)
            q = attach(w.pid, "-d", "0.05", env={"QBPF_TEST_DIE_AT": str(stage)})
            q.finish(code=-signal.SIGKILL)
            nothing_left(w.pid, before)
            doc, err = once(w.pid)
            check(LINE.search(err) and a.gpu_note(doc), f"stage {stage}: {err}")
            nothing_left(w.pid, before)
            w.end()


@case
def killed_at_work():
    "SIGKILL of qbpf while the agent is at work: it leaves by itself"
    with target("cuda", "sleep", "regs") as w:
        before = threads(w.pid), files(w.pid)
        with attach(w.pid) as q:
            q.wait_err("CUDA agent: on")
            q.p.send_signal(signal.SIGKILL)
            q.p.wait()
        nothing_left(w.pid, before)
        w.end()


def in_call(pid, *numbers):
    return open(f"/proc/{pid}/syscall").read().split()[0] in [str(n) for n in numbers]


@case
def what_is_refused():
    "a debugger is there, a seccomp filter, a static program, no CUDA, stopped: one line each, the target unharmed"

    def refused(pid, words):
        _, err = once(pid, code=1)
        lines = [line for line in err.splitlines() if line.strip()]
        check(len(lines) == 1 and words in lines[0], f"{words}: {err}")
        doc, err = once(pid, "--wait", mode="auto")
        check(words not in err and "agent" not in err.replace("--cuda agent", ""),
              f"auto does not try: {err}")

    with target("cuda", "seccomp") as w:
        refused(w.pid, "seccomp filter")
        w.end()
    with Workload(["/bin/sleep", "1000"], ready=None) as w:
        until("it sleeps", lambda: in_call(w.pid, 35, 230))
        refused(w.pid, "does not use CUDA")
    static = a.fresh(".static")
    source = static + ".c"
    with open(source, "w") as f:
        f.write("#include <unistd.h>\nint main(void) { for (;;) pause(); }\n")
    if subprocess.run(["gcc", "-static", "-o", static, source], stderr=subprocess.DEVNULL).returncode == 0:
        with Workload([static], ready=None) as w:
            until("it pauses", lambda: in_call(w.pid, 34))
            refused(w.pid, "statically linked")
    with target("cuda") as w:
        with subprocess.Popen(["gdb", "-q", "-batch", "-p", str(w.pid), "-ex", "shell cat"],
                              stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL) as g:  # fmt: skip
            until("gdb is there", lambda: "TracerPid:\t0" not in open(f"/proc/{w.pid}/status").read())
            _, err = once(w.pid, code=1)
            check(f"traced by process {g.pid} already" in err, err)
            g.stdin.close()
        w.end()
    with target("cuda") as w:
        os.kill(w.pid, signal.SIGSTOP)
        until("it is stopped", lambda: "State:\tT" in open(f"/proc/{w.pid}/status").read())
        _, err = once(w.pid, code=1)
        check("is stopped: send it SIGCONT" in err, err)
        os.kill(w.pid, signal.SIGCONT)
        w.end()


@case
def as_another_user():
    "the agent's file cannot be seen by the target: it gets a copy; nobody's qbpf may not"
    if not shutil.which("setpriv"):
        raise Skip("no setpriv")
    os.chmod(a.tmp, 0o755)
    argv = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", TARGET, "cuda", "sleep"]
    log = a.fresh(".csv")
    open(log, "w").close()
    os.chmod(log, 0o666)
    with Target(argv, env=a.env(log)) as w:
        before = threads(w.pid), files(w.pid)
        doc, err = once_at_work(w.pid, log)
        check(a.counts(doc)[0].get("kernels", 0) > 10, f"{a.gpu_note(doc)}: {err}")
        until("the thread is gone", lambda: threads(w.pid) == before[0])
        doc, err = once_at_work(w.pid, log)  # the copy that is there is taken again
        check(a.counts(doc)[0].get("kernels", 0) > 10, f"{a.gpu_note(doc)}: {err}")
        copies = {line.split()[-2] for line in open(f"/proc/{w.pid}/maps") if "libqbpf_cupti" in line}
        equal(copies, {"/memfd:libqbpf_cupti.so"}, "copies")
        w.end()


@case
def in_another_root():
    "a target in a mount namespace of its own, where the agent's file is another: it gets a copy"
    if not shutil.which("unshare"):
        raise Skip("no unshare")
    script = f"mkdir -p {a.tmp}/sim && cp {a.SIM}/*.so.* {TARGET} {a.tmp}/sim/ && " \
             f"mount -t tmpfs none {a.harness.BUILD} && exec {a.tmp}/sim/inject_target cuda sleep"  # fmt: skip
    log = a.fresh(".csv")
    with Target(["unshare", "-m", "sh", "-c", script], env=a.env(log, LD_LIBRARY_PATH=a.tmp + "/sim")) as w:
        check(not os.path.exists(f"/proc/{w.pid}/root{a.AGENT}"), "the file is hidden")
        doc, err = once_at_work(w.pid, log)
        check(a.counts(doc)[0].get("kernels", 0) > 10, f"{a.gpu_note(doc)}: {err}")
        w.end()


@case
def the_real_libraries():
    "the real libcupti with no driver: one line, the target unharmed"
    if not os.path.exists(os.path.join(a.REAL, "libcudart.so.13")):
        raise Skip("no toolkit")
    with Workload([TARGET, "sleep", "cond", "regs"], env=a.env(LD_LIBRARY_PATH=a.REAL)) as w:
        check("cuda-13" in open(f"/proc/{w.pid}/maps").read() or a.REAL in open(f"/proc/{w.pid}/maps").read(),
              "the real runtime is mapped")  # fmt: skip
        before = threads(w.pid)
        q = attach(w.pid, "-d", "1")
        q.finish(code=1)
        lines = [x for x in q.err_text().splitlines() if "CUDA agent:" in x]
        equal(len(lines), 1, q.err_text())
        until("the agent's thread is gone", lambda: threads(w.pid) == before)
        w.p.stdin.close()
        w.p.stdin = None
        equal(w.finish()["disturbed"], 0, w.err)


if __name__ == "__main__":
    a.main()

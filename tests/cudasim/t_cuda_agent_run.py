#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 900
"""qbpf run --cuda: the agent gets in with the program, and what it delivers is counted exactly."""

import os
import shutil
import signal
import subprocess
import sys
import time

import agent_session as a
from harness import QBPF, Qbpf, case, check, equal, summary, spans


def run(argv, *options, mode="agent", code=0, sim="", **env):
    """(summary or None, stderr, truth, qbpf)"""
    log, doc = a.fresh(".csv"), a.fresh(".json")
    q = Qbpf("run", "--cuda", mode, f"--json={doc}", *options, "--", *argv, env=a.env(log, sim, **env))
    q.finish(code=code)
    doc = summary(open(doc).read()) if os.path.exists(doc) else None
    return doc, q.err_text(), a.truth(log) if os.path.exists(log) else {}


@case
def every_record_of_a_run_is_counted():
    "a run of a strategy: kernels, copies, syncs and calls as the simulator logs them"
    doc, err, truth = run([a.QUANT, "--ticks", "500"])
    check(truth["kernels"] == 1000 and truth["copies"] == 1000, f"the truth itself: {truth}")
    got, lost = a.counts(doc)
    equal(got, truth, "records")
    equal(lost, 0, "lost")
    equal(spans(doc)["strategy:tick"]["count"], 500, "ticks, by their marker")


@case
def no_trap_in_a_call():
    "with --cuda agent, and with auto where it can be had, no function of CUDA is armed unless it is named"
    for options, mode in (([], "agent"), ([], "auto")):
        doc, err, truth = run([a.QUANT, "--ticks", "50"], *options, mode=mode)
        equal(a.counts(doc)[0], truth, "records")
        check(not any(s["name"].startswith("cuda:") for s in doc["spans"]), "no span of CUDA")
        check("by uprobes" not in err, err)
    doc, err, truth = run([a.QUANT, "--ticks", "50"], "-u", "cuda:cudaLaunch*", "-u", "strategy:*")
    equal(a.counts(doc)[0], truth, "records, with probes")
    named = {s["name"]: s["count"] for s in doc["spans"] if s["name"].startswith("cuda:")}
    equal(named.pop("cuda:cudaLaunchKernel"), truth["kernels"], "launches, by -u")
    check(all(n.startswith("cuda:cudaLaunch") for n in named), f"{named}")
    equal(spans(doc)["strategy:tick"]["count"], 50, "ticks")


@case
def nothing_but_the_gpu():
    "a program without markers is worth a run for its GPU alone; graphs count as launches"
    doc, err, truth = run([a.TARGET, "launch:300", "h2d:20", "d2h:10", "memset:7", "graph:5", "sync"])
    got, lost = a.counts(doc)
    equal(got, truth, "records")
    equal(lost, 0, "lost")
    equal(doc["spans"], [], "spans")


@case
def the_programs_status_is_passed_on():
    "the exit status is the program's; its output is its own"
    doc, err, truth = run([a.TARGET, "launch:3", "exit:7"], code=7)
    equal(a.counts(doc)[0], truth, "records")


@case
def a_program_without_cuda():
    "--cuda agent fails where the program never initialises CUDA; --cuda auto says nothing of it"
    _, err, _ = run(["/bin/true"], code=1)
    check("not initialised CUDA" in err, err)
    doc, err, _ = run(["/bin/true"], "--wait", mode="auto")
    check("CUDA" not in err and a.gpu_note(doc) is None, err)


@case
def an_agent_that_never_came():
    "--cuda auto: CUDA is mapped, and nobody loads the agent: one line, in the document too; none without CUDA"
    words = "CUDA agent: not loaded, though libcud"
    never = [a.TARGET, "sleep:1"]
    for options in [], ["-o", a.fresh(".qbpf")], ["-f", "main"]:
        doc, err, _ = run(never, *options, mode="auto")
        equal(err.count(words), 1, err)
        equal(sum(words in n for n in doc["probes"]["notes"]), 1, doc["probes"])
    _, err, _ = run(never, code=1)
    check(words not in err and "has not initialised CUDA" in err, f"an error where it was asked for: {err}")
    for argv, mode in ([a.TARGET, "launch:3"], "auto"), (["/bin/true"], "auto"), (never, "off"), (never, "uprobe"):
        doc, err, _ = run(argv, mode=mode)
        check(words not in err and words not in str(doc), f"{argv} {mode}: {err}")


@case
def what_cupti_refuses():
    "errors 39, 35, 15, 999: one line with the remedy; exit 1 only where the agent was required"
    for code, words in ((39, "another profiler holds CUPTI"), (35, "NVreg_RestrictProfilingToAdminUsers"),
                        (15, "driver did not start"), (999, "no usable CUDA driver")):  # fmt: skip
        doc, err, truth = run([a.QUANT, "--ticks", "20"], sim=f"subscribe={code}", code=1)
        equal(err.count(words), 1, f"lines about {code}: {err}")
        check("no agent has been at work" in err, err)
        doc, err, truth = run([a.QUANT, "--ticks", "20"], sim=f"subscribe={code}", mode="auto")
        equal(err.count(words), 1, f"lines about {code}: {err}")
        check(len(doc["spans"]) > 0, "the CPU side runs on")


def by_uprobes(doc, err, why):
    """What --cuda auto does with 5 ticks when no agent can be had."""
    lines = [line for line in err.splitlines() if why in line]
    equal(len(lines), 1, f"one line with the reason: {err}")
    check("CUDA's calls are seen by uprobes, and nothing of the GPU" in lines[0], lines[0])
    check(a.gpu_note(doc) is None, "no agent")
    equal(spans(doc)["cuda:cudaLaunchKernel"]["count"], 10, "launches")


@case
def another_tool_is_there():
    "CUDA_INJECTION64_PATH of another tool is left alone; auto arms CUDA's functions"
    _, err, _ = run([a.QUANT, "--ticks", "5"], code=1, CUDA_INJECTION64_PATH="/other.so")
    check("/other.so is another tool's" in err, err)
    doc, err, _ = run([a.QUANT, "--ticks", "5"], mode="auto", CUDA_INJECTION64_PATH="/other.so")
    by_uprobes(doc, err, "/other.so is another tool's")


@case
def no_agent_is_installed():
    "an agent that is not there is named; auto arms CUDA's functions"
    _, err, _ = run([a.QUANT, "--ticks", "5"], code=1, QBPF_AGENT="/nowhere/agent.so")
    check("QBPF_AGENT=/nowhere/agent.so: No such file" in err, err)
    _, err, _ = run([a.QUANT, "--ticks", "5"], code=1, QBPF_AGENT="/etc/passwd")
    check("QBPF_AGENT=/etc/passwd: no ELF file" in err, err)
    _, err, _ = run([a.QUANT, "--ticks", "5"], code=1, QBPF_AGENT="/bin/true")
    check("QBPF_AGENT=/bin/true: it is not qbpf's CUDA agent" in err, err)
    for named, why in (("/nowhere/agent.so", "No such file"), ("/bin/true", "it is not qbpf's CUDA agent")):
        doc, err, _ = run([a.QUANT, "--ticks", "5"], mode="auto", QBPF_AGENT=named)
        by_uprobes(doc, err, f"QBPF_AGENT={named}: {why}")
        doc, err, _ = run(["/bin/true"], mode="auto", QBPF_AGENT=named)
        check("CUDA" not in err and named + ":" not in err, f"a program without CUDA: {err}")


HERE_ON = "CUDA's calls are seen by uprobes from here on, and nothing of the GPU: CUDA agent: "


def refused(words, *options, ticks=200, mode="auto", sim="", code=0, **env):
    """(the summary of ticks that begin when a line with these words is there, stderr)"""
    doc = a.fresh(".json")
    with Qbpf("run", "--cuda", mode, f"--json={doc}", *options, "--", a.QUANT, "--ticks", str(ticks), "--wait",
              stdin=subprocess.PIPE, env=a.env(None, sim, **env)) as q:  # fmt: skip
        q.wait_err(words)
        q.wait_ready()
        q.p.stdin.write(b"go\n")
        q.p.stdin.flush()
        q.finish(code=code)
    return summary(open(doc).read()), q.err_text()


def calls(doc):
    return {s["name"][len("cuda:"):]: s["count"] for s in doc["spans"] if s["name"].startswith("cuda:")}


@case
def an_agent_that_cannot_work():
    "--cuda auto: errors 39, 35, 15, 999, another CUPTI, stubs: CUDA's functions are armed, each call counts once"
    stubs = os.path.join(a.tmp, "stubs")
    os.makedirs(stubs)
    shutil.copy(os.path.join(a.SIM, "libcuda.so.1"), stubs)
    for why, sim, env in (
        ("another profiler holds CUPTI", "subscribe=39", {}),
        ("NVreg_RestrictProfilingToAdminUsers", "subscribe=35", {}),
        ("driver did not start", "subscribe=15", {}),
        ("no usable CUDA driver", "subscribe=999", {}),
        ("uses the toolkit's libcuda stub", "", {"LD_LIBRARY_PATH": stubs}),
        ("set CUDA_HOME", "version=120000", {"CUDA_HOME": "/nowhere"}),
    ):
        doc, err = refused(HERE_ON, sim=sim, **env)
        equal(err.count(HERE_ON), 1, f"one line: {err}")
        equal(err.count(why), 1, f"the reason, in that line: {err}")
        got = calls(doc)
        want = {"cudaLaunchKernel": 400, "cudaMemcpyAsync": 400}
        equal({k: got.get(k) for k in want}, want, f"calls {why}: {got}")
        for kind in "kernels", "copies":
            equal(sum(x["count"] for x in doc["cuda"][kind]), 400, kind)
        equal(spans(doc)["strategy:tick"]["count"], 200, "ticks")


@case
def an_agent_that_was_asked_for():
    "--cuda agent, and functions asked for by name: nothing more is armed when the agent cannot work"
    words = "another profiler holds CUPTI"
    doc, err = refused(words, mode="agent", sim="subscribe=39", code=1)
    check("by uprobes" not in err and not calls(doc), err)
    doc, err = refused(words, "-u", "cuda:cudaLaunch*", "-u", "strategy:*", sim="subscribe=39")
    equal(calls(doc).get("cudaLaunchKernel"), 400, "launches, by -u")
    check("by uprobes" not in err and all(n.startswith("cudaLaunch") for n in calls(doc)), f"{err}: {calls(doc)}")
    equal(err.count(words), 1, err)


@case
def an_agent_that_cannot_work_and_a_status():
    "the program's status is passed on, however soon it ends; a recording has the calls too"
    for ms in (0, 5, 20, 50, 100):
        _, err, _ = run([a.TARGET, "launch:3", f"sleep:{ms}", "exit:7"], "--wait", mode="auto", sim="subscribe=39",
                        code=7)  # fmt: skip
        equal(err.count("another profiler holds CUPTI"), 1, err)
    trace = a.fresh(".qbpf")
    refused(HERE_ON, "-o", trace, sim="subscribe=39")
    text = subprocess.run([QBPF, "report", "--json", trace], capture_output=True, check=True, text=True).stdout
    equal(calls(summary(text))["cudaLaunchKernel"], 400, "launches in the recording")


LIAR = """
import mmap, os, struct, sys, time
m = mmap.mmap(os.open(os.environ["QBPF_RING"], os.O_RDWR), 0)
STATE, GENERATION, FAULT, CODE, WARNINGS = 128, 136, 144, 148, 152
def put(at, n):
    m[at:at + 4] = struct.pack("<I", n)
put(GENERATION, 1)
i = 0
while not os.path.exists(sys.argv[1]):
    %s
    i += 1
    time.sleep(0.06)
"""


@case
def a_ring_that_lies():
    "a target that changes its ring's state all the time gets a few lines, and one about that"
    muted = "the state of the CUDA agent keeps changing"
    for what, lines, last in (
        ("put(STATE, 2 + i % 2)", 2, [muted]),  # on, refused
        ("put(CODE, 1000 + i), put(FAULT, 5), put(STATE, 3 + i % 2)", 8, [muted]),  # for ever other reasons
        ("put(GENERATION, 1 + i), put(STATE, 3), put(FAULT, 5), put(CODE, 1000 + i)", 8, [muted]),
        ("put(STATE, 2), put(GENERATION, 1 + i), put(WARNINGS, i % 2 * 128)", 3,  # programs that come and go
         ["CUDA agent: on", "two of the processes", "so suddenly"]),
    ):
        for mode in "agent", "auto":
            over = a.fresh(".over")
            with Qbpf("run", "--cuda", mode, "--wait", "--json=/dev/null", "--", sys.executable, "-c", LIAR % what,
                      over, env=a.env()) as q:  # fmt: skip
                for words in last:
                    q.wait_err(words)
                time.sleep(1)  # for what may not come
                open(over, "w").close()
                q.finish(code=None)
            err = q.err_text()
            equal(err.count(muted), last.count(muted), f"lines that say so, {what}: {err}")
            told = [x for x in err.splitlines() if "CUDA" in x and muted not in x and "no agent has" not in x]
            check(lines <= len(told) <= lines + 2, f"lines, {what}: {err}")


@case
def dropped_records_are_counted():
    "what CUPTI drops is lost, exactly"
    doc, err, truth = run([a.TARGET, "launch:1000", "sync"], sim="drop=10")
    got, lost = a.counts(doc)
    equal(sum(got.values()) + lost, sum(truth.values()), f"read and lost: {got}, {lost}")
    check(lost > 50, f"lost {lost}")
    check("dropped by CUPTI" in a.gpu_note(doc), a.gpu_note(doc))


@case
def the_reader_is_stopped():
    "qbpf itself is stopped while 300,000 launches go on: what the ring cannot hold is counted, exactly"
    log, doc = a.fresh(".csv"), a.fresh(".json")
    with Qbpf("run", "--cuda", "agent", f"--json={doc}", "--", a.TARGET, "launch:10", f"await:{log}.go",
              "launch:300000", "sync", env=a.env(log)) as q:  # fmt: skip
        q.wait_err("CUDA agent: on")
        a.while_stopped(q, f"{log}.go")
        q.finish()
    doc = summary(open(doc).read())
    got, lost = a.counts(doc)
    truth = a.truth(log)
    equal(truth["kernels"], 300010, "kernels, in truth")
    check(lost > 1000, f"lost: {a.gpu_note(doc)}")
    equal(sum(got.values()) + lost, sum(truth.values()), f"read and lost: {a.gpu_note(doc)}")


@case
def qbpf_is_killed():
    "SIGKILL: the program ends as if nothing had been, its agent has left"
    log = a.fresh(".csv")
    out = a.fresh(".out")
    with open(out, "wb") as f:
        with Qbpf("run", "--cuda", "agent", "--plain", "--", a.TARGET, "launch:10", "on", f"await:{out}.go",
                  "tasks:60000", "launch:10", "print:end", env=a.env(log), stdout=f) as q:  # fmt: skip
            q.wait_err("CUDA agent: on")
            q.p.send_signal(signal.SIGKILL)
            q.p.wait()
            open(f"{out}.go", "w").close()
    a.until("the program ends", lambda: b"errors" in open(out, "rb").read(), 120)
    equal(open(out).read(), "Threads: 1\nend\nerrors 0\n", "what the program printed")


@case
def an_option_of_its_own():
    "--cuda takes four words"
    q = Qbpf("run", "--cuda", "gpu", "--", "/bin/true")
    q.finish(code=2)
    check("--cuda gpu: one of auto, uprobe, agent, off" in q.err_text(), q.err_text())


if __name__ == "__main__":
    a.main()

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 900
"""The GPU live, with no file: summary, intervals, snapshots, the full-screen page, several processes
and devices, and what the agent costs in probes: nothing."""

import json
import os
import pty
import select
import signal
import subprocess
import time

import agent_session as a
import gpu_truth
from harness import QBPF, Qbpf, Workload, case, check, equal, spans, summary
from vt import Screen


def run(argv, *options, sim="", **env):
    """(the summary, stderr, the simulator's truth)"""
    log, doc = a.fresh(".csv"), a.fresh(".json")
    q = Qbpf("run", "--cuda", "agent", f"--json={doc}", *options, "--", *argv, env=a.env(log, sim, **env))
    q.finish()
    return summary(open(doc).read()), q.err_text(), gpu_truth.read(log)


def kernels(gpu):
    return sum(k["count"] for k in gpu["kernels"])


def span_truth(truth, ticks):
    """Launches, copies and the time of kernels that the strategy's ticks asked for."""
    launches = sum(c["name"] == "cudaLaunchKernel" for c in truth["runtime"])
    return {"count": ticks, "launches": launches, "copies": len(truth["memcpy"]),
            "kernel_ns": sum(k["end"] - k["start"] for k in truth["kernel"])}  # fmt: skip


@case
def every_figure():
    "with no file: every figure is the simulator's, and the GPU's work is told by the span that asked for it"
    for flaw in ((), ("--flaw", "sync-copy"), ("--streams", "3")):
        doc, _, truth = run([a.QUANT, "--ticks", "400", *flaw])
        gpu_truth.check_all(doc["gpu"], truth)
        tick = {s["name"]: s for s in doc["gpu"]["spans"]}["strategy:tick"]
        want = span_truth(truth, 400)
        equal({k: tick[k] for k in want}, want, f"what the ticks asked for {flaw}")
        equal(tick["sum_ns"], spans(doc)["strategy:tick"]["sum_ns"], "their time")
        equal(doc["lost"]["by_source"], {"bpf": 0, "gpu": 0}, "lost")
        check("trace" not in doc, "there is no file")


@case
def auto_streams_late():
    "--cuda auto: spans are streamed once the agent is there; without CUDA nothing is"
    log, doc = a.fresh(".csv"), a.fresh(".json")
    with Qbpf("run", "--cuda", "auto", f"--json={doc}", "--", a.QUANT, "--ticks", "600", "--rate", "600", "--wait",
              env=a.env(log), stdin=subprocess.PIPE) as q:  # fmt: skip
        q.wait_err("CUDA agent: on")
        q.wait_ready()
        q.p.stdin.write(b"go\n")
        q.p.stdin.flush()
        q.finish()
    doc = summary(open(doc).read())
    gpu = doc["gpu"]
    equal(kernels(gpu), 1200, f"kernels: {a.gpu_note(doc)}: {q.err_text()}")
    gpu_truth.check_all(gpu, gpu_truth.read(log))
    tick = {s["name"]: s for s in gpu["spans"]}["strategy:tick"]
    equal(tick["count"], 600, f"ticks: {tick}")


def documents(path):
    """Lines, and the last one in many; without one that is being written."""
    text = open(path).read() if os.path.exists(path) else ""
    got = []
    while text.strip():
        try:
            doc, end = json.JSONDecoder().raw_decode(text)
        except json.JSONDecodeError:
            break
        got.append(doc)
        text = text[end:].lstrip()
    return got


def with_gpu(path):
    return [x for x in documents(path) if "gpu" in x]


def asked(q, path):
    """What it writes when it is asked."""
    n = len(documents(path))
    q.p.send_signal(signal.SIGUSR1)
    a.until("a line", lambda: len(documents(path)) == n + 1)
    return documents(path)[-1]


@case
def intervals():
    "-i: each line has the GPU since the start, up to a second ago; the last one has all"
    log, out = a.fresh(".csv"), a.fresh(".json")
    with Qbpf("run", "--cuda", "agent", "-i", "0.5", f"--json={out}", "--", a.QUANT, "--seconds", "600", "--rate",
              "200", env=a.env(log)) as q:  # fmt: skip
        q.wait_ready()
        a.until("figures come while it runs", lambda: sum(kernels(x["gpu"]) > 50 for x in with_gpu(out)) >= 4)
        os.kill(a.child_of(q), signal.SIGTERM)
        q.finish()
    lines = documents(out)
    got = [(x["gpu"]["activities"], kernels(x["gpu"]), x["gpu"].get("waiting", 0)) for x in with_gpu(out)]
    equal(got, sorted(got, key=lambda x: x[:2]), "they grow")
    check(all(k[0] >= k[1] + k[2] for k in got), f"what waits is in no figure yet: {got}")
    truth = gpu_truth.read(log)
    gpu_truth.check_all(lines[-1]["gpu"], truth)
    ticks = {s["name"]: s for s in lines[-1]["gpu"]["spans"]}["strategy:tick"]
    equal(ticks["launches"], sum(c["name"] == "cudaLaunchKernel" for c in truth["runtime"]), "launches in ticks")
    equal(lines[-1]["gpu"].get("late", 0), 0, "late")


@case
def snapshot_on_request():
    "SIGUSR1: a line of what is known so far, plain and as JSON; then the rest"
    log, out = a.fresh(".csv"), a.fresh(".json")
    with Workload([a.QUANT, "--seconds", "600", "--rate", "300", "--wait"], env=a.env(log)) as w:
        with Qbpf("attach", "-p", w.pid, "--cuda", "agent", f"--json={out}") as q:
            q.wait_err("CUDA agent: on")
            q.wait_ready()
            w.go()
            a.until("kernels, when it is asked", lambda: kernels(asked(q, out).get("gpu", {"kernels": []})) > 50)
            first = documents(out)[-1]
            check("strategy:tick" in {s["name"] for s in first["gpu"]["spans"]}, "joined to spans")
            q.stop()
        last = documents(out)[-1]
        check(kernels(last["gpu"]) > kernels(first["gpu"]), "more in the end")
        w.p.send_signal(signal.SIGTERM)
        w.finish()


@case
def the_page():
    "the full-screen view: g shows the GPU, with kernels, idle time and spans"
    with Workload([a.QUANT, "--seconds", "600", "--rate", "300", "--wait", "--flaw", "sync-copy"], env=a.env()) as w:
        screen = Screen(50, 150)
        pid, fd = pty.fork()
        if not pid:
            os.environ.update(TERM="xterm-256color", LANG="C.UTF-8", LINES="50", COLUMNS="150")
            os.execv(QBPF, [QBPF, "attach", "-p", str(w.pid), "--cuda", "agent"])
        w.go()
        try:
            end, seen = time.monotonic() + 120, ""
            while "strategy:tick" not in seen or "alpha" not in seen or "busy" not in seen:
                check(time.monotonic() < end, "the page does not come:\n" + screen.text())
                if select.select([fd], [], [], 0.3)[0]:
                    screen.feed(os.read(fd, 65536))
                else:
                    os.write(fd, b"\t" if "GPU 0: busy" not in screen.text() else b"")
                seen = screen.text() if "GPU 0: busy" in screen.text() else ""
        finally:
            os.kill(pid, signal.SIGINT)
            while True:
                try:
                    if not os.read(fd, 65536):
                        break
                except OSError:
                    break
            os.waitpid(pid, 0)
            os.close(fd)
        w.p.send_signal(signal.SIGTERM)
        w.finish()


@case
def two_processes():
    "attach -p A,B: two rings, their devices and kernels apart, named by process; spans of both"
    logs = a.fresh(".csv"), a.fresh(".csv")
    argv = [a.QUANT, "--ticks", "300", "--rate", "200", "--wait"]
    with Workload(argv, env=a.env(logs[0])) as w, Workload(argv, env=a.env(logs[1])) as v:
        with Qbpf("attach", "-p", f"{w.pid},{v.pid}", "--cuda", "agent", "--json") as q:
            for pid in w.pid, v.pid:
                q.wait_err(f"process {pid}: CUDA agent: on")
            q.wait_ready()
            w.go()
            v.go()
            w.finish()
            v.finish()
            doc = summary(q.finish())
    equal([(d["ring"], d["pid"], d["comm"]) for d in doc["gpu"]["devices"]],
          [(0, w.pid, "w_quant_gpu"), (1, v.pid, "w_quant_gpu")], "devices")  # fmt: skip
    equal({s["pid"] for s in doc["gpu"]["streams"]}, {w.pid, v.pid}, "streams")
    equal(kernels(doc["gpu"]), 1200, "kernels")
    tick = {s["name"]: s for s in doc["gpu"]["spans"]}["strategy:tick"]
    equal((tick["count"], tick["launches"]), (600, 1200), "ticks of both, and their launches")
    trace = a.fresh(".qbpf")
    with Workload(argv, env=a.env()) as w, Workload(argv, env=a.env()) as v:
        with Qbpf("attach", "-p", f"{w.pid},{v.pid}", "--cuda", "agent", "--plain", "-o", trace) as q:
            q.wait_ready()
            w.go()
            v.go()
            w.finish()
            v.finish()
            live = q.finish()
    report, page = (subprocess.run([QBPF, "report", *x, trace], capture_output=True, check=True, text=True).stdout
                    for x in ([], ["--html=-"]))  # fmt: skip
    for p in w, v:
        name = f" of w_quant_gpu (pid {p.pid})"
        for text, of in (live, "the final report"), (report, "the report"), (page, "the page"):
            check(name in text, f"{name} in {of}")


@case
def in_a_container():
    "a process in a pid namespace of its own: its calls are joined to its spans all the same"
    argv = ["unshare", "--pid", "--fork", "--mount-proc", a.QUANT, "--ticks", "400", "--rate", "200", "--wait"]
    with Workload(argv, env=a.env()) as w:
        pid = int(open(f"/proc/{w.pid}/task/{w.pid}/children").read())
        check(f"\t{pid}\t1\n" in open(f"/proc/{pid}/status").read(), "its own namespace")
        with Qbpf("attach", "-p", pid, "--cuda", "agent", "--json") as q:
            q.wait_err("CUDA agent: on")
            q.wait_ready()
            w.go()
            w.finish()
            doc = summary(q.finish())
    tick = {s["name"]: s for s in doc["gpu"]["spans"]}["strategy:tick"]
    equal((tick["count"], tick["launches"]), (400, 800), "ticks, and their launches")
    equal(doc["gpu"]["devices"][0]["pid"], pid, "the process, as it is known here")


@case
def several_devices():
    "three devices: each has its own figures"
    doc, _, truth = run([a.TARGET, "devices:3", "devices:3", "sync"], sim="devices=3")
    gpu_truth.check_all(doc["gpu"], truth)
    equal([d["device"] for d in doc["gpu"]["devices"]], [0, 1, 2], "devices")


def await_found(q, path):
    """Until the program that a shell has started is found and its markers are armed."""
    q.wait_ready()
    a.until("it is found", lambda: asked(q, path)["probes"]["armed"] > 0)


@case
def one_after_the_other():
    "a shell that starts two strategies, and a program that runs itself anew: all of it counts"
    out = a.fresh(".json")
    with Qbpf("run", "--cuda", "agent", f"--json={out}", "--follow", "--", "sh", "-c",
              f"{a.QUANT} --ticks 100 --rate 200 --wait; {a.QUANT} --ticks 50", env=a.env(),
              stdin=subprocess.PIPE) as q:  # fmt: skip
        await_found(q, out)
        q.p.stdin.write(b"go\n")
        q.p.stdin.flush()
        q.finish()
    doc = documents(out)[-1]
    equal(kernels(doc["gpu"]), 300, "kernels of both")
    tick = {s["name"]: s for s in doc["gpu"]["spans"]}["strategy:tick"]
    equal(spans(doc)["strategy:tick"]["count"], 150, "ticks")
    equal((tick["count"], tick["launches"]), (150, 300), "ticks of both")
    doc, err, _ = run([a.TARGET, "launch:100", "sync", "handed", "exec", "launch:70", "sync"])
    equal(kernels(doc["gpu"]), 170, "kernels before and after exec")
    equal(err.count("so suddenly"), 1, f"the agent of the first had no time to leave: {err}")
    check("the last ones of 1 that ended suddenly" in a.gpu_note(doc), a.gpu_note(doc))


@case
def two_at_once():
    "two children at once: there is one ring, so of one nothing comes, which is told"
    one, out = f"{a.QUANT} --ticks 300 --rate 300 --wait", a.fresh(".json")
    pipes = a.fresh(".fifo"), a.fresh(".fifo")
    for path in pipes:
        os.mkfifo(path)
    with Qbpf("run", "--cuda", "agent", f"--json={out}", "--follow", "--", "sh", "-c",
              " & ".join(f"{one} <{path}" for path in pipes) + " & wait", env=a.env()) as q:  # fmt: skip
        goes = [open(path, "w") for path in pipes]
        q.wait_err("two of the processes")
        await_found(q, out)
        for go in goes:
            go.write("go\n")
            go.close()
        q.finish()
    doc, err = documents(out)[-1], q.err_text()
    equal(kernels(doc["gpu"]), 600, "kernels of the one")
    equal(spans(doc)["strategy:tick"]["count"], 600, "ticks of both")
    equal(err.count("two of the processes"), 1, err)
    check("of another process nothing came" in a.gpu_note(doc), a.gpu_note(doc))


@case
def the_reader_is_stopped():
    "qbpf is stopped while 300,000 kernels are launched: held + lost is all of them"
    log, doc = a.fresh(".csv"), a.fresh(".json")
    with Qbpf("run", "--cuda", "agent", f"--json={doc}", "--", a.TARGET, "launch:10", f"await:{log}.go",
              "launch:300000", "sync", env=a.env(log)) as q:  # fmt: skip
        q.wait_err("CUDA agent: on")
        a.while_stopped(q, f"{log}.go")
        q.finish()
    gpu = summary(open(doc).read())["gpu"]
    lost = sum(x["lost"] for x in gpu["losses"] if (x["type"], x["reason"]) == ("kernel", "ring_full"))
    check(lost > 1000, f"lost: {gpu['losses']}")
    equal(kernels(gpu) + gpu["untimed"] + lost, 300010, "kernels")


def runs_of_probes(pid):
    """How often the BPF programs of uprobes have run, and how many there are."""
    runs = n = 0
    for fd in os.listdir(f"/proc/{pid}/fdinfo"):
        try:
            text = open(f"/proc/{pid}/fdinfo/{fd}").read()
        except FileNotFoundError:
            continue  # it was closed in between
        info = dict(x.split(":\t", 1) for x in text.splitlines() if ":\t" in x)
        if info.get("prog_type") == "2":  # BPF_PROG_TYPE_KPROBE
            n += 1
            runs += int(info["run_cnt"])
    return runs, n


@case
def no_trap_at_a_launch():
    "20,000 launches, with the agent in: no probe is on CUDA's symbols, and no BPF program of a probe runs for one"
    knob = "/proc/sys/kernel/bpf_stats_enabled"
    before = open(knob).read()
    runs = {}
    try:
        open(knob, "w").write("1")
        for launches in (10, 20000):
            log = a.fresh(".csv")
            with Qbpf("run", "--cuda", "agent", "--json", "--", a.TARGET, f"launch:{launches}", "sync", "handed",
                      f"touch:{log}.now", "sleep:600000", env=a.env(log)) as q:  # fmt: skip
                q.wait_ready()
                a.until("its kernels have come", lambda: os.path.exists(f"{log}.now"))
                runs[launches] = runs_of_probes(q.p.pid)
                doc = summary(q.stop(code=128 + signal.SIGINT))
            equal(kernels(doc["gpu"]), launches, "kernels")
            equal((doc["probes"]["armed"], doc["spans"]), (0, []), "probes armed, spans")
    finally:
        open(knob, "w").write(before)
    check(runs[10][1] > 0, f"programs: {runs}")
    equal(runs[20000][0], runs[10][0], "runs of the programs of probes")


@case
def the_agent_leaves():
    "after qbpf: no thread of the agent, and what the target launches then is nobody's"
    log = a.fresh(".csv")
    with Workload([a.QUANT, "--seconds", "600", "--rate", "300", "--wait"], env=a.env(log)) as w:
        seen = a.Grower(log)
        for turn in range(3):
            with Qbpf("attach", "-p", w.pid, "--cuda", "agent", "--json") as q:
                q.wait_err("CUDA agent: on")
                q.wait_ready()
                if not turn:
                    w.go()
                check("qbpf-cupti" in a.threads(w.pid), f"the agent's thread: {a.threads(w.pid)}")
                seen.await_more("kernel", 40)
                doc = summary(q.stop())
            a.until("the agent's thread is gone", lambda: "qbpf-cupti" not in a.threads(w.pid))
            check(kernels(doc["gpu"]) > 20, f"kernels: {doc['gpu']['kernels']}")
        w.p.send_signal(signal.SIGTERM)
        w.finish()


if __name__ == "__main__":
    a.main()

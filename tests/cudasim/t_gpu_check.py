#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 900
"""scripts/gpu-check.sh: it passes on the simulator, fails when the simulator lies, says what it skips."""

import glob
import os
import shutil
import subprocess
import sys

import agent_session as a
from harness import BUILD, ROOT, Failure, Skip, case, check, equal

SCRIPT = os.path.join(ROOT, "scripts", "gpu-check.sh")
CHECKS = os.path.join(ROOT, "scripts", "gpu_check.py")
PROGRAM = os.path.join(BUILD, "gpu-check", "gpu_check.sim")
CUDA = os.environ.get("CUDA_HOME") or "/usr/local/cuda"
PARTS = ("plain", "agent", "run", "attach", "uprobe", "static", "overhead")
SIM = {"LD_LIBRARY_PATH": a.SIM, "CUDASIM_KERNELS": "k_spin=arg0,k_block=arg0,k_cold=arg0,k_node=arg0"}
built = False


def run(argv, code, **env):
    r = subprocess.run(argv, env=dict(os.environ, BUILD=BUILD, **env), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       text=True, timeout=600)  # fmt: skip
    equal(r.returncode, code, f"exit status of {argv}: {r.stdout[-3000:]}")
    return r.stdout.splitlines()


def script(*words, code=0, **env):
    return run([SCRIPT, *words], code, **env)


def checks(only, *words, code=0, build=BUILD, before=(), **env):
    """By themselves; what they need is built once."""
    global built
    if not built:
        script("--sim", "--only", "plain")
        built = True
    argv = [*before, sys.executable, CHECKS, "--build", build, "--program", PROGRAM, "--only", only, *words]
    return run(argv, code, **{**SIM, **env})


def these(lines, word):
    return [line for line in lines if line.split(" ", 1)[0] == word]


def has(lines, word, text):
    check(any(text in line for line in these(lines, word)), f"{word} ... {text}: {lines}")


def totals(lines):
    words = lines[-1].replace(",", "").split()
    equal(words[1::2], ["passed", "failed", "skipped"], "the last line")
    got = tuple(int(w) for w in words[::2])
    equal(got, tuple(len(these(lines, w)) for w in ("ok", "FAILED", "skipped")), "what the last line counts")
    return got


def needs_nvcc():
    if not os.path.exists(os.path.join(CUDA, "bin", "nvcc")):
        raise Skip(f"no nvcc in {CUDA}")


@case
def no_gpu():
    "no GPU: every part is skipped by name, with the reason; 77"
    needs_nvcc()
    if glob.glob("/dev/nvidia[0-9]*") or os.path.exists("/dev/dxg"):
        raise Skip("there is a GPU")
    lines = script(code=77)
    for part in PARTS:
        has(lines, "skipped", f" {part}: no GPU: there is no /dev/nvidia0")
    equal(totals(lines), (0, 0, len(PARTS)), "totals")


@case
def no_nvcc():
    "no nvcc: the same"
    lines = script("--sim", code=77, CUDA_HOME="/nowhere")
    for part in PARTS:
        has(lines, "skipped", f" {part}: no nvcc: CUDA_HOME=/nowhere has no bin/nvcc")
    equal(totals(lines), (0, 0, len(PARTS)), "totals")


@case
def usage():
    "an option or a part that does not exist is a usage error"
    script("--fast", code=2)
    script("--only", code=2)
    needs_nvcc()
    checks("agent,gpu", code=2)


@case
def on_the_simulator():
    "the program alone, the agent, qbpf run and qbpf attach: every check passes"
    needs_nvcc()
    lines = script("--sim", "--only", "plain,agent,run,attach,static")
    passed, failed, skipped = totals(lines)
    equal((failed, skipped), (0, 1), "failed and skipped")
    has(lines, "skipped", "static: the simulator has no static runtime")
    has(lines, "ok", "agent: kernels and graphs: 2546 of 2546")
    has(lines, "ok", "agent, each node of a graph: kernels and graphs: 2597 of 2597")
    has(lines, "ok", "run --cuda agent, recorded: kernels, graphs, copies, memsets: 2601 of 2601")
    has(lines, "ok", "attach --cuda agent, recorded: kernels, graphs, copies, memsets: 2597 of 2597")
    check(passed >= 45, f"{passed} passed")


@case
def uprobes_and_overhead():
    "uprobes count the same; the overhead of each mode is printed beside the plain program"
    needs_nvcc()
    lines = checks("uprobe,overhead", "--rounds", "1", "--launches", "200")
    has(lines, "ok", "run --cuda uprobe: calls: 2804 of 2804")
    has(lines, "ok", "run --cuda uprobe: launches by kernel: 2498 of 2498")
    for mode in ("plain", "agent", "run --cuda agent", "run --cuda agent -o", "run --cuda uprobe"):
        check(any(line.startswith(f"         {mode} ") and " ns a launch " in line for line in lines), f"{mode}: {lines}")


@case
def lies():
    "lost records, times that cannot be, a clock that is wrong, kernels of another length: each is a failure"
    needs_nvcc()
    for sim, text in (
        ("drop=10", "agent: every record arrived"),
        ("times=zero,times_every=9", "agent: times"),
        ("times=reversed,times_every=9", "agent: times"),
        ("times=future,times_every=9", "agent: times"),
        ("offset_ns=5000000000", "agent: times"),
        ("offset_ns=200000", "agent: clock"),
        ("offset_ns=-200000", "agent: clock"),
        ("drift_ppb=200000000", "agent: kernels against CUDA events"),
        ("subscribe=39", "another profiler holds CUPTI"),
    ):
        lines = checks("agent", code=1, CUDASIM=sim)
        has(lines, "FAILED", text)
        totals(lines)
    lines = checks("agent", code=1, CUDASIM_KERNELS="k_block=arg0,k_spin=100000")
    has(lines, "FAILED", "agent: lengths of kernels: 24 kernels, -900000 ")
    lines = checks("plain", code=1, CUDASIM_FAIL="cudaGraphLaunch=700/20")
    has(lines, "FAILED", "plain: ")


@case
def counted_losses():
    "what is lost is counted, and what is there is a part of what was done"
    needs_nvcc()
    lines = checks("agent,run", code=1, CUDASIM="drop=10")
    has(lines, "ok", "agent: kernels and graphs: ")
    check("counted as lost" in [x for x in lines if "agent: kernels and graphs" in x][0], str(lines))
    has(lines, "FAILED", "run --cuda agent: losses: ")
    has(lines, "skipped", "agent: lengths of kernels: ")


@case
def without_bpf():
    "no root, or no qbpf: the agent is checked alone, and what is left out is said"
    needs_nvcc()
    build = a.fresh(".build")
    os.makedirs(os.path.join(build, "tests"))
    for name in ("libqbpf_cupti.so", "tests/ring_dump"):
        shutil.copy(os.path.join(BUILD, name), os.path.join(build, name))
    lines = checks("plain,agent,run,attach,uprobe", "--no-qbpf", "no BTF", build=build)
    for part in ("run", "attach", "uprobe"):
        has(lines, "skipped", f" {part}: no BTF")
    has(lines, "skipped", "agent: clock: no qbpf")
    has(lines, "ok", "agent: kernels and graphs: 2546 of 2546")
    lines = checks("run,attach,uprobe", code=77, before=("setpriv", "--reuid=65534", "--clear-groups"))
    equal(totals(lines), (0, 0, 3), "totals")
    for part in ("run", "attach", "uprobe"):
        has(lines, "skipped", f" {part}: not root")


if __name__ == "__main__":
    a.main()

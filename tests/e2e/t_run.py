#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""qbpf run: from the first instruction, the child's status passed on, no child left behind."""

import contextlib
import os
import signal
import subprocess
import time

from harness import (BUILD, PATIENCE_S, QBPF, Qbpf, Skip, await_state, case, check, equal, main, spans,
                     summary, work)


def run(*args, stdin="go\n", env=None):
    return subprocess.run(
        [QBPF, "run", *map(str, args)],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        env={**os.environ, **(env or {})},
    )


def doc_of(r):
    return summary(r.stdout[r.stdout.index("{") :])


def pids_of(text):
    """Running processes whose command line holds this text."""
    out = []
    for p in os.listdir("/proc"):
        if not p.isdigit() or int(p) == os.getpid():
            continue
        try:
            cmd = open(f"/proc/{p}/cmdline", "rb").read().decode(errors="replace")
        except OSError:
            continue
        if text in cmd:
            out.append(int(p))
    return out


@case
def first_instruction():
    """every span from the first instruction on, with both kinds of link"""
    for env in ({}, {"QBPF_FORCE_PERF_EVENT": "1"}):
        r = run("--json", "--", work("w_process"), "ticks", 700, env=env)
        equal(r.returncode, 0, r.stderr)
        equal(spans(doc_of(r))["proc:tick"]["count"], 700, "ticks")


@case
def status_is_passed_on():
    """exit code and signal of the child"""
    equal(run("--", work("w_process"), "exit", 42).returncode, 42, "exit code")
    with Qbpf("run", "--", work("w_process"), "busy") as q:
        q.wait_ready()
        kids = pids_of(work("w_process") + "\0busy")
        kids = [k for k in kids if k != q.p.pid]
        equal(len(kids), 1, "one child")
        os.kill(kids[0], signal.SIGTERM)
        q.finish(code=128 + signal.SIGTERM)


@case
def nothing_to_trace():
    """nothing named and nothing to trace: the program runs, one line says so, its status is passed on"""
    for args in ([], ["--json"], ["--cuda", "off"], ["-o", os.path.join(BUILD, "tests", "none.qbpf")]):
        r = run(*args, "--", "/bin/sh", "-c", "echo it ran >&2; exit 7")
        equal(r.returncode, 7, r.stderr)
        check("it ran" in r.stderr, r.stderr)
        said = [x for x in r.stderr.splitlines() if "nothing is traced" in x]
        equal(len(said), 1, r.stderr)
        check("has no markers" in said[0], said)
    equal(run("--", "/bin/sh", "-c", "kill -KILL $$").returncode, 128 + signal.SIGKILL, "signal")
    equal(doc_of(run("--json", "--", "/bin/true"))["spans"], [], "spans")


@case
def no_such_program():
    """a program that cannot be started: one line, exit 1"""
    r = run("--", "/no/such/program")
    equal(r.returncode, 1, "code")
    equal(len(r.stderr.strip().splitlines()), 1, r.stderr)
    check("No such file" in r.stderr, r.stderr)


@case
def missing_probe():
    """no such probe with run: exit 1, the child is not left behind"""
    r = run("-u", "nosuch:probe", "--", work("w_process"), "busy")
    equal(r.returncode, 1, r.stderr)
    check("nosuch:probe" in r.stderr, r.stderr)
    equal(pids_of(work("w_process") + "\0busy"), [], "child left behind")


@case
def mistyped_probe_comes_first():
    """a named probe that is not there: exit 1 before the program has done anything"""
    mark = os.path.join(BUILD, "tests", "mistyped.ran")
    if os.path.exists(mark):
        os.remove(mark)
    for args in (["-u", "nosuch:probe"], ["-f", "nosuch"], ["-s", "x=no:begin..no:end"]):
        r = run(*args, "--", "/bin/sh", "-c", f"echo > {mark}; exit 7")
        equal(r.returncode, 1, r.stderr)
        check(not os.path.exists(mark), f"it ran with {args}")


@case
def static_missing_probe():
    """a static program in which nothing can be traced does not run at all"""
    src = os.path.join(BUILD, "tests", "st.c")
    exe = os.path.join(BUILD, "tests", "st")
    mark = os.path.join(BUILD, "tests", "st.ran")
    with open(src, "w") as f:
        f.write(f'#include <stdio.h>\nint main(void) {{ return !fopen("{mark}", "w"); }}\n')
    if subprocess.run(["gcc", "-static", src, "-o", exe]).returncode:
        raise Skip("no static C library")
    r = run("-f", "nosuch", "--", exe)
    equal(r.returncode, 1, r.stderr)
    check(not os.path.exists(mark), "it ran")


@case
def duration_ends_child():
    """-d: the report, and the child is ended"""
    r = run("-d", "0.5", "--json", "--", work("w_process"), "busy")
    equal(r.returncode, 0, r.stderr)
    check(spans(doc_of(r))["proc:tick"]["count"] > 0, "counted")
    equal(pids_of(work("w_process") + "\0busy"), [], "child left behind")


@case
def sigkill_of_qbpf():
    """SIGKILL of qbpf at any moment of the start: the child goes on unharmed"""
    for delay in (0.0, 0.01, 0.02, 0.04, 0.08, 0.15, 0.4):
        p = subprocess.Popen(
            [QBPF, "run", "--", work("w_process"), "busy"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        p.stdin.write(b"go\n")
        p.stdin.flush()
        time.sleep(delay)
        p.kill()
        p.wait()
        for k in pids_of(work("w_process") + "\0busy"):
            # What has not become the program yet, and any other child of qbpf's, ends with it.
            state = await_state(k, "RSZ")
            with contextlib.suppress(ProcessLookupError):
                os.kill(k, signal.SIGKILL)
            check(state in ("R", "S", "Z", None), f"child is in state {state} after {delay}")


@case
def signals_reach_child():
    """SIGTERM to qbpf reaches the child; the report follows"""
    with Qbpf("run", "--json", "--", work("w_process"), "busy") as q:
        q.wait_ready()
        out = q.stop(signal.SIGTERM, code=128 + signal.SIGTERM)
        check("qbpf.summary/1" in out, "report")


@case
def opened_at_once():
    """a library that the program opens and uses at once: what could not be counted is told"""
    lib = os.path.join(BUILD, "tests", "libplugin.so")
    r = run("--json", "--", work("w_process"), "late", 1000, lib, stdin="go\ngo\n")
    equal(r.returncode, 0, r.stderr)
    doc = doc_of(r)
    held = spans(doc).get("plugin:work", {}).get("count", 0)
    late = any("after their code had been mapped" in n for n in doc["probes"].get("notes", []))
    check(late or "after it had opened or closed a library" in r.stderr, r.stderr)
    check(held <= 1000, held)


@case
def linked_is_not_late():
    """what is armed before the program's first instruction has nothing before it"""
    r = run("--json", "--", work("w_process"), "exit", 0)
    check(not any("mapped" in n for n in doc_of(r)["probes"].get("notes", [])), r.stdout)
    check("what they did before" not in r.stderr, r.stderr)


@case
def follow_run():
    """run --follow of a shell, without markers, that starts the program: its spans are seen"""
    p = subprocess.Popen(
        [QBPF, "run", "--follow", "--json", "--", "/bin/sh", "-c",
         work("w_process") + " ticks 300; exit 5"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        err = ""
        while "newly mapped" not in err:  # the program waits for its line meanwhile
            line = p.stderr.readline()
            check(line, f"qbpf ended: {err}")
            err += line
        out, _ = p.communicate("go\n", timeout=PATIENCE_S)
    finally:
        p.kill()
    equal(p.returncode, 5, err)
    s = spans(summary(out[out.index("{") :]))
    equal(s["proc:tick"]["count"], 300, "ticks in the child's child")


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""The host's CUDA calls by uprobes: NVIDIA's own libcudart (whose calls fail where there is no driver,
and are counted all the same) and the simulated one. Counts are exact: the target says what it did.
"""

import json
import os
import shutil
import subprocess
import tempfile

from harness import (BUILD, QBPF, ROOT, Qbpf, Skip, Workload, attach_json, case, check, equal, main,
                     spans, summary, tree_paths, work)

SIM = os.path.join(BUILD, "tests", "cudasim")
CUDA = os.environ.get("CUDA_HOME", "/usr/local/cuda")
REAL = os.path.join(CUDA, "lib64", "libcudart.so.13")
STATIC = os.path.join(CUDA, "lib64", "libcudart_static.a")
WORK = tempfile.mkdtemp(prefix="qbpf-cuda-")
ROUNDS = 1000
PER_ROUND = 9  # calls of runtime() in cuda_target.c
HINT = "CUDA's calls are seen by uprobes; --cuda agent shows what the GPU did too"
ALPHA, BETA = "kernel_alpha", "kernel_beta"

LAUNCHES = r"""
#include <cstdio>
__global__ void alpha(float *p, int n) { p[threadIdx.x] = n; }
template <typename T> __global__ void beta(T *p) { p[0] = 1; }
static bool go_on(const char *said)
{
	char line[64];

	puts(said);
	fflush(stdout);
	return fgets(line, sizeof(line), stdin);
}
int main(void)
{
	float *d;

	if (!go_on("ready") || cudaMalloc(&d, 4096))
		return 1;
	for (int k = 0; k < 2; k++) {
		for (int i = 0; i < 300; i++) {
			alpha<<<dim3(2, 3, 4), dim3(32, 2, 1)>>>(d, i);
			beta<double><<<7, 64>>>((double *)d);
		}
		if (!k && !go_on("launched"))
			return 1;
	}
	return cudaDeviceSynchronize();
}
"""

built = {}


def target(name="target", *flags):
    """cuda_target.c, compiled once for each set of flags."""
    path = os.path.join(WORK, name)
    if name not in built:
        if not os.path.exists(os.path.join(CUDA, "include", "cuda_runtime_api.h")):
            raise Skip(f"no CUDA headers in {CUDA}/include")
        built[name] = subprocess.run(
            ["gcc", "-O2", "-g", "-Wall", "-Werror", "-rdynamic", "-I", ROOT, "-I",
             os.path.join(ROOT, "include"), "-isystem", os.path.join(CUDA, "include"),
             os.path.join(ROOT, "tests", "e2e", "cuda_target.c"), "-o", path, *flags, "-ldl"],
            stderr=subprocess.PIPE, text=True)
    p = built[name]
    if p.returncode:
        raise AssertionError(p.stderr)
    return path


def sim(name):
    path = os.path.join(SIM, name)
    if not os.path.exists(path):
        raise Skip("tests/cudasim is not built (no CUDA headers)")
    return path


def sim_env(**more):
    # On the virtual clock nothing waits.
    return dict(os.environ, LD_LIBRARY_PATH=SIM, CUDASIM="clock=virtual", **more)


def trace(argv, *args, env=None, preloaded=False, mode="uprobe"):
    """Traces the target; libraries that it opens late are armed before its first call."""
    libraries = max(len(argv) - 3, 1)
    with Workload(argv, env=env) as w:
        if preloaded:
            for n in range(libraries):
                w.go()
                w.wait_for("opened", n + 1)
        late = [] if preloaded else ["--wait"]
        with attach_json(w.pid, *(["--cuda", mode] if mode else []), *late, *args) as q:
            q.wait_ready()
            for n in range(0 if preloaded else libraries):
                w.go()
                w.wait_for("opened", n + 1)
                q.wait_err("in newly mapped objects", n + 1)
            w.go()
            counts = w.finish()
            return summary(q.finish()), counts, q


def by(rows, *keys):
    return {tuple(tuple(r[k]) if isinstance(r.get(k), list) else r.get(k) for k in keys): r
            for r in rows}


def clean(doc):
    equal(doc["lost"]["events"], 0, "lost events")
    equal(doc["cuda"]["lost"], 0, "calls without figures")
    for s in doc["spans"]:
        for what in ("abandoned", "orphan_ends", "open"):
            equal(s.get(what, 0) or 0, 0, f"{s['name']}: {what}")


def check_runtime(doc, n, libs, failed, code=None):
    """What runtime() of cuda_target.c has done, in each of so many libraries."""
    m, s = n * libs, spans(doc)
    bad = m if failed else 0
    equal(s["cuda:cudaMemcpyAsync"]["count"], 2 * m, "cudaMemcpyAsync with its twin")
    equal(s["cuda:cudaLaunchKernel"]["count"], 2 * m, "cudaLaunchKernel with its twin")
    equal(s["cuda:cudaLaunchKernelExC"]["count"], m, "cudaLaunchKernelExC")
    equal(s["cuda:cudaStreamSynchronize"]["count"], m, "cudaStreamSynchronize")
    equal(s["cuda:cudaMalloc"]["count"], libs, "cudaMalloc")
    equal(s["cuda:cudaMalloc"]["kind"], "cuda", "kind")
    copies = by(doc["cuda"]["copies"], "call", "direction")
    sizes = sum(1 + i % 100 for i in range(n)) * libs
    rows = [("cudaMemcpy", "h2d", m, sizes, m), ("cudaMemcpyAsync", "h2d", m, 1000 * m, m),
            ("cudaMemcpyAsync", "d2h", m, 7 * m, 0), ("cudaMemcpy2D", "default", m, 30 * m, m)]
    for call, direction, count, size, legacy in rows:
        c = copies[call, direction]
        equal((c["count"], c["failed"], c["legacy_stream"]), (count, bad, legacy),
              f"{call} {direction}: count, failed, legacy_stream")
        equal((c["bytes"], c.get("failed_bytes", 0)), (0, size) if failed else (size, 0),
              f"{call} {direction}: bytes, failed_bytes")
    if not failed:
        c = copies["cudaMemcpy", "h2d"]
        equal((c["min_bytes"], c["max_bytes"]), (1, 100), "sizes of cudaMemcpy")
        equal(len(copies), len(rows), "copies")
        check(c["sum_ns"] > 0, "the time of copies")
        check(c["bytes_per_s"] > 0, "bandwidth of a synchronous copy")
        check("bytes_per_s" not in copies["cudaMemcpyAsync", "h2d"], "none of an asynchronous one")
    memset = by(doc["cuda"]["memsets"], "call")["cudaMemsetAsync",]
    equal(memset["count"], m, "memsets")
    equal(memset.get("failed_bytes", 0) if failed else memset["bytes"], 256 * m, "memset bytes")
    kernels = by(doc["cuda"]["kernels"], "name", "call", "grid", "block")
    want = {(ALPHA, "cudaLaunchKernel", (2, 3, 4), (32, 2, 1)): m,
            (BETA, "cudaLaunchKernelExC", (5, 6, 7), (8, 9, 1)): m}
    for i in range(3):
        want[BETA, "cudaLaunchKernel", (1 + i, 1, 1), (64, 1, 1)] = libs * ((n + 2 - i) // 3)
    equal({k: v["count"] for k, v in kernels.items()}, want, "kernels with their grids")
    check(all(k["named"] for k in doc["cuda"]["kernels"]), "every kernel has a name")
    equal(sum(k["failed"] for k in doc["cuda"]["kernels"]), 3 * bad, "failed launches")
    errors = by(doc["cuda"]["errors"], "call", "code")
    if failed:
        equal(errors["cudaMemcpyAsync", code]["count"], 2 * m, "errors of cudaMemcpyAsync")
        equal(errors["cudaLaunchKernelExC", code]["count"], m, "errors of cudaLaunchKernelExC")
    else:
        equal(errors, {}, "errors")
    calls = sum(c["count"] for c in doc["cuda"]["calls"])
    return calls, sum(c["failed"] for c in doc["cuda"]["calls"])


@case
def no_toolkit():
    """A library with CUDA's names, opened late by a program with markers; needs nothing of NVIDIA's"""
    n = 300
    with Workload([work("w_process"), "late", n, work("liblate_cuda.so")]) as w, attach_json(w.pid) as q:
        q.wait_ready()
        w.go()
        w.wait_for("opened")
        q.wait_err("in newly mapped objects")
        w.go()
        w.finish()
        doc = summary(q.finish())
    s = spans(doc)
    equal({k: s[k]["count"] for k in s if s[k]["count"]},
          {"proc:tick": 1, "cuda:cudaMalloc": 1, "cuda:cudaMemcpy": n, "cuda:cudaLaunchKernel": n},
          "spans")  # fmt: skip
    copy = doc["cuda"]["copies"][0]
    equal((copy["bytes"], copy["failed_bytes"], copy["failed"]), (n * 75, n * 25, n // 4), "bytes, failures")
    kernel = doc["cuda"]["kernels"][0]
    equal((kernel["name"], kernel["grid"], kernel["block"], kernel["count"]),
          ("late_kernel", [2, 3, 4], [64, 1, 1], n), "the kernel")  # fmt: skip
    equal([(e["code"], e["error"], e["count"]) for e in doc["cuda"]["errors"]],
          [(719, "cudaErrorLaunchFailure", n // 4)], "errors")  # fmt: skip
    clean(doc)


@case
def real_library():
    """NVIDIA's libcudart: every call counted, its bytes, kernels and error read"""
    if not os.path.exists(REAL):
        raise Skip(f"no {REAL}")
    n = 40000 // PER_ROUND
    for returns in ("auto", "ret"):
        doc, counts, _ = trace([target(), "real", n, REAL], "--returns", returns)
        if not counts["failed"]:
            raise Skip("there is a driver: see scripts/gpu-check.sh")
        equal(counts["calls"], 4 + PER_ROUND * n, "calls by the target's own count")
        got = check_runtime(doc, n, 1, True, 35)
        equal(got, (counts["calls"], counts["failed"]), "calls, failed")
        box = by(doc["cuda"]["copies"], "call")["cudaMemcpy3D",]
        equal((box["failed_bytes"], box["direction"]), (120, "h2d"), "cudaMemcpy3D")
        error = by(doc["cuda"]["errors"], "call")["cudaMemcpy3D",]
        equal(error["error"], "cudaErrorInsufficientDriver", "the error's name")
        clean(doc)


@case
def simulated():
    """The simulated libcudart, mapped when we come: figures of calls that succeed"""
    argv = [target(), "runtime", ROUNDS, sim("libcudart.so.13")]
    doc, counts, _ = trace(argv, env=sim_env(), preloaded=True)
    equal(check_runtime(doc, ROUNDS, 1, False), (counts["calls"], 0), "calls, failed")
    equal(doc["cuda"]["allocations"][0]["bytes"], 1 << 20, "bytes of cudaMalloc")
    clean(doc)
    check(not any(s["name"].startswith("cuda:cu") and not s["name"].startswith("cuda:cuda")
                  for s in doc["spans"]), "the driver below the runtime is not armed")


@case
def late_copies():
    """By default: two copies under other names, opened late and alive at once, share their spans"""
    renamed = os.path.join(WORK, "libcudart-9335f6a2.so.12")
    shutil.copy(sim("libcudart.so.13"), renamed)
    argv = [target(), "runtime", ROUNDS, sim("libcudart.so.13"), renamed]
    doc, counts, q = trace(argv, env=sim_env(), mode=None)
    equal(check_runtime(doc, ROUNDS, 2, False), (counts["calls"], 0), "calls, failed")
    equal(q.err_text().count(HINT), 1, f"one line about it: {q.err_text()}")
    clean(doc)


@case
def both_apis():
    """--cuda-api both: the driver's calls lie inside the runtime's and nothing is counted twice"""
    argv = [target(), "runtime", ROUNDS, sim("libcudart.so.13")]
    doc, counts, _ = trace(argv, "--cuda-api", "both", env=sim_env(), preloaded=True)
    check_runtime(doc, ROUNDS, 1, False)
    paths = tree_paths(doc)
    launch = "cuda:cudaLaunchKernel/cuda:cuLaunchKernel"
    equal(paths[launch]["count"], 2 * ROUNDS, launch)
    copies = {c["call"] for c in doc["cuda"]["copies"]}
    check(not any(c.startswith("cuM") for c in copies), f"copies of the runtime alone: {copies}")
    clean(doc)


@case
def driver_only():
    """A program of the driver's API: said so, kernels by the name they were looked up by"""
    n = ROUNDS
    argv = [target(), "driver", n, sim("libcuda.so.1")]
    doc, counts, _ = trace(argv, env=sim_env())
    check(any("no CUDA runtime with symbols" in x for x in doc["probes"]["notes"]), "the note")
    copies = by(doc["cuda"]["copies"], "call", "direction")
    equal({k: (c["count"], c["bytes"]) for k, c in copies.items()},
          {("cuMemcpyHtoD", "h2d"): (n, 300 * n), ("cuMemcpyDtoHAsync", "d2h"): (n, 11 * n),
           ("cuMemcpy2D", "h2d"): (n, 80 * n)}, "copies")
    equal(by(doc["cuda"]["memsets"], "call")["cuMemsetD32",]["bytes"], 100 * n, "memset")
    kernels = by(doc["cuda"]["kernels"], "name", "call", "grid", "block")
    equal({k: v["count"] for k, v in kernels.items()},
          {("gamma", "cuLaunchKernel", (7, 1, 1), (128, 1, 1)): n,
           ("gamma", "cuLaunchKernelEx", (4, 3, 2), (16, 2, 1)): n}, "kernels")
    equal(spans(doc)["cuda:cuCtxSynchronize"]["count"], n, "cuCtxSynchronize")
    clean(doc)


@case
def errors_on_demand():
    """Calls that fail now and then: by function and code, their bytes apart"""
    n = ROUNDS
    env = sim_env(CUDASIM_FAIL="cudaMemcpyAsync=700/4,cudaLaunchKernel=1")
    doc, counts, _ = trace([target(), "runtime", n, sim("libcudart.so.13")], env=env,
                           preloaded=True)
    errors = {(e["call"], e["code"]): (e["count"], e["error"]) for e in doc["cuda"]["errors"]}
    check(("cudaLaunchKernel", 1) in errors and ("cudaMemcpyAsync", 700) in errors, f"{errors}")
    equal(errors["cudaMemcpyAsync", 700][1], "cudaErrorIllegalAddress", "the error's name")
    equal(sum(c for c, _ in errors.values()), counts["failed"], "failed calls")
    copies = by(doc["cuda"]["copies"], "call", "direction")
    for direction, size in (("h2d", 1000), ("d2h", 7)):
        c = copies["cudaMemcpyAsync", direction]
        equal(c["count"], n, "copies")
        equal(c["bytes"], size * (n - c["failed"]), "bytes of those that were done")
        equal(c.get("failed_bytes", 0), size * c["failed"], "bytes of those that failed")
    clean(doc)


@case
def static_runtime():
    """A runtime linked statically is found by its symbols; stripped it has none"""
    if not os.path.exists(STATIC):
        raise Skip(f"no {STATIC}")
    exe = target("static", "-DLINKED", STATIC, "-lpthread", "-lrt", "-lstdc++")
    doc, counts, _ = trace([exe, "linked", ROUNDS], preloaded=True)
    s = spans(doc)
    for call in ("cudaMalloc", "cudaMemcpyAsync", "cudaLaunchKernel", "cudaDeviceSynchronize"):
        equal(s[f"cuda:{call}"]["count"], ROUNDS, call)
    equal(doc["cuda"]["kernels"][0]["name"], ALPHA, "the kernel's name")
    equal(sum(c["count"] for c in doc["cuda"]["calls"]), counts["calls"], "calls")
    clean(doc)
    bare = exe + "-stripped"
    subprocess.run(["strip", "-o", bare, exe], check=True)
    p = subprocess.run([QBPF, "list", bare, "--json"], stdout=subprocess.PIPE, text=True,
                       check=True)
    check("cuda:cudaMalloc" not in p.stdout, "no site in a stripped one")


@case
def imports_only():
    """A program that only imports CUDA's functions holds none; list shows those of the library"""
    exe = work("w_quant_gpu")
    if not os.path.exists(exe):
        raise Skip("w_quant_gpu is not built (no CUDA headers)")
    out = subprocess.run([QBPF, "list", exe], stdout=subprocess.PIPE, text=True, check=True).stdout
    check("cuda:" not in out, "no site where the functions are only imported")
    lib = REAL if os.path.exists(REAL) else sim("libcudart.so.13")
    out = subprocess.run([QBPF, "list", lib], stdout=subprocess.PIPE, text=True, check=True).stdout
    check("cuda:cudaMemcpyAsync" in out, "sites of the library")
    check("cuda:__cudaLaunchKernel" not in out, "nvcc's entry only jumps on")
    out = subprocess.run([QBPF, "list", lib, "--cuda", "off"], stdout=subprocess.PIPE, text=True,
                         check=True).stdout
    check("cuda:" not in out, "--cuda off")


@case
def under_markers():
    """The calls lie beneath the strategy's own markers, live and in a recording"""
    exe = work("w_quant_gpu")
    if not os.path.exists(exe):
        raise Skip("w_quant_gpu is not built (no CUDA headers)")
    trace_file = os.path.join(WORK, "quant.qbpf")
    with Workload([exe, "--ticks", "200", "--flaw", "sync-copy", "--wait"],
                  env=dict(os.environ, CUDASIM="clock=virtual")) as w:
        with attach_json(w.pid, "--cuda", "auto", "-o", trace_file) as q:
            q.wait_ready()
            w.go()
            counts = w.finish()
            doc = summary(q.finish())
    paths = tree_paths(doc)
    ticks = [k for k in counts if k.endswith("tick")]
    equal(len(ticks), 1, f"one kind of ticks in {counts}")
    under = {p: n["count"] for p, n in paths.items() if "/cuda:cudaMemcpy" in p}
    equal(sum(under.values()), 2 * counts[ticks[0]], f"two copies a tick, beneath markers: {under}")
    check(all("tick" in p for p in under), f"{under}")
    kernels = {k["name"]: k["count"] for k in doc["cuda"]["kernels"]}
    equal(sum(kernels.values()), 2 * counts[ticks[0]], f"launches: {kernels}")
    clean(doc)
    out = subprocess.run([QBPF, "report", trace_file, "--json"], stdout=subprocess.PIPE, text=True,
                         check=True).stdout
    again = summary(out)
    equal(again["cuda"], doc["cuda"], "cuda of the recording")
    same = spans(doc)["cuda:cudaMemcpy"]
    equal(spans(again)["cuda:cudaMemcpy"]["count"], same["count"], "recorded spans")
    equal(spans(again)["cuda:cudaMemcpy"]["sum_ns"], same["sum_ns"], "recorded time")


def shell(*argv):
    return subprocess.run([str(a) for a in argv], stdout=subprocess.PIPE, text=True, check=True).stdout


@case
def ends():
    """The ends of calls are seen by uretprobes, with the reason; --returns overrides"""
    with Workload([target(), "runtime", 1, sim("libcudart.so.13")], env=sim_env()) as w:
        w.go()
        w.wait_for("opened")
        for options, way in (((), "uretprobe"), (("--returns", "ret"), "ret")):
            listed = json.loads(shell(QBPF, "list", "-p", w.pid, "-u", "cuda:cudaM*", "--json", *options))
            rows = [s for s in listed["spans"] if s["kind"] == "cuda"]
            check(len(rows) > 5, f"{listed['spans']}")
            equal({s["returns"] for s in rows}, {way}, f"ends with {options}")
            if way == "uretprobe":
                check(all("no exception passes" in s["returns_reason"] for s in rows), f"{rows[0]}")
        w.go()
        w.finish()


@case
def by_name():
    """-u cuda:GLOB takes those calls alone; --cuda agent leaves the host's calls alone"""
    argv = [target(), "runtime", ROUNDS, sim("libcudart.so.13")]
    doc, counts, _ = trace(argv, "-u", "cuda:cudaMemcpy*Async", env=sim_env(), preloaded=True, mode=None)
    equal({s["name"]: s["count"] for s in doc["spans"] if s["count"]},
          {"cuda:cudaMemcpyAsync": 2 * ROUNDS}, "spans")
    clean(doc)
    with Qbpf("list", sim("libcudart.so.13"), "-u", "*", "--cuda", "agent") as q:
        out = q.finish(code=1)
    check("cuda:" not in out and "-u * matches nothing" in q.err_text(), out + q.err_text())


@case
def nvcc_launches():
    """nvcc's <<<>>>: kernels by the handle that __cudaGetKernel gave out, or by who launches them"""
    nvcc = os.path.join(CUDA, "bin", "nvcc")
    if not os.path.exists(nvcc):
        raise Skip(f"no {nvcc}")
    source, exe = os.path.join(WORK, "launch.cu"), os.path.join(WORK, "launch")
    with open(source, "w") as f:
        f.write(LAUNCHES)
    shell(nvcc, "-O2", "-cudart", "shared", "-o", exe, source)
    want = {("alpha(float*, int)", (2, 3, 4), (32, 2, 1)): 300,
            ("void beta<double>(double*)", (7, 1, 1), (64, 1, 1)): 300}
    for when, gets in (("before", 2), ("after", 0)):
        with Workload([exe], env=sim_env()) as w:
            if when == "after":  # its handles have been given out
                w.go()
                w.wait_for("launched")
            with attach_json(w.pid) as q:
                q.wait_ready()
                w.go()
                if when == "before":
                    w.wait_for("launched")
                    w.go()
                w.finish()
                doc = summary(q.finish())
        rounds = 2 if when == "before" else 1
        kernels = by(doc["cuda"]["kernels"], "name", "grid", "block")
        equal({k: v["count"] for k, v in kernels.items()}, {k: rounds * n for k, n in want.items()},
              f"kernels, {when}")
        equal(spans(doc)["cuda:__cudaGetKernel"]["count"], gets, f"handles, {when}")
        check("cuda:__cudaLaunchKernel" not in spans(doc) or
              spans(doc)["cuda:__cudaLaunchKernel"]["count"] == 0, "no call is counted twice")


def opened(pid, fd):
    try:
        return os.readlink(f"/proc/{pid}/fd/{fd}")
    except FileNotFoundError:  # just closed: the links by which qbpf measured its price
        return ""


def programs(pid):
    """BPF programs that a qbpf has open."""
    return sum(opened(pid, fd) == "anon_inode:bpf-prog" for fd in os.listdir(f"/proc/{pid}/fd"))


def loaded(pid, *options):
    with attach_json(pid, *options) as q:
        q.wait_ready()
        n, said = programs(q.p.pid), q.err_text()
        return n, said, summary(q.stop())


@case
def nothing_there():
    """A program without CUDA: nothing is loaded, nothing is said, nothing is in the document"""
    with Workload([work("w_strategy"), "--seconds", "600"], ready="ready") as w:
        off, said_off, _ = loaded(w.pid, "--cuda", "off")
        default, said, doc = loaded(w.pid)
    equal(default, off, "programs that are loaded")
    check("cuda" not in doc, "no key")
    check("cuda" not in said.lower(), said)
    equal(len(said.splitlines()), len(said_off.splitlines()), "lines")
    with Workload([target(), "runtime", 1, sim("libcudart.so.13")], env=sim_env()) as w:
        w.go()
        w.wait_for("opened")
        with_cuda, said, _ = loaded(w.pid)
    equal(with_cuda, off + 3, "programs with CUDA mapped: two, and the one that goes with uretprobes")
    equal(said.count(HINT), 1, said)


@case
def bad_options():
    """Words that are not understood: one line, exit code 2"""
    for words in (["--cuda", "sometimes"], ["--cuda-api", "cublas"], ["--cuda"]):
        with Qbpf("attach", "-p", os.getpid(), *words) as q:
            q.finish(code=2)
            equal(len(q.err_text().splitlines()), 1, q.err_text())


try:
    main()
finally:
    shutil.rmtree(WORK, ignore_errors=True)

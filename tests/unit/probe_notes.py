#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 1800
"""What qbpf/probe.h leaves in ELF files: notes like those of sys/sdt.h, sites that step over the
red zone, no operand that moves with the stack pointer, and all of it whole after any linking."""

import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WORK = os.path.join(ROOT, "tests", "workloads")
TMP = tempfile.mkdtemp(prefix="qbpf-probe-notes-")
STEP = bytes.fromhex("488d642480")
NOP5 = bytes.fromhex("0f1f440000")
BACK = bytes.fromhex("488da42480000000")
RET = b"\xc3"

results = []


class Skip(Exception):
    pass


def test(fn):
    results.append(fn)
    return fn


def check(cond, what):
    if not cond:
        raise AssertionError(what)


def run(*args, **kw):
    done = subprocess.run(args, capture_output=True, text=True, **kw)
    check(done.returncode == 0, f"{' '.join(args)}: {done.stderr[-1500:]}")
    return done.stdout


def cc(compiler, flags, sources, out):
    if not shutil.which(compiler):
        raise Skip(f"{compiler} is not installed")
    out = os.path.join(TMP, out)
    run(compiler, "-w", *flags, "-I" + os.path.join(ROOT, "include"), *sources, "-o", out,
        "-lpthread")
    return out


def source(name, text):
    path = os.path.join(TMP, name)
    with open(path, "w") as f:
        f.write(text)
    return path


class Note:
    def __init__(self, provider, name, addr, base, sema, args):
        self.provider, self.name, self.args = provider, name, args
        self.addr, self.base, self.sema = int(addr, 16), int(base, 16), int(sema, 16)

    def __repr__(self):
        return f"{self.provider}:{self.name}@{self.addr:x}[{self.args}]"


def notes(path):
    done = subprocess.run(["readelf", "-nW", path], capture_output=True, text=True)
    check(not done.stderr.strip(), f"readelf: {done.stderr}")
    check("corrupt" not in done.stdout, f"readelf: {done.stdout[:500]}")
    return [Note(*m) for m in re.findall(
        r"Provider: (.*)\n\s+Name: (.*)\n\s+Location: (\w+), Base: (\w+), Semaphore: (\w+)\n"
        r"\s+Arguments: ?(.*)", done.stdout)]


def records(path):
    return len(re.findall(r"^\s+qbpf\s+0x", run("readelf", "-nW", path), re.M))


def segments(path):
    out = []
    for m in re.finditer(r"^\s+LOAD\s+(\w+) (\w+) \w+ (\w+) \w+ (...)", run("readelf", "-lW", path),
                         re.M):
        off, addr, size = (int(x, 16) for x in m.groups()[:3])
        out.append((off, addr, size, "E" in m.group(4)))
    return out


def code_at(path, addr, before, length):
    """The file's bytes at an address; the address must be mapped executable."""
    for off, start, size, executable in segments(path):
        if start <= addr < start + size:
            check(executable, f"{addr:x} is in no code")
            with open(path, "rb") as f:
                f.seek(off + addr - start - before)
                return f.read(length)
    check(False, f"{addr:x} is not mapped")


def check_sites(path, thunks):
    for n in notes(path):
        code = code_at(path, n.addr, len(STEP), len(STEP + NOP5 + BACK))
        thunk = code[len(STEP):].startswith(NOP5 + RET)
        check(code == STEP + NOP5 + BACK or (thunks and thunk and n.name.endswith("__end")),
              f"{n}: {code.hex()}")
        check("(" not in n.args and "sp" not in n.args.replace("%esi", ""), f"{n}")


# --- sites and operands at every level ---------------------------------------------------------

MATRIX = [(c, [level] + extra)
          for c in ("gcc", "clang", "g++", "clang++")
          for level, extra in (("-O0", []), ("-O1", ["-fPIC", "-pie"]), ("-O2", []),
                               ("-O3", ["-fomit-frame-pointer", "-no-pie"]),
                               ("-O2", ["-fno-omit-frame-pointer"]),
                               ("-O2", ["-mno-red-zone", "-fstack-protector-all"]))]
# Each marker of w_marker.c has at least one site, whatever is inlined.
NAMES = {("mk", n) for n in
         "small wide real dval__value fval__value ival__value text place deep address constant "
         "inlined twelve costly leaf scope__begin scope__end inner__begin inner__end".split()}


def matrix(compiler):
    for flags in (f for c, f in MATRIX if c == compiler):
        c = os.path.join(WORK, "w_marker.c")
        lang = ["-x", "c++", "-std=c++11"] if compiler.endswith("++") else ["-x", "c", "-std=c99"]
        path = cc(compiler, flags + lang, [c], "m")
        found = notes(path)
        missing = NAMES - {(n.provider, n.name) for n in found}
        check(not missing, f"{flags}: {missing}")
        check(len([n for n in found if n.provider == "qbpf_func"]) >= 2, f"{flags}: QBPF_FUNC")
        check_sites(path, compiler == "clang")
        args = {n.name: n.args for n in found}
        sizes = [a.split("@")[0] for a in args["twelve"].split()]
        check(sizes == "-4 1 8 8 -2 -8 4 4 -8 -4 -4 -8".split(), f"{flags}: {args['twelve']}")
        sizes = [a.split("@")[0] for a in args["small"].split()]
        check(sizes == "-1 1 -2 2 1 -1".split(), f"{flags}: {args['small']}")
        if compiler.endswith("++"):
            path = cc(compiler, flags + ["-std=c++17"],
                      [os.path.join(WORK, "w_marker_cxx.cc")], "mx")
            check_sites(path, False)


for _c in ("gcc", "clang", "g++", "clang++"):
    def _t(c=_c):
        matrix(c)

    _t.__doc__ = f"{_c}: every site steps over the red zone, no operand needs the stack pointer"
    test(_t)


PRESSURE = """
#include "qbpf/probe.h"
__attribute__((noinline)) static void use(char *p, long *q) { p[0] = 1; q[0] = 2; }
__attribute__((noinline)) static long press(long n, double d, float f, const char *s, long *p)
{
	char vla[n];
	long al[8] __attribute__((aligned(64))) = {0};
	long a = p[0], b = p[1], c = p[2], e = p[3], g = p[4], h = p[5], i = p[6], j = p[7];
	use(vla, al);
	for (long k = 0; k < n; k++) {
		DTRACE_PROBE12(edge, press, a, b, c, e, g, h, i, j, d, f, s, al[k & 7]);
		a += b; b ^= c; c += e; e -= g; g += h; h ^= i; i += j; j += a;
		al[k & 7] += a;
	}
	return a + b + c + e + g + h + i + j + al[3] + vla[0];
}
int main(int argc, char **argv)
{
	long p[8] = {argc, 2, 3, 4, 5, 6, 7, 8};
	return press(argc + 3, argc * 0.5, 1.5f, argv[0], p) == 12345;
}
"""


@test
def pressure():
    """Twelve arguments in registers, where every register is wanted and the frame is odd"""
    src = source("pressure.c", PRESSURE)
    for compiler in ("gcc", "clang"):
        for flags in (["-O0"], ["-O1"], ["-O2"], ["-O3", "-march=x86-64-v3"], ["-Os"],
                      ["-O0", "-fsanitize=address,undefined"], ["-O2", "-fsanitize=address"],
                      ["-O2", "-fPIC", "-fno-omit-frame-pointer"],
                      ["-O2", "-fstack-protector-all", "-fcf-protection=full"]):
            path = cc(compiler, flags, [src], "pressure")
            check([len(re.findall("@", n.args)) for n in notes(path)] == [12] * len(notes(path)) != [],
                  f"{compiler} {flags}: {notes(path)}")
            check_sites(path, False)
            run(path)


# --- as sys/sdt.h ------------------------------------------------------------------------------

SAME = """
#ifdef SDT
#include <sys/sdt.h>
#else
#include "qbpf/probe.h"
#endif
#define PROVIDER expanded
enum e { A, B };
int f(int a, unsigned b, long c, unsigned long d, char *e)
{
	DTRACE_PROBE(p, zero);
	DTRACE_PROBE1(p, one, 5);
	STAP_PROBE2(p, two, a, b);
	DTRACE_PROBE5(PROVIDER, five, a, b, c, d, e);
	STAP_PROBE3(q, three, -1L, "x", (signed char)3);
	return a;
}
int g(signed char a, unsigned char b, short c, unsigned short d, enum e e, long *p)
{
	DTRACE_PROBE6(p, six, a, b, c, d, e, p);
	DTRACE_PROBE2(p, mem, *p, p[3]);
	return b;
}
double h(double x, float y)
{
	DTRACE_PROBE2(p, real, x, y);
	return x;
}
int t(int a, int b, int c, int d, int e, int f)
{
	DTRACE_PROBE12(p, twelve, a, b, c, d, e, f, a, b, c, d, e, f);
	return 0;
}
#ifdef _SDT_HAS_SEMAPHORES
unsigned short p_sema_semaphore __attribute__((section(".probes")));
#else
int s(void) { return 0; }
#endif
"""


def need_sdt():
    if subprocess.run(["gcc", "-E", "-"], input="#include <sys/sdt.h>\n", text=True,
                      capture_output=True).returncode:
        raise Skip("sys/sdt.h is not installed")


def plain(n):
    """Without what is known to differ: the mark of floating point, the name of a byte's register."""
    regs = {"a": "eax", "b": "ebx", "c": "ecx", "d": "edx"}
    args = re.sub(r"\b(\d)f@", r"\1@", n.args)
    args = re.sub(r"%([abcd])l\b", lambda m: "%" + regs[m.group(1)], args)
    args = re.sub(r"%(si|di|bp)l\b", r"%e\1", args)
    args = re.sub(r"%(r\d+)b\b", r"%\1d", args)
    return n.provider, n.name, args


@test
def same_operands():
    """Notes equal those of sys/sdt.h that was told to use registers"""
    need_sdt()
    src = source("same.c", SAME)
    for flags in (["-O1"], ["-O2"], ["-O3", "-fPIC"], ["-O2", "-fno-omit-frame-pointer"]):
        ours = cc("gcc", flags + ["-c"], [src], "ours.o")
        # the operand constraint that probe.h uses, for the same choice of registers
        theirs = cc("gcc", flags + ["-c", "-DSDT", "-DSTAP_SDT_ARG_CONSTRAINT=nl"], [src], "sdt.o")
        a, b = [plain(n) for n in notes(ours)], [plain(n) for n in notes(theirs)]
        check(len(a) == 9, f"{a}")
        check(a == b, f"{flags}:\n{a}\n{b}")
        sections = [re.findall(r"\] (\.note\.stapsdt|\.stapsdt\.base) +(\w+).* (\w*)\s+\d+ +\d+ +\d+$",
                               run("readelf", "-SW", o), re.M) for o in (ours, theirs)]
        check(sections[0] == sections[1] and len(sections[0]) >= 2, f"{sections}")


@test
def same_sizes():
    """Names, sizes and signs equal those of sys/sdt.h as it is, with gcc and clang"""
    need_sdt()
    src = source("sizes.c", SAME)
    for compiler in ("gcc", "clang", "g++", "clang++"):
        lang = ["-x", "c++"] if compiler.endswith("++") else ["-x", "c"]
        for level in ("-O0", "-O2"):
            pair = []
            for extra in ([], ["-DSDT"]):
                out = notes(cc(compiler, [level, "-c", *extra, *lang], [src], "s.o"))
                pair.append([(n.provider, n.name, [a.split("@")[0] for a in plain(n)[2].split(" ")])
                             for n in out])
            check(len(pair[0]) == 9, f"{pair[0]}")
            check(pair[0] == pair[1], f"{compiler} {level}:\n{pair[0]}\n{pair[1]}")


@test
def after_sdt():
    """Included before or after sys/sdt.h without a warning"""
    need_sdt()
    for first, second in (("<sys/sdt.h>", '"qbpf/probe.h"'), ('"qbpf/probe.h"', "<sys/sdt.h>")):
        src = source("both.c", f"#include {first}\n#include {second}\n"
                     "int main(int c, char **v) { (void)v; QBPF_SPAN(a, b); DTRACE_PROBE1(a, x, c);"
                     " return 0; }\n")
        out = os.path.join(TMP, "both")
        run("gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-I" + os.path.join(ROOT, "include"), src,
            "-o", out)
        check([n.name for n in notes(out)] == ["b__begin", "x", "b__end"], f"{notes(out)}")


# --- linking -----------------------------------------------------------------------------------

INLINE = """
#include "qbpf/probe.h"
inline long shared(long x)
{
	QBPF_SPAN(dup, span);
	QBPF_FUNC();
	QBPF_VALUE(dup, value, x * 0.5);
	return x + 1;
}
template <typename T> struct box { static long put(T x) { DTRACE_PROBE1(dup, put, x); return 1; } };
long (*address1)(long) = shared;
"""


@test
def comdat():
    """An inline function in two files leaves the notes of the copy that stays"""
    for compiler in ("g++", "clang++"):
        one = source("one.cc", INLINE + "long other(); int main() { return address1(1) + "
                     "box<int>::put(1) + other() > 100; }\n")
        two = source("two.cc", INLINE.replace("address1", "address2") +
                     "long other() { return address2(1) + box<int>::put(2); }\n")
        path = cc(compiler, ["-O0"], [one, two], "comdat")
        names = sorted(n.name for n in notes(path))
        begin = [n for n in names if n.startswith("L")][:1]
        check(len(begin) == 1 and names == sorted(
            ["put", "span__begin", "span__end", "value__value", begin[0],
             begin[0].replace("begin", "end")]), f"{compiler}: {names}")
        check(records(path) == 3, f"{compiler}: {records(path)} records")
        check_sites(path, False)
        run(path)


GC = """
#include "qbpf/probe.h"
void unused(int x) { QBPF_SPAN(gc, gone); DTRACE_PROBE1(gc, gone, x); }
__attribute__((noinline)) int used(int x)
{
	QBPF_SPAN(gc, used);
	QBPF_FUNC();
	QBPF_VALUE(gc, kept, x * 1.5);
	if (QBPF_ENABLED(gc, kept__value))
		DTRACE_PROBE1(gc, more, x);
	return x;
}
int main(int c, char **v) { (void)v; return used(c) - c; }
"""


@test
def gc_sections():
    """--gc-sections: a function stays with its notes, or goes"""
    src = source("gc.c", GC)
    for compiler in ("gcc", "clang"):
        for linker in ("bfd", "lld"):
            if not shutil.which("ld." + linker):
                continue
            for pie in ("-pie", "-no-pie"):
                path = cc(compiler, ["-O2", "-ffunction-sections", "-fdata-sections", "-fPIE", pie,
                                     "-Wl,--gc-sections", "-fuse-ld=" + linker], [src], "gc")
                what = f"{compiler} {linker} {pie}"
                run(path)
                found = notes(path)
                kept = {n.name for n in found if n.name in
                        ("used__begin", "used__end", "kept__value", "more")}
                check(len(kept) == 4, f"{what}: {found}")
                check(next(n for n in found if n.name == "kept__value").sema, f"{what}: semaphore")
                names = run("strings", "-a", path)
                check(re.search(r"gc\.c$", names, re.M), f"{what}: the file's name")
                symbols = run("nm", path)
                for n in found:
                    if n.name.startswith("gone") and " T unused" not in symbols:
                        # what lld leaves of a function that went: an offset from 0, in no code
                        check(n.addr < 0x100, f"{what}: {n}")
                    else:
                        code = code_at(path, n.addr, 0, 5)
                        check(code == NOP5, f"{what}: {n}: {code.hex()}")


@test
def links():
    """Shared, static, link-time optimised: no run-time relocation, no executable stack"""
    c = os.path.join(WORK, "w_marker.c")
    cxx = os.path.join(WORK, "w_marker_cxx.cc")
    lld = ["-fuse-ld=lld"] if shutil.which("ld.lld") else []
    cases = [("gcc", ["-O2", "-fPIC", "-shared", "-Wl,-z,text", "-Wl,--fatal-warnings"], c),
             ("clang", ["-O2", "-fPIC", "-shared", "-Wl,-z,text", "-Wl,--fatal-warnings"], c),
             ("g++", ["-O2", "-fPIC", "-shared", "-Wl,-z,text", "-Wl,--fatal-warnings"], cxx),
             ("gcc", ["-O2", "-static"], c), ("gcc", ["-O2", "-static-pie"], c),
             ("gcc", ["-O3", "-flto", "-Wl,-z,text"], c), ("g++", ["-O3", "-flto"], cxx)]
    if lld:
        cases += [("clang", ["-O2", "-flto"] + lld, c), ("clang", ["-O2", "-flto=thin"] + lld, c),
                  ("clang++", ["-O2", "-flto"] + lld, cxx)]
    for compiler, flags, src in cases:
        path = cc(compiler, flags, [src], "linked")
        what = f"{compiler} {' '.join(flags)} {os.path.basename(src)}"
        check(len(notes(path)) >= 15, what)
        check_sites(path, compiler == "clang")
        check("TEXTREL" not in run("readelf", "-dW", path), what)
        check(not re.search(r"GNU_STACK.*E", run("readelf", "-lW", path)), f"{what}: stack")
        before = [(n.provider, n.name, n.addr, n.args) for n in notes(path)]
        n = records(path)
        run("strip", path)
        check([(n.provider, n.name, n.addr, n.args) for n in notes(path)] == before, f"{what}: strip")
        check(records(path) == n > 0, f"{what}: records after strip")


@test
def relocatable_lto():
    """The semaphores of two files are one, also with link-time optimisation"""
    a = source("sa.c", '#include "qbpf/probe.h"\nint b(void);\nint main(void) { DTRACE_PROBE(s, m);'
               " return QBPF_ENABLED(s, m) + b(); }\n")
    b = source("sb.c", '#include "qbpf/probe.h"\nint b(void) { DTRACE_PROBE(s, m); DTRACE_PROBE(s, n);'
               " return QBPF_ENABLED(s, m); }\nQBPF_SEMAPHORE(s, m);\nQBPF_SEMAPHORE(s, unused);\n")
    for compiler, flags in (("gcc", []), ("gcc", ["-flto"]), ("clang", []),
                            ("clang", ["-flto", "-fuse-ld=lld"]), ("gcc", ["-static"]),
                            ("gcc", ["-flto", "-fPIC", "-shared"])):
        if "-fuse-ld=lld" in flags and not shutil.which("ld.lld"):
            continue
        path = cc(compiler, ["-O2", *flags], [a, b], "sema")
        found = notes(path)
        m = {n.sema for n in found if n.name == "m"}
        check(len(m) == 1 and m != {0}, f"{compiler} {flags}: {found}")
        check(all(n.sema == 0 for n in found if n.name == "n"), f"{compiler} {flags}: {found}")
        if "-shared" not in flags:
            run(path)


@test
def semaphores_as_sdt():
    """_SDT_HAS_SEMAPHORES: the program's own counters, as with sys/sdt.h"""
    src = source("hs.c", "#define _SDT_HAS_SEMAPHORES 1\n"
                 "unsigned short p_m_semaphore __attribute__((section(\".probes\"), "
                 "visibility(\"hidden\")));\n"
                 '#include "qbpf/probe.h"\n'
                 "int main(void) { if (QBPF_ENABLED(p, m)) DTRACE_PROBE(p, m); QBPF_SPAN(p, s);"
                 " return 0; }\n")
    for compiler in ("gcc", "clang"):
        path = cc(compiler, ["-O2"], [src], "hs")
        symbol = int(re.search(r"^(\w+) . p_m_semaphore$", run("nm", path), re.M).group(1), 16)
        check([n.sema for n in notes(path) if n.name == "m"] == [symbol], f"{notes(path)}")
        check([n.sema for n in notes(path) if n.name != "m"] == [0, 0], f"{notes(path)}")


@test
def aarch64():
    """aarch64: compiles to a plain nop and a note"""
    if not shutil.which("clang"):
        raise Skip("clang is not installed")
    src = source("arm.c", GC + "void more(double d, char c, int *p) {"
                 " DTRACE_PROBE5(arm, args, d, c, p[1], 7, \"x\"); }\n")
    for level in ("-O0", "-O2"):
        path = os.path.join(TMP, "arm.o")
        done = subprocess.run(["clang", "--target=aarch64-linux-gnu", level, "-Wall", "-c", "-fPIC",
                               "-ffreestanding", "-I" + os.path.join(ROOT, "include"), src, "-o",
                               path], capture_output=True, text=True)
        if "unable to create target" in done.stderr:
            raise Skip("this clang has no aarch64")
        check(done.returncode == 0, done.stderr[-1500:])
        found = notes(path)
        check({"used__begin", "used__end", "kept__value", "args"} <= {n.name for n in found},
              f"{found}")
        args = next(n.args for n in found if n.name == "args")
        check([re.match(r"(-?\d)@", a).group(1) for a in re.findall(r"-?\d@[^@]*(?= |$)", args)] ==
              ["8", "1", "-4", "-4", "8"], args)


def main():
    failed = 0
    print(f"1..{len(results)}")
    for i, fn in enumerate(results, 1):
        name = fn.__doc__.splitlines()[0]
        try:
            fn()
            print(f"ok {i} - {name}", flush=True)
        except Skip as e:
            print(f"ok {i} - {name} # SKIP {e}", flush=True)
        except Exception as e:  # noqa: BLE001: every way to fail is a failed case
            failed = 1
            print(f"not ok {i} - {name}", flush=True)
            for line in f"{type(e).__name__}: {e}".splitlines():
                print(f"# {line}")
    shutil.rmtree(TMP, ignore_errors=True)
    return failed


if __name__ == "__main__":
    if os.uname().machine != "x86_64":
        print("1..0 # SKIP the sites are checked on x86-64")
        sys.exit(77)
    sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
"""Discovery against readelf on small programs in many link layouts.

Builds one program with each linker and layout, stripped in several ways and with its symbols
kept elsewhere, and compares elf_dump's sites, semaphores, operands and functions with what
readelf says of the same file.
"""
# timeout: 1800

import os
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.path.abspath(os.environ.get("BUILD", os.path.join(ROOT, "build")))
WORK = tempfile.mkdtemp(prefix="qbpf-elf-")
DUMP = os.path.join(WORK, "elf_dump")

PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* <sys/sdt.h>'s note, by hand, so that operands and semaphores are chosen here. */
#define NOTE(provider, name, sema, args)                                                           \
	__asm__ volatile("990: nop\n"                                                              \
		".pushsection .note.stapsdt,\"?\",\"note\"\n\t.balign 4\n"                         \
		"\t.4byte 992f-991f,994f-993f,3\n991: .asciz \"stapsdt\"\n992: .balign 4\n"        \
		"993: .8byte 990b\n\t.8byte _.stapsdt.base\n\t.8byte " sema "\n"                   \
		"\t.asciz \"" provider "\"\n\t.asciz \"" name "\"\n\t.asciz \"" args "\"\n"        \
		"994: .balign 4\n\t.popsection\n"                                                  \
		".ifndef _.stapsdt.base\n"                                                         \
		"\t.pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"          \
		"\t.weak _.stapsdt.base\n\t.hidden _.stapsdt.base\n_.stapsdt.base: .space 1\n"     \
		"\t.size _.stapsdt.base,1\n\t.popsection\n.endif\n")
unsigned short p_one_semaphore __attribute__((section(".probes"), visibility("hidden")));
unsigned short p_two_semaphore __attribute__((section(".probes"), visibility("hidden")));
int gy = 42;
static double gpx[4] __attribute__((used)) = {1, 2, 3, 4};
static __thread int tv __attribute__((used));
/* One marker at several sites: inlined three times. */
static inline __attribute__((always_inline)) void fire(int n)
{
	(void)n;
	NOTE("p", "many", "p_one_semaphore", "-4@%edi 8@(%rsp)");
}
__attribute__((noinline)) int one(int n)
{
	fire(n);
	NOTE("p", "one", "p_one_semaphore", "-4@gy(%rip) 8f@16+gpx(%rip) 4@nosuch(%rip)");
	return n + gy + (int)gpx[2];
}
__attribute__((noinline, section(".text.hot"))) int hot(int n)
{
	fire(n + 1);
	NOTE("p", "two", "p_two_semaphore", "8@$5 4@%ah 8@%xmm0 4@tv@tpoff(%rax) 4@tv(%rip)");
	return n * 2;
}
static __attribute__((noinline, used)) int local_function(int n)
{
	fire(n);
	NOTE("q", "plain", "0", "");
	tv += n;
	return tv;
}
__asm__(".pushsection .text\n.globl no_size\n.type no_size,@function\nno_size: nop\n nop\n ret\n"
	".globl no_type\nno_type: nop\n ret\n.popsection\n");
extern int no_size(void), no_type(void);
/* Names of other languages, as plain symbols. */
__attribute__((used)) int rust_legacy(void)
	__asm__("_ZN4feed6parser5parse17h0123456789abcdefE");
int rust_legacy(void) { return 1; }
__attribute__((used)) int rust_v0(void) __asm__("_RNvNtCs1234_4feed6parser5parse");
int rust_v0(void) { return 2; }
__attribute__((used)) int cxx(int) __asm__("_ZN3Foo3funEi");
int cxx(int n) { return n; }
__attribute__((used)) int alias_of_one(int) __attribute__((alias("one")));
__asm__(".symver alias_of_one, versioned@V1");
#ifndef NO_MAIN
static int (*resolve(void))(int) { return one; }
int chosen(int) __attribute__((ifunc("resolve")));
int main(int argc, char **argv)
{
	(void)argv;
	no_size();
	no_type();
	printf("%d %d %d %d\n", one(argc), hot(argc), local_function(argc), chosen(argc));
	return (int)strlen(getenv("PATH") ? "" : "x");
}
#endif
"""

number = 0
failed = 0


def report(ok, name, why=""):
    global number, failed
    number += 1
    failed += not ok
    print(("ok" if ok else "not ok"), number, "-", name)
    if not ok:
        for line in str(why).splitlines()[:30]:
            print("#  ", line)
    sys.stdout.flush()


def skip(name, why):
    global number
    number += 1
    print("ok", number, "-", name, "# SKIP", why)


def run(*cmd, **kw):
    return subprocess.run(cmd, check=True, capture_output=True, text=True, **kw).stdout


def path(name):
    return os.path.join(WORK, name)


def segments(f):
    """PT_LOAD as (vaddr, offset, filesz, executable)."""
    out = []
    for line in run("readelf", "-lW", f).splitlines():
        m = re.match(r"\s+LOAD\s+(\S+)\s+(\S+)\s+\S+\s+(\S+)\s+\S+\s+(.{3})", line)
        if m:
            off, vaddr, size = (int(x, 16) for x in m.group(1, 2, 3))
            out.append((vaddr, off, size, "E" in m.group(4)))
    return out


def to_off(segs, addr):
    for vaddr, off, size, _ in segs:
        if vaddr <= addr < vaddr + size:
            return off + addr - vaddr
    return None


def readelf_markers(f, segs):
    text = run("readelf", "-nW", f)
    out = []
    for m in re.finditer(
        r"Provider: (.*)\n\s+Name: (.*)\n\s+Location: (\S+), Base: \S+, Semaphore: (\S+)\n"
        r"\s+Arguments: ?(.*)",
        text,
    ):
        addr, sema = int(m.group(3), 16), int(m.group(4), 16)
        out.append(
            (
                f"{m.group(1)}:{m.group(2)}",
                addr,
                to_off(segs, addr),
                to_off(segs, sema) if sema else 0,
                m.group(5).strip(),
            )
        )
    return out


def readelf_symbols(f, kind):
    """Rows of one symbol table: (addr, size, type, bind, shndx, name without version)."""
    out = []
    table = None
    for line in run("readelf", "-sW", f).splitlines():
        m = re.match(r"Symbol table '(.*)' contains", line)
        if m:
            table = m.group(1)
        m = re.match(r"\s*\d+: ([0-9a-f]+)\s+(\S+) (\S+)\s+(\S+)\s+\S+\s+(\S+) (\S+)", line)
        if m and table == kind:
            name = m.group(6).split("@")[0]
            size = int(m.group(2), 0)
            out.append((int(m.group(1), 16), size, m.group(3), m.group(4), m.group(5), name))
    return out


def readelf_functions(f, segs):
    out = set()
    for kind in (".symtab", ".dynsym"):
        for addr, _, typ, _, shndx, name in readelf_symbols(f, kind):
            code = any(v <= addr < v + s and x for v, _, s, x in segs)
            if typ in ("FUNC", "IFUNC") and shndx != "UND" and code:
                out.add((addr, name))
    return out


class Dump:
    def __init__(self, f, root=None):
        cmd = [DUMP, f] + ([root] if root else [])
        text = subprocess.run(
            cmd, check=True, capture_output=True, encoding="utf-8", errors="replace"
        ).stdout
        self.markers = []
        self.args = []
        self.funcs = []
        for line in text.splitlines():
            if line.startswith("info "):
                self.info = dict(x.split("=") for x in line.split()[1:])
            m = re.match(r"markers n=(\d+) bad=(\d+)", line)
            if m:
                self.bad = int(m.group(2))
            m = re.match(r"marker (.*) addr=(\S+) off=(\S+) sema=(\S+) args=(.*)$", line)
            if m:
                args = m.group(5)
                parsed = re.findall(r" \[((?:unreadable|const|reg|mem) [^\]]*)\]", args)
                raw = re.sub(r" \[(?:unreadable|const|reg|mem) [^\]]*\]", "", args)
                row = [int(x, 0) for x in m.group(2, 3, 4)]
                self.markers.append((m.group(1), *row, raw.strip()))
                self.args.append(parsed)
            m = re.match(r"functions n=\d+ source=(.*)", line)
            if m:
                self.source = m.group(1)
            m = re.match(r"func (\S+) (\S+) (\d+) (\S+) (\d+) (.*)\t(.*)", line)
            if m:
                self.funcs.append(
                    {
                        "addr": int(m.group(1), 0),
                        "off": int(m.group(2), 0),
                        "size": int(m.group(3)),
                        "flags": int(m.group(4), 16),
                        "alias": int(m.group(5)),
                        "name": m.group(6),
                        "demangled": m.group(7),
                    }
                )

    def func(self, name):
        return next(f for f in self.funcs if f["name"] == name)

    def defined(self):
        return [f for f in self.funcs if not f["flags"] & 2]


def compile_dump():
    cc = os.environ.get("CC", "cc")
    lib = os.path.join(BUILD, "san", "libelf.a")
    run(
        *(cc, "-g", "-O1", "-fsanitize=address,undefined", "-D_GNU_SOURCE"),
        *("-I" + os.path.join(ROOT, "include"), "-I" + os.path.join(ROOT, "user")),
        *(os.path.join(ROOT, "tests", "unit", "elf_dump.c"), lib),
        *("-lelf", "-ldw", "-llzma", "-lcapstone", "-liberty", "-o", DUMP),
    )


NAMES = ["p:many", "p:many", "p:many", "p:one", "p:two", "q:plain"]


def check_arg_offsets(f, d):
    """gy(%rip) and 16+gpx(%rip) are site-relative; the rest of those operands is unreadable."""
    symbols = {r[5]: r[0] for r in readelf_symbols(f, ".symtab")}
    for m, args in zip(d.markers, d.args):
        offs = [int(re.search(r"off=(-?\d+)", a).group(1)) for a in args]
        if m[0] == "p:one":
            assert m[1] + offs[0] == symbols["gy"], (m, args)
            assert m[1] + offs[1] == symbols["gpx"] + 16, (m, args)
            assert "rip=1" in args[0] and "float=1" in args[1]
            assert args[2].startswith("unreadable"), args
        if m[0] == "p:two":
            kinds = [a.split()[0] for a in args]
            assert kinds == ["const"] + ["unreadable"] * 4, args


def check_file(name, f, full=None, stripped=False):
    """f against readelf of itself and, for names in files without symbols, of `full`."""
    segs = segments(f)
    d = Dump(f)
    want = readelf_markers(f, segs)
    assert sorted(m[0] for m in want) == NAMES, want
    assert d.markers == want, f"{d.markers}\n{want}"
    assert d.bad == 0, d.bad
    for m in d.markers:
        assert (m[3] != 0) == (m[0] != "q:plain"), m
    if not stripped:
        check_arg_offsets(f, d)
    got = {(x["addr"], x["name"]) for x in d.defined() if x["name"] != "no_type"}
    funcs = readelf_functions(full or f, segs)
    if not stripped:
        assert got >= funcs, f"missing {sorted(funcs - got)[:9]}"
        extra = {x for x in got - funcs if x[1].startswith(("p_", "gy", "gpx", "resolve"))}
        assert not extra, extra
        check_functions(d)
    for x in d.defined():
        assert x["off"] == to_off(segs, x["addr"]), x
    addrs = [x["addr"] for x in d.defined()]
    assert addrs == sorted(addrs)
    return d


def check_functions(d):
    one = d.func("one")
    assert d.funcs[d.func("alias_of_one")["alias"]]["name"] in ("one", "alias_of_one")
    assert d.func("alias_of_one")["addr"] == one["addr"]
    assert d.func("no_size")["flags"] & 4 and d.func("no_size")["size"] >= 3, d.func("no_size")
    assert d.func("no_type")["size"] >= 2
    assert d.func("local_function")["flags"] & 16
    assert d.func("hot")["size"] > 0
    if any(x["name"] == "chosen" for x in d.defined()):
        assert d.func("chosen")["flags"] & 1, d.func("chosen")
    rust = d.func("_ZN4feed6parser5parse17h0123456789abcdefE")
    assert rust["demangled"] == "feed::parser::parse", rust
    assert d.func("_RNvNtCs1234_4feed6parser5parse")["demangled"] == "feed::parser::parse"
    assert d.func("_ZN3Foo3funEi")["demangled"] == "Foo::fun(int)"


def case(name, fn, *args, **kw):
    try:
        result = fn(*args, **kw)
        report(True, name)
        return result
    except subprocess.CalledProcessError as e:
        report(False, name, f"{e}\n{e.stderr}")
    except (AssertionError, StopIteration, KeyError) as e:
        report(False, name, f"{type(e).__name__}: {e}")
    return None


def layouts():
    gcc, clang = ["gcc", "-O2", "-g0"], ["clang", "-O2", "-g0"]
    yield "pie", gcc
    yield "clang", clang
    yield "O0", ["gcc", "-O0"]
    yield "no-pie", gcc + ["-no-pie", "-fno-pie"]
    yield "Ttext-segment", gcc + ["-no-pie", "-fno-pie", "-Wl,-Ttext-segment=0x10000000"]
    yield "separate-code", gcc + ["-Wl,-z,separate-code"]
    yield "noseparate-code", gcc + ["-Wl,-z,noseparate-code"]
    yield "noseparate-code-no-pie", gcc + ["-no-pie", "-Wl,-z,noseparate-code"]
    yield "max-page-size", gcc + ["-Wl,-z,max-page-size=2097152"]
    yield "static", gcc + ["-static"]
    yield "static-pie", gcc + ["-static-pie"]
    kept = ["_ZN4feed6parser5parse17h0123456789abcdefE", "_RNvNtCs1234_4feed6parser5parse"]
    kept = ["-Wl,-u," + s for s in kept + ["_ZN3Foo3funEi"]]
    yield "gc-sections", gcc + ["-ffunction-sections", "-Wl,--gc-sections"] + kept
    yield "lto", gcc + ["-flto"]
    yield "no-build-id", gcc + ["-Wl,--build-id=none"]
    yield "sha-hash-only", gcc + ["-Wl,--hash-style=sysv"]
    for linker in ("bfd", "gold", "lld"):
        yield linker, gcc + ["-fuse-ld=" + linker]
        yield linker + "-no-pie", gcc + ["-fuse-ld=" + linker, "-no-pie"]
        yield linker + "-clang", clang + ["-fuse-ld=" + linker]
    yield "lld-separate-loadable", clang + ["-fuse-ld=lld", "-Wl,-z,separate-loadable-segments"]
    yield "lld-rosegment", clang + ["-fuse-ld=lld", "-Wl,--no-rosegment"]
    yield "shared", gcc + ["-shared", "-fPIC", "-DNO_MAIN"]
    yield "shared-lld", clang + ["-shared", "-fPIC", "-DNO_MAIN", "-fuse-ld=lld"]


def build(name, cmd, source):
    out = path(name)
    extra = [] if "-flto" not in cmd else ["-fno-toplevel-reorder"]
    # The version of .symver needs a script in shared objects only.
    src = source
    if "-shared" not in cmd:
        src = path("main.c")
    proc = subprocess.run(cmd + extra + [src, "-o", out], capture_output=True, text=True)
    return out, proc


def write_sources():
    with open(path("main.c"), "w") as f:
        f.write(PROGRAM.replace('__asm__(".symver alias_of_one, versioned@V1");\n', ""))
    with open(path("shared.c"), "w") as f:
        f.write(PROGRAM)
    with open(path("shared.map"), "w") as f:
        f.write("V1 { global: *; };\n")


def check_layouts():
    built = {}
    for name, cmd in layouts():
        linker = next((x.split("=")[1] for x in cmd if x.startswith("-fuse-ld=")), None)
        if linker and not shutil.which("ld." + linker):
            skip("layout " + name, f"no ld.{linker}")
            continue
        if not shutil.which(cmd[0]):
            skip("layout " + name, "no " + cmd[0])
            continue
        if "-shared" in cmd:
            cmd = cmd + ["-Wl,--version-script=" + path("shared.map")]
        out, proc = build(name, cmd, path("shared.c"))
        if proc.returncode:
            report(False, "layout " + name, proc.stderr)
            continue
        d = case("layout " + name, check_file, name, out)
        if d:
            built[name] = d
    return built


def check_stripped():
    full = path("pie")

    def strip_all():
        shutil.copy(full, path("stripped"))
        run("strip", "-s", path("stripped"))
        d = check_file("stripped", path("stripped"), stripped=True)
        assert d.info["stripped"] == "1" and d.source in (".dynsym", "no symbols"), d.source
        # gy is no longer known: unreadable, and the others are not touched.
        for m, args in zip(d.markers, d.args):
            if m[0] == "p:one":
                assert all(a.startswith("unreadable") for a in args), args

    case("strip -s", strip_all)

    def strip_g():
        shutil.copy(full, path("strip-g"))
        run("strip", "-g", path("strip-g"))
        check_file("strip-g", path("strip-g"))

    case("strip -g", strip_g)

    def debuglink(where, matching):
        name = f"dl-{where.replace('/', '_')}-{matching}"
        d = path(name)
        os.makedirs(os.path.join(d, where) if where else d, exist_ok=True)
        f, dbg = os.path.join(d, "prog"), os.path.join(d, where, "prog.dbg")
        run("objcopy", "--only-keep-debug", full, dbg)
        run("objcopy", "--strip-all", "--add-gnu-debuglink=" + dbg, full, f)
        if not matching:
            run("objcopy", "--only-keep-debug", path("no-pie"), dbg)
        got = Dump(f)
        if matching:
            assert got.source == "debug file " + dbg, got.source
            assert {(x["addr"], x["name"]) for x in got.defined()} >= readelf_functions(
                full, segments(full)
            )
            assert all(x["off"] for x in got.defined())
        else:
            assert not got.source.startswith("debug file"), got.source

    for where in ("", ".debug"):
        case(f"debug link in '{where}'", debuglink, where, True)
        case(f"debug link in '{where}' to another build", debuglink, where, False)

    def debuglink_crc(matching):
        """Without build IDs the CRC decides."""
        d = path(f"crc-{matching}")
        os.makedirs(d)
        f, dbg = os.path.join(d, "prog"), os.path.join(d, "prog.dbg")
        run("objcopy", "--only-keep-debug", path("no-build-id"), dbg)
        run("objcopy", "--strip-all", "--add-gnu-debuglink=" + dbg, path("no-build-id"), f)
        if not matching:
            with open(dbg, "r+b") as out:
                out.seek(-1, 2)
                last = out.read(1)
                out.seek(-1, 2)
                out.write(bytes([last[0] ^ 1]))
        got = Dump(f)
        assert got.source.startswith("debug file") == matching, got.source

    case("debug link by CRC", debuglink_crc, True)
    case("debug link with a wrong CRC", debuglink_crc, False)

    def build_id(matching):
        root = path(f"root-{matching}")
        f = path(f"by-id-{matching}")
        d = Dump(full)
        ident = d.info["id"]
        assert len(ident) == 40, ident
        folder = os.path.join(root, "usr/lib/debug/.build-id", ident[:2])
        os.makedirs(folder)
        dbg = os.path.join(folder, ident[2:] + ".debug")
        # An absolute link must be followed inside the root.
        os.makedirs(root + "/store")
        src = full if matching else path("no-pie")
        run("objcopy", "--only-keep-debug", src, root + "/store/x.debug")
        os.symlink("/store/x.debug", dbg)
        run("objcopy", "--strip-all", full, f)
        got = Dump(f, root)
        assert got.source.startswith("debug file") == matching, got.source
        if matching:
            assert got.func("local_function")["flags"] & 16

    case("debug file by build ID under a root", build_id, True)
    case("debug file with another build ID", build_id, False)

    def fifo():
        root = path("root-fifo")
        ident = Dump(full).info["id"]
        folder = os.path.join(root, "usr/lib/debug/.build-id", ident[:2])
        os.makedirs(folder)
        os.mkfifo(os.path.join(folder, ident[2:] + ".debug"))
        got = Dump(path("by-id-True"), root)
        assert not got.source.startswith("debug file"), got.source

    case("a FIFO in place of a debug file", fifo)

    def minidebug():
        f, mini = path("mini"), path("mini.debug")
        run("objcopy", "--only-keep-debug", full, mini)
        keep = [x[1] for x in readelf_functions(full, segments(full))]
        dyn = {r[5] for r in readelf_symbols(full, ".dynsym")}
        with open(path("keep"), "w") as out:
            out.write("\n".join(k for k in keep if k not in dyn) + "\n")
        run("objcopy", "-S", "--remove-section=.gdb_index", "--keep-symbols=" + path("keep"), mini)
        run("xz", "-k", "-f", mini)
        run("objcopy", "--strip-all", full, f)
        run("objcopy", "--add-section", f".gnu_debugdata={mini}.xz", f)
        got = Dump(f)
        assert got.source == ".dynsym and .gnu_debugdata", got.source
        assert {(x["addr"], x["name"]) for x in got.defined()} >= readelf_functions(
            full, segments(full)
        )

    if shutil.which("xz"):
        case(".gnu_debugdata", minidebug)
    else:
        skip(".gnu_debugdata", "no xz")

    def bomb():
        """512 MiB of zeroes in 80 KB: refused, and the file still usable."""
        f = path("bomb")
        with open(path("bomb.raw"), "wb") as out:
            out.truncate(512 << 20)
        run("xz", "-k", "-f", "-1", path("bomb.raw"))
        os.unlink(path("bomb.raw"))
        run("objcopy", "--strip-all", full, f)
        run("objcopy", "--add-section", f".gnu_debugdata={path('bomb.raw')}.xz", f)
        got = Dump(f)
        assert "gnu_debugdata" not in got.source, got.source
        assert sorted(m[0] for m in got.markers) == NAMES

    if shutil.which("xz"):
        case("a decompression bomb in .gnu_debugdata", bomb)
    else:
        skip("a decompression bomb in .gnu_debugdata", "no xz")


def check_prelink():
    """prelink moves a file and leaves the addresses in the notes: _.stapsdt.base tells."""

    def moved():
        plain = Dump(path("pie"))
        shutil.copy(path("pie"), path("prelinked"))
        text = run("readelf", "-SW", path("pie"))
        m = re.search(r"\.note\.stapsdt\s+NOTE\s+\S+\s+(\S+)\s+(\S+)", text)
        off, size = int(m.group(1), 16), int(m.group(2), 16)
        with open(path("prelinked"), "r+b") as f:
            f.seek(off)
            data = bytearray(f.read(size))
            at = 0
            while at < size:
                namesz, descsz = (
                    int.from_bytes(data[at + i : at + i + 4], "little") for i in (0, 4)
                )
                desc = at + 12 + (namesz + 3 & ~3)
                for i in range(3):
                    a = int.from_bytes(data[desc + 8 * i : desc + 8 * i + 8], "little")
                    if a:
                        data[desc + 8 * i : desc + 8 * i + 8] = (a - 0x800).to_bytes(8, "little")
                at = desc + (descsz + 3 & ~3)
            f.seek(off)
            f.write(data)
        got = Dump(path("prelinked"))
        assert got.markers == plain.markers, f"{got.markers}\n{plain.markers}"

    case("prelink's move is undone by .stapsdt.base", moved)


def check_imports():
    def imported():
        d = Dump(path("pie"))
        names = {x["name"]: x for x in d.funcs if x["flags"] & 2}
        assert "strlen" in names or "getenv" in names, names
        assert names["getenv"]["addr"] == 0 and names["getenv"]["off"] == 0
        assert not any("@" in x["name"] for x in d.funcs)
        assert not any(x["name"].startswith("_ITM_") for x in d.funcs)
        last = [bool(x["flags"] & 2) for x in d.funcs]
        assert last == sorted(last)

    case("imported functions", imported)


def check_cxx():
    if not shutil.which("g++"):
        skip("C++ habits", "no g++")
        return
    src = path("cxx.cc")
    with open(src, "w") as f:
        f.write(
            "#include <stdexcept>\n#include <string>\n"
            "namespace { struct Inner { int go(std::string const &s) const; }; }\n"
            "int Inner::go(std::string const &s) const { if (s.empty()) throw std::runtime_error"
            '("x"); return (int)s.size(); }\n'
            "int main(int argc, char **) { try { return Inner().go(std::string(argc - 1, 'x')); }"
            " catch (std::exception &) { return 3; } }\n"
        )
    for name, flags in (
        ("dynamic", []),
        ("static", ["-static"]),
        ("static libstdc++", ["-static-libstdc++", "-static-libgcc"]),
    ):
        for strip in ([], ["-s"]):

            def habits():
                out = path("cxx-" + name.replace(" ", "_") + "".join(strip))
                run("g++", "-O0", *flags, *strip, src, "-o", out)
                d = Dump(out)
                assert d.info["throw"] == "1" and d.info["except"] == "1", d.info
                assert d.info["switch"] == "0" and d.info["go"] == "0", d.info
                if not strip:
                    assert any(
                        x["demangled"].startswith("(anonymous namespace)::Inner::go(")
                        for x in d.funcs
                    )

            case(f"C++ throws: {name}{' stripped' if strip else ''}", habits)


def check_habits():
    src = path("habit.c")
    with open(src, "w") as f:
        f.write(
            "#include <ucontext.h>\n#include <pthread.h>\nstatic ucontext_t a, b;\n"
            "int main(int argc, char **argv) { (void)argv; if (argc > 1) "
            "{\n#ifdef EXIT\npthread_exit(0);\n#endif\n#ifdef SWITCH\nswapcontext(&a, &b);\n#endif\n#ifdef CANCEL\n"
            "pthread_cancel(pthread_self());\n#endif\n } return 0; }\n"
        )
    for flags, want in (
        ([], ("0", "0")),
        (["-DSWITCH"], ("1", "0")),
        (["-DCANCEL"], ("0", "1")),
        (["-DSWITCH", "-static"], ("1", "0")),
        (["-DSWITCH", "-s"], ("1", "0")),
        (["-DEXIT"], ("0", "1")),
        (["-DCANCEL", "-static"], ("0", "1")),
        (["-DCANCEL", "-static", "-s"], ("0", "1")),
        (["-static"], ("0", "0")),
        (["-static", "-s"], ("0", "1")),  # not to be known, so not excluded
    ):

        def habits():
            out = path("habit" + "".join(flags))
            run("gcc", "-O0", *flags, src, "-o", out)
            info = Dump(out).info
            assert info["switch"] == want[0], info
            assert info["cancel"] == want[1], info

        case(f"habits {' '.join(flags) or 'none'}", habits)


def check_rust():
    rustc = shutil.which("rustc") or os.path.expanduser("~/.cargo/bin/rustc")
    if not os.path.exists(rustc):
        skip("rustc", "not installed")
        return

    def rust(version):
        src = path("r.rs")
        with open(src, "w") as f:
            f.write(
                "mod feed { #[inline(never)] pub fn parse<T: std::fmt::Debug>(x: T) -> usize "
                '{ format!("{:?}", x).len() } }\n'
                "fn main() { std::process::exit(feed::parse(std::env::args().count()) as i32) }\n"
            )
        out = path("rust-" + version)
        run(rustc, "-O", *(["-Csymbol-mangling-version=v0"] if version == "v0" else []), src, "-o", out)
        d = Dump(out)
        assert d.info["rust"] == "1", d.info
        names = [x["demangled"] for x in d.funcs if "feed" in x["name"]]
        assert any(re.fullmatch(r"r::feed::parse(::<usize>)?", n) for n in names), names

    for version in ("legacy", "v0"):
        case(f"rustc {version} names", rust, version)


def check_probe_h():
    """QBPF_FUNC() under its own name, also where two files have a function of one name."""
    for cc in ("gcc", "clang", "g++", "clang++"):
        if not shutil.which(cc):
            skip(f"QBPF_FUNC with {cc}", "not installed")
            continue

        def func():
            ext = "cc" if "++" in cc else "c"
            for n in "ab":
                with open(path(f"f{n}.{ext}"), "w") as f:
                    f.write(
                        "#include <qbpf/probe.h>\n"
                        + "\n" * (n == "b")
                        + "static __attribute__((noinline)) int same(int x)"
                        "{ QBPF_FUNC(); return x + 1; }\n"
                        f"int only_{n}(int x); int only_{n}(int x) "
                        "{ QBPF_FUNC(); return same(x); }\n"
                    )
            main = path("fmain." + ext)
            with open(main, "w") as f:
                f.write(
                    "int only_a(int), only_b(int);\n"
                    "int main(int c, char **v) { (void)v; return only_a(c) + only_b(c); }\n"
                )
            out = path("qbpf-func-" + cc)
            inc = "-I" + os.path.join(ROOT, "include")
            run(cc, "-O2", inc, path(f"fa.{ext}"), path(f"fb.{ext}"), main, "-o", out)
            run("strip", "-s", out)
            names = {m[0] for m in Dump(out).markers}
            want = set()
            for end in ("__begin", "__end"):
                want |= {f"qbpf_func:only_{n}{end}" for n in "ab"}
                want |= {
                    f"qbpf_func:same (f{n}.{ext}:{line}){end}" for n, line in (("a", 2), ("b", 3))
                }
            assert names == want, f"{sorted(names)}\n{sorted(want)}"

        case(f"QBPF_FUNC with {cc}", func)


def main():
    for tool in ("gcc", "readelf", "objcopy", "strip"):
        if not shutil.which(tool):
            print("1..0 # SKIP no", tool)
            return 77
    try:
        compile_dump()
        write_sources()
        check_layouts()
        check_stripped()
        check_prelink()
        check_imports()
        check_cxx()
        check_habits()
        check_rust()
        check_probe_h()
    except subprocess.CalledProcessError as e:
        report(False, "setting up", f"{e}\n{e.stderr}")
    finally:
        shutil.rmtree(WORK, ignore_errors=True)
    print(f"1..{number}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

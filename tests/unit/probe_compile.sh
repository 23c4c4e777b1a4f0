#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# qbpf/probe.h compiles clean in every dialect, -DQBPF_DISABLE leaves nothing of it in the object,
# and an idle marker adds its three instructions and no others.
# timeout: 1800
set -u

root=$(cd "$(dirname "$0")/../.." && pwd)
work=$root/tests/workloads
tmp=$(mktemp -d "${TMPDIR:-/tmp}/qbpf-probe-compile.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
n=0
failed=0

# ok NAME STATUS [FILE with what went wrong]
ok() {
	n=$((n + 1))
	if [ "$2" -eq 0 ]; then
		echo "ok $n - $1"
	else
		echo "not ok $n - $1"
		failed=1
		[ -z "${3:-}" ] || head -20 "$3" | sed 's/^/# /'
	fi
}

skip() {
	n=$((n + 1))
	echo "ok $n - $1 # SKIP $2"
}

warn="-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror"

# dialect COMPILER LANGUAGE STD SOURCE
dialect() {
	local name="$1 -std=$3 ${4##*/}" how status=0
	if ! command -v "$1" >/dev/null; then
		skip "$name" "$1 is not installed"
		return
	fi
	: >"$tmp/log"
	for how in "-O2 -c" "-fsyntax-only -DQBPF_DISABLE"; do
		# shellcheck disable=SC2086 # lists of options
		"$1" -x "$2" -std="$3" $warn $how -I"$root/include" "$4" -o "$tmp/o.o" \
			>>"$tmp/log" 2>&1 || status=1
	done
	ok "$name" $status "$tmp/log"
}

for std in c99 c11 c17; do
	dialect gcc c $std "$work/w_marker.c"
	dialect clang c $std "$work/w_marker.c"
done
for std in c++11 c++14 c++17 c++20; do
	for cxx in g++ clang++; do
		dialect $cxx c++ $std "$work/w_marker.c"
		dialect $cxx c++ $std "$work/w_marker_cxx.cc"
	done
done

# The header alone, and first.
printf '#include "qbpf/probe.h"\ntypedef int not_empty;\n' >"$tmp/alone.c"
gcc -std=c99 -pedantic-errors -Wall -Wundef -Werror -nostdinc -I"$root/include" \
	-c "$tmp/alone.c" -o "$tmp/o.o" 2>"$tmp/log"
ok "needs no other header" $? "$tmp/log"

# --- QBPF_DISABLE -------------------------------------------------------------------------------

# What the source would be without markers: every macro is gone before the compiler sees it.
cat >"$tmp/without.h" <<'EOF'
#define QBPF_PROBE_H
#define QBPF_SPAN(provider, name)
#define QBPF_FUNC()
#define QBPF_VALUE(provider, name, x)
#define QBPF_ENABLED(provider, name) 0
#define QBPF_SEMAPHORE(provider, name)
#define DTRACE_PROBE(...)
#define DTRACE_PROBE1(...)
#define DTRACE_PROBE2(...)
#define DTRACE_PROBE3(...)
#define DTRACE_PROBE4(...)
#define DTRACE_PROBE5(...)
#define DTRACE_PROBE6(...)
#define DTRACE_PROBE12(...)
EOF

# identical COMPILER LANGUAGE SOURCE LEVEL...
identical() {
	local cc=$1 language=$2 source=$3 level status=0
	shift 3
	if ! command -v "$cc" >/dev/null; then
		skip "disabled: $cc $(basename "$source")" "$cc is not installed"
		return
	fi
	: >"$tmp/log"
	for level; do
		{
			"$cc" -x "$language" -w "$level" -DQBPF_DISABLE -I"$root/include" -c "$source" \
				-o "$tmp/disabled.o" &&
				"$cc" -x "$language" -w "$level" -include "$tmp/without.h" \
					-I"$root/include" -c "$source" -o "$tmp/without.o" &&
				"$cc" -x "$language" -w "$level" -I"$root/include" -c "$source" -o "$tmp/with.o"
		} >>"$tmp/log" 2>&1 || status=1
		if ! cmp "$tmp/disabled.o" "$tmp/without.o" >>"$tmp/log" 2>&1; then
			diff <(objdump -dr "$tmp/without.o") <(objdump -dr "$tmp/disabled.o") \
				>>"$tmp/log"
			status=1
		fi
		# and the comparison can fail
		if cmp -s "$tmp/with.o" "$tmp/without.o"; then
			echo "markers leave nothing at $level either" >>"$tmp/log"
			status=1
		fi
	done
	ok "disabled: $cc $(basename "$source"): the object of the source without markers" \
		$status "$tmp/log"
}

identical gcc c "$work/w_marker.c" -O0 -O1 -O2 -O3
identical clang c "$work/w_marker.c" -O0 -O1 -O2 -O3
identical g++ c++ "$work/w_marker_cxx.cc" -O0 -O2
identical clang++ c++ "$work/w_marker_cxx.cc" -O0 -O2

# A variable that only markers use is still "used", and no argument is evaluated.
cat >"$tmp/unused.c" <<'EOF'
#include "qbpf/probe.h"
int side_effect(void); /* defined nowhere: a call would not link */
int main(void)
{
	int only_marked = 3;
	QBPF_SPAN(a, b);
	QBPF_FUNC();
	DTRACE_PROBE2(a, c, only_marked, side_effect());
	QBPF_VALUE(a, d, side_effect() * 1.5);
	return QBPF_ENABLED(a, c);
}
EOF
# shellcheck disable=SC2086
gcc $warn -O0 -DQBPF_DISABLE -I"$root/include" "$tmp/unused.c" -o "$tmp/unused" 2>"$tmp/log" &&
	"$tmp/unused"
ok "disabled: nothing is evaluated, nothing unused" $? "$tmp/log"

# --- what an idle marker costs ------------------------------------------------------------------

cat >"$tmp/cost.c" <<'EOF'
#include "qbpf/probe.h"
#ifdef WITHOUT
#undef QBPF_SPAN
#define QBPF_SPAN(p, n)
#undef DTRACE_PROBE
#define DTRACE_PROBE(p, n)
#undef DTRACE_PROBE2
#define DTRACE_PROBE2(p, n, a, b)
#endif
/* Flags are live across the marker, loads may be merged across it, all registers are in use. */
long flags(long a, long b)
{
	long c = a < b;
	DTRACE_PROBE(cost, flags);
	return c ? a : b;
}
#ifndef __clang__ /* which takes any asm for one that reads and writes memory */
long merged(const long *p)
{
	long a = *p;
	DTRACE_PROBE(cost, merged);
	return a + *p;
}
long args(long a, long b)
{
	DTRACE_PROBE2(cost, args, a, b);
	return a * b;
}
void stored(long *p, long v)
{
	*p = v;
	DTRACE_PROBE(cost, stored);
	*p = v + 1;
}
long span(long a)
{
	QBPF_SPAN(cost, span);
	return a + 1;
}
#endif
EOF
site='nop|lea +-0x80\(%rsp\),%rsp|nopl +0x0\(%rax,%rax,1\)|lea +0x80\(%rsp\),%rsp'

code() {
	objdump -d --no-show-raw-insn --no-addresses "$1" | grep -P '^\t' | sed 's/ *$//'
}

for cc in gcc clang; do
	if [ "$(uname -m)" != x86_64 ] || ! command -v $cc >/dev/null; then
		skip "idle: $cc" "needs $cc on x86-64"
		continue
	fi
	flags="-O2 -falign-functions=1 -fno-asynchronous-unwind-tables -I$root/include"
	# shellcheck disable=SC2086
	$cc $flags -c "$tmp/cost.c" -o "$tmp/a.o"
	# shellcheck disable=SC2086
	$cc $flags -DWITHOUT -c "$tmp/cost.c" -o "$tmp/b.o"
	diff <(code "$tmp/a.o" | grep -v -E "$site") <(code "$tmp/b.o") >"$tmp/log"
	ok "idle: $cc: a marker adds nop, lea, nop, lea and nothing else" $? "$tmp/log"
	# one marker of four instructions; with gcc three more, and a span's two
	want=4
	[ $cc = gcc ] && want=24
	found=$(code "$tmp/a.o" | grep -c -E "$site")
	echo "$found lines of markers, expected $want" >"$tmp/log"
	[ "$found" -eq $want ]
	ok "idle: $cc: all markers are there" $? "$tmp/log"
done

echo "1..$n"
exit $failed

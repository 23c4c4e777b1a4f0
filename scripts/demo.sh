#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Starts the demo strategy, looks at it with qbpf for a few seconds as a user would, and ends it.
#
#	BUILD=DIR	where qbpf and tests/w_strategy were built (build)
#	DEMO_SECONDS=N	how long to look (3)
set -euo pipefail

cd "$(dirname "$0")/.."
build=${BUILD:-build}
seconds=${DEMO_SECONDS:-3}
qbpf=$build/qbpf
strategy=$build/tests/w_strategy

for program in "$qbpf" "$strategy"; do
	if [ ! -x "$program" ]; then
		echo "demo: $program is not built; 'make demo' builds it" >&2
		exit 1
	fi
done

tmp=$(mktemp -d)
pid=
finish() {
	[ -z "$pid" ] || kill "$pid" 2>/dev/null || true
	rm -rf "$tmp"
}
trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

: >"$tmp/out"
echo "\$ $strategy --rate 5000 --threads 2 &"
: >"$tmp/out"
"$strategy" --rate 5000 --threads 2 >"$tmp/out" &
pid=$!
until grep -q '^ready ' "$tmp/out"; do
	if ! kill -0 "$pid" 2>/dev/null; then
		echo "demo: the strategy did not start" >&2
		exit 1
	fi
	sleep 0.05
done
echo "ready: a strategy that takes 5,000 ticks a second on each of 2 threads, process $pid"
echo

echo "\$ sudo qbpf attach -p $pid -d $seconds"
status=0
"$qbpf" attach -p "$pid" -d "$seconds" || status=$?
echo
if [ "$status" -ne 0 ]; then
	echo "demo: qbpf ended with $status." >&2
	if [ "$(id -u)" -ne 0 ]; then
		echo "demo: it needs CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE; the easy way: sudo make demo" >&2
	else
		echo "demo: '$qbpf doctor' says what this host lacks." >&2
	fi
	exit "$status"
fi

kill "$pid"
wait "$pid" || true
pid=
echo "The strategy went on all the time. Over its whole life it counted:"
grep '^count ' "$tmp/out" | while read -r _ name n; do
	printf '  %-16s %8d\n' "$name" "$n"
done
echo
echo "Next: qbpf attach on a program of your own, with markers (man qbpf-probe) or without (-f GLOB)."

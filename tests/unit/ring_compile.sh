#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# qbpf/ring.h compiles clean in every dialect, and none of its structures has hidden padding.
set -u

root=$(cd "$(dirname "$0")/../.." && pwd)
tmp=$(mktemp -d "${TMPDIR:-/tmp}/qbpf-ring-compile.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
n=0
failed=0

cat >"$tmp/ring.c" <<'EOF'
#include <qbpf/ring.h>
#include <qbpf/ring.h>
uint32_t use(void *map, const char *name);
uint32_t use(void *map, const char *name)
{
	struct qbpf_ring r;
	struct qbpf_ring_writer w;
	struct qbpf_ring_sync s;

	memset(&s, 0, sizeof(s));
	s.type = QBPF_RING_SYNC;
	s.size = sizeof(s);
	if (qbpf_ring_open(&r, map, 1 << 20))
		return 0;
	qbpf_ring_claim(&r, 1, 0, &w);
	qbpf_ring_put(&w, &s);
	qbpf_ring_release(&w);
	return qbpf_ring_intern(&r, name, 3);
}
EOF

# dialect COMPILER LANGUAGE STD [OPTION...]
dialect() {
	n=$((n + 1))
	if ! command -v "$1" >/dev/null; then
		echo "ok $n - $1 -std=$3 # SKIP $1 is not installed"
	elif "$1" -x "$2" "-std=$3" -O2 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Werror "${@:4}" \
		-I"$root/include" -c "$tmp/ring.c" -o "$tmp/ring.o" 2>"$tmp/log"; then
		echo "ok $n - $1 -std=$3"
	else
		echo "not ok $n - $1 -std=$3"
		head -20 "$tmp/log" | sed 's/^/# /'
		failed=1
	fi
}

for cc in gcc clang; do
	dialect $cc c c99 # where libc has its own, padded, idea of a static assertion
	dialect $cc c c11 -Wpadded
	dialect $cc c c17 -Wpadded
done
for cxx in g++ clang++; do
	for std in c++11 c++14 c++17 c++20; do
		dialect $cxx c++ $std -Wpadded
	done
done
echo "1..$n"
exit $failed

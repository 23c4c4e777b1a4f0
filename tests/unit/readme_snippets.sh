#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# What README.md shows works: its C and C++ snippets compile without a warning, also without
# markers, and its commands have only options that qbpf knows.
set -u

root=$(cd "$(dirname "$0")/../.." && pwd)
readme=$root/README.md
tmp=$(mktemp -d "${TMPDIR:-/tmp}/qbpf-readme.XXXXXX")
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

# The blocks that begin with ```c or ```cpp, each into a file of that kind.
awk -v dir="$tmp" '
	/^```(c|cpp)$/ { file = sprintf("%s/%02d.%s", dir, ++n, substr($0, 4)); next }
	/^```/ { file = ""; next }
	file { print > file }' "$readme"

compile() {
	local name=${2##*/} lang=c std=c99
	[ "${2##*.}" = cpp ] && lang=c++ std=c++11
	if ! command -v "$1" >/dev/null; then
		skip "$1: snippet $name" "$1 is not installed"
		return
	fi
	for how in "" -DQBPF_DISABLE; do
		"$1" -x $lang -std=$std -O2 -Wall -Wextra -Wpedantic -Werror -I "$root/include" $how \
			-c "$2" -o "$tmp/out.o" >"$tmp/log" 2>&1
		ok "$1: snippet $name compiles${how:+ with $how}" $? "$tmp/log"
	done
}

found=0
for f in "$tmp"/*.c "$tmp"/*.cpp; do
	[ -e "$f" ] || continue
	found=$((found + 1))
	if [ "${f##*.}" = c ]; then
		compile gcc "$f"
		compile clang "$f"
	else
		compile g++ "$f"
		compile clang++ "$f"
	fi
done
ok "there are snippets" $((found < 2))

# qbpf COMMAND ... --option: as --help says.
qbpf=${BUILD:-$root/build}/qbpf
if [ ! -x "$qbpf" ]; then
	skip "the commands' options" "qbpf is not built"
else
	grep -oE 'qbpf (attach|run|report|export|diff|check|list|doctor) [^`|#]*' "$readme" >"$tmp/commands"
	while read -r line; do
		read -r _ command rest <<<"${line%% -- *}"
		"$qbpf" "$command" --help >"$tmp/help"
		for word in $rest; do
			case $word in
			--*) option=${word%%[=,\]]*} ;;
			-[a-z]) option=$word ;;
			*) continue ;;
			esac
			grep -qE -- "(^|[ ,])$option([ ,=[]|\$)" "$tmp/help"
			ok "qbpf $command $option" $? "$tmp/help"
		done
	done <"$tmp/commands"
	[ -s "$tmp/commands" ]
	ok "there are commands" $?
fi

echo "1..$n"
exit $failed

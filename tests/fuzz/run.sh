#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# tests/fuzz/run.sh SECONDS [NAME...]: builds each harness fuzz_NAME.c with libFuzzer and runs it for
# SECONDS, on a corpus of small programs and strings made here. Needs clang with its run-time
# libraries (Debian: libclang-rt-14-dev). Prints TAP. What it finds is left in $BUILD/fuzz.
# FUZZ_ARGS adds options of libFuzzer, FUZZ_CORPUS is another folder for the corpora.
# shellcheck disable=SC2317 # corpus_NAME is called by its name
set -u
cd "$(dirname "$0")/../.." || exit 1

seconds=${1:?usage: tests/fuzz/run.sh SECONDS [NAME...]}
shift
out=$(realpath -m "${BUILD:-build}")/fuzz
clang=${CLANG:-clang}
flags=(-g -O1 -fsanitize=address -fsanitize=undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
	-D_GNU_SOURCE -I. -Iinclude -Iuser -Itests/unit)
libs=(-lelf -ldw -llzma -lcapstone -liberty -lzstd -lz -ljansson -lpthread -lm)
mkdir -p "$out/obj"

if ! echo 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return d && n && 0; }' |
	"$clang" -fsanitize=fuzzer -x c - -o "$out/try" 2>/dev/null; then
	echo "1..0 # SKIP $clang has no libFuzzer"
	exit 77
fi

# Objects are rebuilt when a source or any header is newer.
newest=$(find include user/elf user/file user/plan user/model user/err.h -name '*.h' -newer "$out/obj/stamp" 2>/dev/null | head -1)
[ -e "$out/obj/stamp" ] || newest=yes
for src in user/elf/*.c user/file/*.c user/plan/*.c user/model/*.c; do
	obj=$out/obj/$(basename "$src" .c).o
	if [ -n "$newest" ] || [ "$src" -nt "$obj" ]; then
		"$clang" "${flags[@]}" -fsanitize=fuzzer-no-link -c "$src" -o "$obj" || exit 1
	fi
done
touch "$out/obj/stamp"

corpus_elf() {
	local dir=$1 cc=${CC:-gcc}
	cat >"$out/seed.S" <<-'EOF'
	.globl _start
	.type _start,@function
_start:	endbr64
	sub $24, %rsp
990:	nop
	call inner
	add $24, %rsp
	ret
	.size _start, .-_start
	.type inner,@function
inner:	.cfi_startproc
	nopl 8(%rax,%rax,1)
	je 1f
991:	nop
1:	mov $60, %eax
	syscall
	.cfi_endproc
	.size inner, .-inner
	.globl _ZN3Foo3funEi
	.type _ZN3Foo3funEi,@function
_ZN3Foo3funEi: jmp inner
	.type label,@function
label:	ret
	.data
	.globl gy
	.type gy,@object
gy:	.long 42
	.size gy, 4
	.section .probes,"aw"
sema:	.short 0
	.section .stapsdt.base,"a"
base:	.byte 0
	.macro note site, sema, name, args
	.section .note.stapsdt,"","note"
	.balign 4
	.4byte 8, 3f-2f, 3
	.asciz "stapsdt"
2:	.8byte \site, base, \sema
	.asciz "prov"
	.asciz "\name"
	.asciz "\args"
3:	.balign 4
	.endm
	note 990b, sema, "one__begin", "-4@gy(%rip) 8@(%rsp) 8f@8(%rdi,%rsi,8)"
	note 991b, 0, "one__end", "4@$5 1@%ah 8@%xmm0"
	.section .note.GNU-stack,"",@progbits
	EOF
	local i=0 opts
	for opts in -no-pie -static-pie '-no-pie -Wl,-z,noseparate-code' '-no-pie -s' '-shared' \
		'-g -Wl,--compress-debug-sections=zlib'; do
		# The options are words.
		# shellcheck disable=SC2086
		$cc -nostdlib -Wl,-z,max-page-size=4096 $opts "$out/seed.S" -o "$dir/elf-$i" &&
			i=$((i + 1))
	done
	# Symbols apart, compressed.
	if command -v xz >/dev/null; then
		objcopy --only-keep-debug "$dir/elf-0" "$out/mini" &&
			xz -k -f "$out/mini" &&
			objcopy -S --add-section ".gnu_debugdata=$out/mini.xz" "$dir/elf-0" "$dir/elf-mini"
		rm -f "$out/mini" "$out/mini.xz"
	fi
}

corpus_args() {
	local i=0 line
	while IFS= read -r line; do
		printf '%s' "$line" >"$1/args-$i"
		i=$((i + 1))
	done <<-'EOF'
	8@(%rsp) 8@8(%rsp) -4@24(%rsp)
	8@(%rax,%rbx,8) 1@-96(%rbp,%rax,8) -4@gy(%rip) 8f@16+gpx(%rip)
	8@%xmm0 8f@%rax -8@v0 16@-32(%rbp) %edi
	8@x25 2@[x22, 20] -4@[sp, 128] -1@[x0, x1, lsl 3] 4@#5
	4@i%ra+1r -4@DWORD PTR [rbp-4] 8@$gy+8 -1@$0xff
	8@gy@GOTPCREL(%rip) 8@%fs:tv@tpoff 1@%ah 2@%r8w
	EOF
}

corpus_demangle() {
	local i=0 name
	for name in _ZN3Foo3funEi _ZSt4sortIPiEvT_S1_ _ZN12_GLOBAL__N_15InnerD2Ev.cold \
		_Z1f1a1PIS_S_ES0_IS1_S1_ES0_IS2_S2_E _RNvNtCs1234_4feed6parser5parse \
		_RIC1aTmmETB3_B3_ETB7_B7_EE _ZN4core3fmt9Formatter3pad17h0123456789abcdefE \
		_RNvNtNtCs9ltgdHTiPiY_4punyu8_grn_6gda8c; do
		printf '%s' "$name" >"$1/name-$i"
		i=$((i + 1))
	done
}

corpus_maps() {
	cat >"$1/maps-0" <<-'EOF'
	00400000-00401000 r-xp 00001000 08:01 1234                       /opt/my prog
	7f2000000000-7f2000001000 r-xp 00003000 103:2a 99                /usr/lib/libx.so.1 (deleted)
	7f4000000000-7f4000001000 --xs 00000000 08:01 6                  /new\012line
	7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0                  [vdso]
	EOF
}

# Small traces of all shapes: whole, with blocks that are not compressed, and their payloads.
corpus_traces() {
	local dir=$1 cc=${CC:-gcc}
	if [ ! -e "$out/mktrace" ] || [ -n "$newest" ]; then
		$cc -O1 -D_GNU_SOURCE -DQBPF_VERSION='"fuzz"' -I. -Iinclude -Iuser -Itests/tools \
			tests/tools/mktrace*.c user/file/*.c -lzstd -lz -lpthread -o "$out/mktrace" || return
	fi
	mkdir -p "$out/seeds"
	"$out/mktrace" --shape mixed --spans 400 --depth 20 "$out/seeds/mixed"
	"$out/mktrace" --shape lost --spans 60 "$out/seeds/lost"
	"$out/mktrace" --spans 30 --no-close "$out/seeds/cut"
	"$out/mktrace" --shape gpu --spans 40 "$out/seeds/gpu"
	python3 tests/tools/qtrace.py --seeds "$out/seeds" "$out"/seeds/{mixed,lost,cut,gpu}
	mv "$out"/seeds/*-"$name" "$dir"
	rm -r "$out/seeds"
}

corpus_budget() {
	local i=0 line
	while IFS= read -r line; do
		printf '%s\n' "$line" >"$1/budget-$i"
		i=$((i + 1))
	done <<-'EOF'
	strategy:on_tick p99 < 50us # comment
	strategy:on_tick/alpha share <= 30%
	* lost == 0
	'quoted < span' p99.9 < baseline * 1.05 + 2us
	a self/span >= (1.5ms - -3ns) / 2
	v min != -3e5
	EOF
}

corpus_summary() {
	cp tests/golden/summary.json "$1/summary-0"
	cat >"$1/summary-1" <<-'EOF'
	{"schema":"qbpf.summary/1","duration_ns":1000,"spans":[{"name":"a","kind":"marker","count":3,"sum_ns":6,
	"min_ns":1,"max_ns":3,"p50_ns":2,"p90_ns":null,"histogram":[[1,2,1],[2,3,2]]},{"name":"v:x","kind":"value",
	"count":1,"sum":"inf","min":-1,"max":"inf"},{"name":"i","kind":"instant","count":2,"interval":{}}],"tree":
	[{"name":"a","count":3,"sum_ns":6,"self_ns":2,"min_ns":1,"max_ns":3,"children":[{"name":"b","count":1}]}],
	"lost":{"events":1,"by_probe":{"a":1}}}
	EOF
}

corpus_snapshot() {
	# version, times, strings, one span with one octave, one node, prices
	printf '\1\0\0\1\7\2a\0\0\0\0\0\2\1\2a\0\0\0\1\0\5\0\5\5\40\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0' >"$1/snapshot-0"
	printf '\1\1\0\1\5\5\5\5\5\0\0\1\2b\2c\0\1\2d\4\0\0\0\0\0' >>"$1/snapshot-0"
}

corpus_analysis() {
	# eight bytes an event: two spans, one in the other, an instant, an open one
	printf '\0\0\0\1\1\12\5\0\0\0\1\0\0\0\30\5\0\3\2\2\1\15\0\0\0\5\0\1\0\0\77\0\0' >"$1/analysis-0"
}

corpus_gpu() {
	# a call and its kernel, a span around them, settling
	printf '\5\0\0\0\0\0\350\3\0\0\0\0\0\0\20\4\0\0\0\0\0\0\7\0\0\0\144\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0\2\0\0\0' >"$1/gpu-0"
	printf '\1\0\5\0\0\0\350\3\0\0\0\0\0\0\20\4\0\0\0\0\0\0\0\0\0\0\1\0\0\0\7\0\0\0\1\0\0\0' >>"$1/gpu-0"
	head -c 48 /dev/zero >>"$1/gpu-0"
	printf '\21\0\0\1\0\0\0\0\0\0\0\5\0\0\0\0\0\0\30\0\0\1' >>"$1/gpu-0"
}

corpus_ring() {
	# good records and a look; the head of one, and positions that run away or backwards
	printf '\55\0\0\0\0\1\0\2\3\0\0\0\0\5\1\0\0\0\4\1\0\4\0\0\0\0\7\0\0\0\0\0\0\0\0\0\0\0\0' >"$1/ring-0"
	printf '\13\0\0\0\0\1\0\130\0\1\0\0\0\13\0\0\0\0\0\0\0\2\0\0\0\0' >>"$1/ring-0"
	printf '\12\1\1\0\0\377\377\377\377\377\377\377\377\12\0\1\0\0\10\0\0\0\0\0\0\0' >>"$1/ring-0"
}

names=("$@")
[ ${#names[@]} -gt 0 ] || names=(image args demangle maps code trace events budget summary snapshot analysis gpu ring)
n=0 failed=0
echo "1..${#names[@]}"
for name in "${names[@]}"; do
	n=$((n + 1))
	dir=${FUZZ_CORPUS:-$out}/corpus-$name log=$out/$name.log
	mkdir -p "$dir" "$out/found"
	case $name in
	image | code) corpus_elf "$dir" ;;
	trace | events) corpus_traces "$dir" ;;
	*) "corpus_$name" "$dir" ;;
	esac
	if ! "$clang" "${flags[@]}" -fsanitize=fuzzer "tests/fuzz/fuzz_$name.c" "$out"/obj/*.o \
		"${libs[@]}" -o "$out/fuzz_$name" 2>"$log"; then
		cat "$log" >&2
		echo "not ok $n - $name: does not build"
		failed=1
		continue
	fi
	# The options of the caller are words.
	# shellcheck disable=SC2086
	if "$out/fuzz_$name" -max_total_time="$seconds" -timeout=60 -rss_limit_mb=1024 -max_len=20000 \
		-artifact_prefix="$out/found/$name-" ${FUZZ_ARGS:-} "$dir" >"$log" 2>&1; then
		echo "ok $n - $name # $(grep -ao 'stat::number_of_executed_units: *[0-9]*' "$log" |
			grep -o '[0-9]*$') runs"
	else
		grep -aE 'ERROR|SUMMARY|runtime error|Test unit|ALARM' "$log" >&2
		echo "not ok $n - $name: see $log"
		failed=1
	fi
done
exit $failed

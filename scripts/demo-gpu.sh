#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A strategy whose signal is computed on a GPU, recorded with its flaw (synchronous copies) and without,
# and what qbpf says of either. The GPU is simulated (tests/cudasim): any machine will do.
#
#	BUILD=DIR	where qbpf and tests/w_quant_gpu were built (build)
#	DEMO_TICKS=N	ticks of either run (2000)
#	DEMO_OUT=DIR	keep both recordings and their reports as JSON there
set -euo pipefail

cd "$(dirname "$0")/.."
build=${BUILD:-build}
ticks=${DEMO_TICKS:-2000}

for file in "$build/qbpf" "$build/tests/w_quant_gpu" "$build/libqbpf_cupti.so"; do
	if [ ! -e "$file" ]; then
		echo "demo-gpu: $file is not built; 'make demo-gpu' builds it where CUDA's headers are (CUDA_HOME=)" >&2
		exit 1
	fi
done

tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
out=${DEMO_OUT:-$tmp}
mkdir -p "$out"

# The simulator as it is by default, whatever other CUDA there is.
unset CUDASIM CUDASIM_KERNELS CUDASIM_FAIL CUDASIM_TRUTH CUDA_INJECTION64_PATH
build=$(cd "$build" && pwd)
export LD_LIBRARY_PATH=$build/tests/cudasim
qbpf=$build/qbpf
strategy=$build/tests/w_quant_gpu

# NAME OPTION...: records the strategy to NAME.qbpf, shows what the report says of the GPU.
look() {
	local name=$1 status=0
	shift
	echo "\$ sudo qbpf run --cuda agent -o $name.qbpf -- w_quant_gpu --ticks $ticks${*:+ $*}"
	(cd "$out" && "$qbpf" run --cuda agent -o "$name.qbpf" -- "$strategy" --ticks "$ticks" "$@") \
		>"$tmp/said" 2>"$tmp/err" || status=$?
	if [ "$status" -ne 0 ]; then
		cat "$tmp/err" >&2
		echo "demo-gpu: qbpf ended with $status; it needs root (sudo make demo-gpu)," \
			"and '$qbpf doctor' says what this host lacks." >&2
		exit "$status"
	fi
	grep -E '^(decisions|checksum) ' "$tmp/said" >"$out/$name.answers"
	grep -h 'note: recorded' "$tmp/said" "$tmp/err" || true
	echo
	echo "\$ qbpf report $name.qbpf     # its part on the GPU"
	"$qbpf" report "$out/$name.qbpf" | sed -n '/^GPU [0-9]/,/^GPU times/p'
	"$qbpf" report --json "$out/$name.qbpf" >"$out/$name.json"
	echo
}

echo "A tick makes features on the CPU, copies them to the GPU, runs two kernels there, copies the score"
echo "back and decides. First with cudaMemcpy from and to ordinary memory, one tick after the other:"
echo
look before --flaw sync-copy
python3 scripts/demo_gpu.py flaw "$out/before.json"
echo
echo "The same work with pinned memory and cudaMemcpyAsync, two ticks in flight on two streams:"
echo
look after
python3 scripts/demo_gpu.py compare "$out/before.json" "$out/after.json"
if ! cmp -s "$out/before.answers" "$out/after.answers"; then
	echo "demo-gpu: the two did not decide the same" >&2
	exit 1
fi
echo
echo "Both decided the same: $(paste -sd ' ' "$out/after.answers")"

#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# Checks qbpf on this machine's GPU: builds qbpf and its agent, compiles a CUDA program that knows
# exactly what it did and how long it took (tests/workloads/gpu_check.cu), runs it plainly, with the
# agent, under qbpf run and qbpf attach, and with uprobes, and compares.
#
#	scripts/gpu-check.sh [--sim] [--only PART,PART] [--rounds N] [--launches N]
#
#	--sim		on the simulated CUDA of tests/cudasim: no GPU, but nvcc
#	--only		of plain, agent, run, attach, uprobe, static, overhead
#	BUILD=DIR	where to build (build)
#	CUDA_HOME=DIR	the toolkit (/usr/local/cuda)
#	NVCC_FLAGS	more of them, -ccbin=g++-12 for instance
#
# Needs nvcc and a GPU; root and BPF for what qbpf itself does: without them the agent is checked
# alone. What it cannot check it says, and why. The last line is "N passed, N failed, N skipped". Exit
# status: 0; 1 when a check failed; 77 when none could be made.
set -uo pipefail

cd "$(dirname "$0")/.." || exit 1
parts="plain agent run attach uprobe static overhead"
build=${BUILD:-build}
launches=20000
sim=
args=()
while [ $# -gt 0 ]; do
	case $1 in
	--sim) sim=1 ;;
	--only | --rounds | --launches)
		if [ $# -lt 2 ]; then
			echo "gpu-check: $1 needs a value" >&2
			exit 2
		fi
		[ "$1" != --launches ] || launches=$2
		[ "$1" != --only ] || parts=${2//,/ }
		args+=("$1" "$2")
		shift
		;;
	-h | --help)
		sed -n '3,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"
		exit 0
		;;
	*)
		echo "gpu-check: $1: no such option (--help)" >&2
		exit 2
		;;
	esac
	shift
done

# Nothing can be checked, for this reason.
skip_all() {
	local part n=0
	for part in $parts; do
		printf '%-8s %s: %s\n' skipped "$part" "$1"
		n=$((n + 1))
	done
	echo "0 passed, 0 failed, $n skipped"
	exit 77
}

fail() {
	printf '%-8s %s\n' FAILED "$1"
	[ ! -s "${2:-/dev/null}" ] || tail -n 15 "$2"
	echo "0 passed, 1 failed, 0 skipped"
	exit 1
}

# --- what there is ------------------------------------------------------------------------------

for cuda in "${CUDA_HOME:-}" /usr/local/cuda /usr/local/cuda-13* /opt/cuda; do
	[ -z "$cuda" ] || [ ! -x "$cuda/bin/nvcc" ] || break
	[ "$cuda" != "${CUDA_HOME:--}" ] || skip_all "no nvcc: CUDA_HOME=$cuda has no bin/nvcc"
done
nvcc=$cuda/bin/nvcc
if [ ! -x "$nvcc" ]; then
	nvcc=$(command -v nvcc) || skip_all "no nvcc: no CUDA toolkit found (CUDA_HOME=)"
	cuda=$(dirname "$(dirname "$(readlink -f "$nvcc")")")
fi
export CUDA_HOME=$cuda
if [ -z "$sim" ] && ! compgen -G '/dev/nvidia[0-9]*' >/dev/null && [ ! -e /dev/dxg ]; then
	skip_all "no GPU: there is no /dev/nvidia0 (--sim checks on a simulated one)"
fi

# --- building -----------------------------------------------------------------------------------

mkdir -p "$build/gpu-check" || exit 1
log=$build/gpu-check/build.log
no_qbpf=
targets=(all)
if [ -z "${VMLINUX_H:-}" ] && [ ! -r /sys/kernel/btf/vmlinux ]; then
	no_qbpf="this kernel has no BTF (/sys/kernel/btf/vmlinux), so qbpf cannot be built here (VMLINUX_H=)"
	targets=(agent)
fi
[ -z "$sim" ] || targets+=(cudasim)
compile() {
	make -j"$(nproc)" BUILD="$build" CUDA_HOME="$cuda" "${targets[@]}" "$build/tests/ring_dump" >"$log" 2>&1
}
echo "building in $build, with $nvcc"
if ! compile; then
	echo "something is missing: scripts/setup.sh"
	scripts/setup.sh || true
	compile || fail "building qbpf, see $log" "$log"
fi

program=$build/gpu-check/gpu_check
static=$build/gpu-check/gpu_check_static
# shellcheck disable=SC2086
cuda_compile() {
	"$nvcc" -O2 -Iinclude ${NVCC_FLAGS:-} "$@" tests/workloads/gpu_check.cu >"$log" 2>&1
}
if [ -n "$sim" ]; then
	program=$program.sim
	cuda_compile -cudart shared -o "$program" || fail "nvcc, see $log" "$log"
	export LD_LIBRARY_PATH=$PWD/$build/tests/cudasim
	[ "${build#/}" = "$build" ] || export LD_LIBRARY_PATH=$build/tests/cudasim
	# No device code runs there: how long a kernel lasts is its first argument.
	export CUDASIM_KERNELS=${CUDASIM_KERNELS:-k_spin=arg0,k_block=arg0,k_cold=arg0,k_node=arg0}
	[ "$launches" != 20000 ] || launches=1000
else
	# nvcc before 11.5 does not know "native": the driver then compiles for its device.
	arch=-arch=native
	"$nvcc" $arch --dryrun tests/workloads/gpu_check.cu >/dev/null 2>&1 || arch=
	cuda_compile $arch -cudart shared -Xlinker "-rpath,$cuda/lib64" -o "$program" || fail "nvcc, see $log" "$log"
	cuda_compile $arch -cudart static -o "$static" || fail "nvcc, see $log" "$log"
	args+=(--static-program "$static")
	found=$("$program" --devices) || case $found in
	no-gpu*) skip_all "no GPU: CUDA says: ${found#no-gpu }" ;;
	*) fail "the program does not run: $found" ;;
	esac
fi

exec python3 scripts/gpu_check.py --build "$build" --program "$program" ${no_qbpf:+--no-qbpf "$no_qbpf"} \
	"${args[@]}" --launches "$launches"

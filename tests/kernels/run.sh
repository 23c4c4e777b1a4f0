#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# timeout: 7200
#
# tests/kernels/run.sh - boots Debian's cloud kernels of older series under emulation and runs
# the BPF tests and a smoke test of the command there. The programs are the very files that were
# built for this host: they must fit (CO-RE) and fall back by themselves.
#
#   BUILD=build tests/kernels/run.sh [SERIES...]     default: 6.1 6.12
#
# Prints TAP, each case under its kernel's name. A kernel passes only when the guest's own last
# line was seen, because qemu exits 0 after a panic too. KEEP=1 shows the whole console, ONLY=NAME
# runs the tests whose names contain NAME, of which there must be one.
#
# QBPF_TEST_SCALE=N tells tests to divide their iteration counts by N: emulation is some 30 times
# slower than the machine.

set -u
cd "$(dirname "$0")/../.." || exit 1
BUILD=$(realpath "${BUILD:-build}")
CACHE=$BUILD/kernels
SERIES=("$@")
[ ${#SERIES[@]} -gt 0 ] || SERIES=(6.1 6.12)
export LC_ALL=C

BOOT_TIMEOUT_S=${BOOT_TIMEOUT_S:-3600}
BOOT_TRIES=4
export QBPF_TEST_SCALE=${QBPF_TEST_SCALE:-20}

skip_all()
{
	echo "1..0 # SKIP $*"
	exit 77
}

# --- the kernel ---------------------------------------------------------------------------------

# The newest package of a series that this distribution offers: 6.1 -> linux-image-6.1.0-57-...
newest_package()
{
	apt-cache search --names-only "^linux-image-${1//./\\.}\\.[0-9][^ ]*-cloud-amd64\$" 2>/dev/null |
		awk '{ print $1 }' | sort -V | tail -n 1
}

# Prints the path of a series' kernel, fetching it when it is not in the cache yet.
kernel_of()
{
	local pkg dir=$CACHE/fetch.$1

	pkg=$(newest_package "$1")
	[ -n "$pkg" ] || return 1
	if [ ! -s "$CACHE/$pkg.vmlinuz" ]; then
		rm -rf "$dir"
		mkdir -p "$dir"
		(cd "$dir" && apt-get -q -o APT::Sandbox::User=root download "$pkg" &&
			dpkg-deb --fsys-tarfile ./*.deb | tar -xf - --wildcards './boot/vmlinuz-*') >&2 || return 2
		mv "$dir"/boot/vmlinuz-* "$CACHE/$pkg.vmlinuz"
		rm -rf "$dir"
	fi
	echo "$CACHE/$pkg.vmlinuz"
}

# --- the guest's file system --------------------------------------------------------------------

# Copies a program and the libraries that it is linked with.
install_program()
{
	local root=$1 from=$2 to=$3 lib

	install -D "$from" "$root$to"
	ldd "$from" 2>/dev/null | grep -o '/[^ ]*' | while read -r lib; do
		[ -e "$root$lib" ] || install -D "$lib" "$root$lib"
	done
}

make_initramfs()
{
	local root=$CACHE/root f tests

	rm -rf "$root"
	mkdir -p "$root"/{bin,dev,proc,sys,tmp,etc,run,build/tests/bpf}
	install -D "$(command -v busybox)" "$root/bin/busybox"
	install -m 755 tests/kernels/init.sh "$root/init"
	[[ t_smoke == *"${ONLY:-}"* ]] &&
		install -m 755 tests/kernels/t_smoke.sh "$root/build/tests/bpf/t_smoke"
	echo 'root:x:0:0:root:/:/bin/sh' >"$root/etc/passwd"
	[ -x "$BUILD/qbpf" ] && install_program "$root" "$BUILD/qbpf" /build/qbpf
	for f in "$BUILD"/tests/bpf/t_* "$BUILD"/tests/w_* "$BUILD"/tests/*.so; do
		if [ ! -f "$f" ] || [ ! -x "$f" ]; then
			continue
		fi
		[[ ${f##*/} != t_* || ${f##*/} == *"${ONLY:-}"* ]] || continue
		install_program "$root" "$f" "/build/${f#"$BUILD"/}"
	done
	tests=("$root"/build/tests/bpf/t_*)
	if [ ! -e "${tests[0]}" ]; then
		echo "no test in $BUILD/tests/bpf has ${ONLY:-t_} in its name" >&2
		return 1
	fi
	# Opened by name at run time, so ldd does not show it: pthread_cancel needs it.
	f=$(gcc -print-file-name=libgcc_s.so.1)
	[ -e "$f" ] && install -D "$f" "$root/lib/x86_64-linux-gnu/libgcc_s.so.1"
	(cd "$root" && find . | cpio -o -H newc --quiet) >"$CACHE/initramfs.cpio"
}

# --- booting ------------------------------------------------------------------------------------

# Leaves the console in a log. Plain emulation on purpose: /dev/kvm may be there and yet hang, as
# nested virtualisation does. Debian 12's qemu crashes on cmpxchg16b of 6.12 guests, hence -cx16.
# The CPUs take turns (thread=single): side by side, one sometimes still met the int3 that another had
# put into the kernel's code to patch it, and had taken out again, and the guest died of it.
boot_once()
{
	local kernel=$1 log=$2

	# --foreground: it stays in our process group, and dies with it.
	timeout --foreground -k 5 "$BOOT_TIMEOUT_S" nice qemu-system-x86_64 -accel tcg,thread=single \
		-cpu max,-cx16 -smp 2 -m 1024 -nographic -no-reboot -net none \
		-kernel "$kernel" -initrd "$CACHE/initramfs.cpio" \
		-append "console=ttyS0 panic=-1 quiet loglevel=2 QBPF_TEST_SCALE=$QBPF_TEST_SCALE" \
		</dev/null >"$log" 2>&1 &
	trap 'kill $! 2>/dev/null; exit 1' TERM
	wait $!
}

# Under emulation a guest's kernel sometimes dies while it starts its CPUs, before any of our code
# has run; then it is started again. Once its first line is there, whatever happens counts.
boot()
{
	local kernel=$1 log=$2 try

	for ((try = 1; try <= BOOT_TRIES; try++)); do
		boot_once "$kernel" "$log"
		grep -aq '^### kernel ' "$log" && break
		[ $try = "$BOOT_TRIES" ] || mv "$log" "$log.died.$try"
	done
}

# --- main ---------------------------------------------------------------------------------------

for tool in qemu-system-x86_64 busybox cpio apt-cache dpkg-deb ldd; do
	command -v $tool >/dev/null || skip_all "$tool is not installed"
done
[ "$(uname -m)" = x86_64 ] || skip_all "only for x86-64"
mkdir -p "$CACHE"
make_initramfs || exit 1

pids=()
logs=()
for s in "${SERIES[@]}"; do
	kernel=$(kernel_of "$s")
	rc=$?
	log=$CACHE/console.$s
	rm -f "$log" "$log".died.*
	logs+=("$s=$log")
	case $rc in
	0) boot "$kernel" "$log" & pids+=($!) ;;
	1) echo "### absent" >"$log" ;;
	*) echo "### not fetched" >"$log" ;;
	esac
done
trap 'kill "${pids[@]}" 2>/dev/null' EXIT
for p in "${pids[@]}"; do
	wait "$p"
done
trap - EXIT
python3 tests/kernels/relay.py "${logs[@]}"

#!/bin/busybox sh
# shellcheck shell=dash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# The first and only process of a guest of run.sh: runs every test in /build/tests/bpf and
# switches off. Lines that begin with ### are for relay.py.

/bin/busybox --install -s /bin
export PATH=/bin HOME=/ BUILD=/build QBPF=/build/qbpf CMOCKA_MESSAGE_OUTPUT=TAP

mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t tmpfs tmpfs /tmp
mkdir -p /dev/shm /sys/fs/bpf
mount -t tmpfs tmpfs /dev/shm
mount -t bpf bpf /sys/fs/bpf
mount -t tracefs tracefs /sys/kernel/tracing
mount -t debugfs debugfs /sys/kernel/debug
mount -t securityfs securityfs /sys/kernel/security
ip link set lo up

# An argument that the kernel does not know becomes its environment.
export QBPF_TEST_SCALE="${QBPF_TEST_SCALE:-1}"

# The firmware leaves half a line.
echo
echo "### kernel $(uname -r)"
cd /
for t in /build/tests/bpf/t_*; do
	[ -x "$t" ] || continue
	echo "### begin $(basename "$t")"
	timeout -s KILL 1500 "$t" 2>/tmp/stderr
	rc=$?
	# After a newline of its own: a test that dies may leave half a line.
	echo
	sed 's/^/### stderr /' /tmp/stderr | tail -n 40
	echo "### end $(basename "$t") $rc $(cut -d. -f1 /proc/uptime)"
done
echo "### all tests were started and have ended"
poweroff -f

#!/bin/busybox sh
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# In a guest: the command itself. What doctor finds must be what this kernel is known to have,
# and attaching to a live process must give spans.

n=0
failed=0
check()
{
	n=$((n + 1))
	if [ "$1" = 0 ]; then
		echo "ok $n - $2"
	else
		echo "not ok $n - $2"
		failed=1
	fi
}

QBPF=${QBPF:-/build/qbpf}
if [ ! -x "$QBPF" ]; then
	echo "# the qbpf command is not built"
	exit 77
fi
OUT=/tmp/smoke
mkdir -p $OUT

"$QBPF" doctor >$OUT/doctor 2>$OUT/doctor.err
check $? "doctor: tracing is possible"
sed 's/^/# /' $OUT/doctor
row()
{
	grep -q "^$1  *$2  *$3" $OUT/doctor
	check $? "doctor: $2: $3"
}
row ok lockdown none
row ok "exception guard" possible
row ok "perf-event uprobes" works
row warn "optimised uprobes" no
case $(uname -r) in
6.1.*)
	row warn uprobe_multi absent
	row ok "uretprobe syscall" no
	;;
6.12.*)
	row ok uprobe_multi works
	row ok "uprobe_multi threads" "all seen"
	row ok "uretprobe syscall" yes
	;;
esac

# The busybox shell calls nothing by a probe; any dynamically linked workload will do.
W=/build/tests/w_strategy
if [ -x $W ]; then
	$W >/dev/null 2>&1 &
	pid=$!
	sleep 1
	"$QBPF" attach -p $pid -d 3 --json >$OUT/attach.json 2>$OUT/attach.err
	check $? "attach: exit status"
	sed 's/^/# /' $OUT/attach.err
	grep -q '"schema": *"qbpf.summary/1"' $OUT/attach.json
	check $? "attach: a summary document"
	grep -q '"count": *[1-9]' $OUT/attach.json
	check $? "attach: spans were counted"
	kill -0 $pid
	check $? "attach: the target lives"
	kill $pid
else
	n=$((n + 1))
	echo "ok $n - attach # SKIP w_strategy is not built"
fi
echo "1..$n"
exit $failed

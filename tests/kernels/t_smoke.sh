#!/bin/busybox sh
# shellcheck shell=dash
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
	row warn "uretprobe syscall" no
	;;
6.12.*)
	row ok uprobe_multi works
	row ok "uprobe_multi threads" "all seen"
	row ok "uretprobe syscall" yes
	;;
esac

# A field of a span in a summary document.
field()
{
	awk -v name="\"name\": \"$2\"," -v field="\"$3\":" '
		/"spans": \[/ { spans = 1 }
		spans && index($0, name) { here = 1 }
		here && index($0, field) { gsub(/[^0-9]/, "", $2); print $2; exit }' "$1"
}

W=/build/tests/w_strategy
if [ ! -x $W ]; then
	n=$((n + 1))
	echo "ok $n - attach and run # SKIP w_strategy is not built"
	echo "1..$n"
	exit $failed
fi

$W >/dev/null 2>&1 &
pid=$!
sleep 1
"$QBPF" attach -p $pid -d 3 --json=$OUT/attach.json >$OUT/attach.out 2>$OUT/attach.err
check $? "attach: exit status"
sed 's/^/# /' $OUT/attach.err
grep -q '"schema": *"qbpf.summary/1"' $OUT/attach.json
check $? "attach: a summary document"
[ "$(field $OUT/attach.json strategy:tick count)" -gt 0 ]
check $? "attach: spans were counted"
kill -0 $pid
check $? "attach: the target lives"
kill $pid

# Functions of CUDA in a library that is opened later: their programs are loaded then.
mkfifo $OUT/lines
/build/tests/w_process late 300 /build/tests/liblate_cuda.so <$OUT/lines >$OUT/late.out 2>&1 &
pid=$!
exec 3>$OUT/lines
"$QBPF" attach -p $pid --json=$OUT/late.json >/dev/null 2>$OUT/late.err &
tracer=$!
# Once stderr has the words: a line for the target.
after()
{
	for _ in $(seq 300); do
		grep -q "$1" $OUT/late.err && break
		sleep 0.1
	done
	echo >&3
}
after 'tracing'
after 'in newly mapped objects'
wait $tracer
check $? "late CUDA: exit status"
sed 's/^/# /' $OUT/late.err
exec 3>&-
for call in cudaMalloc=1 cudaMemcpy=300 cudaLaunchKernel=300; do
	got=$(field $OUT/late.json cuda:${call%=*} count)
	[ "$got" = "${call#*=}" ]
	check $? "late CUDA: ${call%=*}: $got of ${call#*=} calls"
done
grep -q '"bytes": 22500,' $OUT/late.json
check $? "late CUDA: the bytes of copies that did not fail"

# From the first instruction to the end every count is known: the workload prints its own.
"$QBPF" run --json=$OUT/run.json -- $W --ticks 60 --rate 200 --threads 2 >$OUT/run.out 2>$OUT/run.err
check $? "run: exit status"
sed 's/^/# /' $OUT/run.err
# shellcheck disable=SC2013 # names have no blanks
for span in $(sed -n 's/^count \([^ ]*\) [1-9].*/\1/p' $OUT/run.out); do
	want=$(sed -n "s/^count $span //p" $OUT/run.out)
	got=$(field $OUT/run.json "$span" count)
	[ "$got" = "$want" ]
	check $? "run: $span: $got of $want spans"
done
grep -q '^count strategy:tick 120$' $OUT/run.out
check $? "run: the target's own counts are whole"

# A function that throws at times, its end seen in each way that may be chosen here.
f=strategy::trader::check_limits
for way in auto guard ret; do
	rm -f $OUT/f.*
	"$QBPF" run -f "$f" --returns $way --json=$OUT/f.json -- $W --ticks 60 --rate 200 >$OUT/f.out 2>$OUT/f.err
	check $? "run --returns $way: exit status"
	sed 's/^/# /' $OUT/f.err
	want=$(sed -n "s/^func $f //p" $OUT/f.out)
	caught=$(sed -n 's/^caught //p' $OUT/f.out)
	name=$(sed -n "s/.*\"name\": \"\(${f}[^\"]*\)\".*/\1/p" $OUT/f.json | head -n 1)
	count=$(field $OUT/f.json "$name" count)
	abandoned=$(field $OUT/f.json "$name" abandoned)
	[ "$((count + abandoned))" = "$want" ]
	check $? "run --returns $way: $count returns and $abandoned exceptions of $want calls, $caught caught"
done
echo "1..$n"
exit $failed

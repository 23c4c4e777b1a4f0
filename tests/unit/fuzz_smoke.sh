#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# A few seconds of each fuzz harness, from the same seed each time, so that it cannot rot.
# timeout: 1800
FUZZ_CORPUS=$(mktemp -d) || exit 1
export FUZZ_CORPUS
trap 'rm -rf "$FUZZ_CORPUS"' EXIT
FUZZ_ARGS="-seed=1 -runs=10000 -print_final_stats=1" "$(dirname "$0")/../fuzz/run.sh" 4

#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what the benchmarks need, builds and runs them: a table of ratios to peers that run in the same minutes on the
# same machine. Nothing passes or fails here.
#
#     scripts/bench.sh              all
#     scripts/bench.sh NAME...      tests/bench/NAME.mjs
#
# LANCEFS_BENCH_ROUNDS: how often each is run (15). LANCEFS_BENCH_SIZES: numbers of fragments (100,2000,20000).
# LANCEFS_BENCH_MIB: size of the file that is read (256). LANCEFS_BENCH_FILES: files that are walked over (20000).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scripts/bootstrap.sh bench
bash tests/interop/setup.sh
make -j"$(nproc)"
PATH=$PWD/build/node/node_modules/node/bin:$PATH node tests/bench/run.mjs "$@" |
    sed -u '/^TAP version/d' # the harness is the tests'

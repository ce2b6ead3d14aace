#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what the tests need, builds and runs all of them. The last line is "N passed, N failed"; the exit status is 0
# when nothing failed and no stage of tests was empty. A stage that cannot build, crashes or runs no test is a failure.
#
#     scripts/test.sh               everything
#     scripts/test.sh STAGE...      these stages and what they stand on
#     scripts/test.sh -l            the stages' names
#
# Every tests/DIR that holds *.test.mjs is a stage of its own name. LANCEFS_TEST_SECONDS bounds a stage (default 1500).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly ROOT=$PWD
readonly STAGE_SECONDS=${LANCEFS_TEST_SECONDS:-1500}
readonly REPORTS=$ROOT/build/asan/reports
JOBS=$(nproc)
readonly JOBS
readonly NODE_JOBS=$((JOBS + 1)) # a test waits more than it computes

# ---- the stages ------------------------------------------------------------------------------------------------------

stage_bootstrap() { scripts/bootstrap.sh test; }
stage_engines() { limited bash tests/interop/setup.sh; }
stage_build_gcc() { limited make -j"$JOBS" CC=gcc WERROR=1; }
stage_build_clang() { limited make -j"$JOBS" CC=clang WERROR=1 BUILD=build/clang; }
stage_build_asan() { limited make -j"$JOBS" "${asan_build[@]}"; }
stage_layers() { limited make layers CC=gcc; }
stage_unit() { limited make -k -j"$JOBS" unit CC=gcc WERROR=1; }
# The fuzz targets' corpora and every input that one of them ever failed on.
stage_fuzz_asan() { sanitized limited make -j"$JOBS" fuzz-corpus "${asan_build[@]}"; }
stage_unit_asan() { sanitized limited make -k -j"$JOBS" unit "${asan_build[@]}"; }

readonly asan_build=(CC=clang WERROR=1 'SANITIZE=address,undefined' BUILD=build/asan)

node_tests() { # DIR DAEMON
    local files
    mapfile -t files < <(find "tests/$1" -name node_modules -prune -o -name '*.test.mjs' -print | LC_ALL=C sort)
    if [[ ${#files[@]} -eq 0 ]]; then # node would look everywhere
        echo "no tests/$1/*.test.mjs"
        return
    fi
    LANCEFS=$ROOT/$2 limited node --test --test-concurrency="$NODE_JOBS" \
        --test-reporter=spec --test-reporter-destination=stdout \
        --test-reporter=tap --test-reporter-destination="$tap" "${files[@]}"
}

node_stages() {
    local dir
    for dir in tests/*/; do
        if [[ -n "$(find "$dir" -name node_modules -prune -o -name '*.test.mjs' -print -quit)" ]]; then
            basename "$dir"
        fi
    done
}

all_stages() {
    printf '%s\n' bootstrap build-gcc build-clang build-asan layers engines unit unit-asan fuzz-asan
    printf '%s\n' mount control merge | cat - <(node_stages) | awk '!seen[$0]++'
    printf '%s\n' mount-asan control-asan
}

needs() { # STAGE
    case "$1" in
        bootstrap) ;;
        build-* | layers | engines | unit | unit-asan | fuzz-asan) echo bootstrap ;;
        *-asan) echo bootstrap build-asan engines ;;
        *) echo bootstrap build-gcc engines ;;
    esac
}

run_stage() { # STAGE
    case "$1" in
        bootstrap | engines | layers | build-* | unit | unit-asan | fuzz-asan) "stage_${1//-/_}" ;;
        *-asan) sanitized node_tests "${1%-asan}" build/asan/lancefs ;;
        *) node_tests "$1" build/lancefs ;;
    esac
}

has_tests() { # STAGE
    case "$1" in bootstrap | engines | layers | build-*) return 1 ;; esac
}

# ---- how a stage is run ----------------------------------------------------------------------------------------------

launcher=()

limited() { timeout --foreground --kill-after=20 "$STAGE_SECONDS" "${launcher[@]}" "$@"; }

# Sanitizers write to files, since a daemon has no standard error; a file there fails the stage, whatever tests said.
sanitized() {
    rm -rf "$REPORTS"
    mkdir -p "$REPORTS"
    chmod 1777 "$REPORTS" # for a daemon that a test starts as another user
    local status=0 report
    ASAN_OPTIONS="log_path=$REPORTS/report:detect_leaks=1:detect_stack_use_after_return=1" \
        UBSAN_OPTIONS="log_path=$REPORTS/report:print_stacktrace=1:halt_on_error=1" \
        fixed_addresses "$@" || status=$?
    for report in "$REPORTS"/*; do
        if [[ -e "$report" ]]; then
            echo "sanitizer report ${report##*/}:"
            head -n 80 "$report"
            status=1
        fi
    done
    return $status
}

# The sanitizers of older compilers die at random where the kernel randomizes more address bits than they knew of.
fixed_addresses() {
    local fixed=(setarch "$(uname -m)" --addr-no-randomize)
    if [[ "$(cat /proc/sys/vm/mmap_rnd_bits 2>/dev/null || echo 0)" -gt 28 ]] && "${fixed[@]}" true 2>/dev/null; then
        launcher=("${fixed[@]}")
    fi
    local status=0
    "$@" || status=$?
    launcher=()
    return $status
}

# Shows the output as it comes and keeps it. What a stage started in its process group ends with it.
logged() { # LOG COMMAND...
    local log=$1 pipe=$scratch/pipe status=0 tee
    shift
    rm -f "$pipe"
    mkfifo "$pipe"
    tee "$log" <"$pipe" &
    tee=$!
    set -m
    "$@" >"$pipe" 2>&1 </dev/null &
    job=$!
    set +m
    wait "$job" || status=$?
    end_job
    timeout 10 tail --pid="$tee" -f /dev/null || kill "$tee" 2>/dev/null || true
    wait "$tee" 2>/dev/null || true
    return $status
}

end_job() {
    if [[ -n "$job" ]]; then kill -TERM -- "-$job" 2>/dev/null || true; fi
    job=''
}

# Sums of what cmocka and node:test say of themselves.
count_cmocka() { # WORD LOG
    sed -nE "s/^\[ +$1 +\] ([^:]*: )?([0-9]+) test\(s\).*/\2/p" "$2" | awk '{ n += $1 } END { print n + 0 }'
}

count_node() { # WORD
    if [[ ! -s "$tap" ]]; then
        echo 0
        return
    fi
    sed -nE "s/^# $1 ([0-9]+)$/\1/p" "$tap" | tail -n 1 | awk '{ n = $1 } END { print n + 0 }'
}

unmount_leftovers() {
    local point
    while read -r _ point _; do
        point=$(printf '%b' "$point") # octal escapes
        if [[ "$point" == "$scratch"/* ]]; then
            echo "still mounted, now unmounted: $point"
            fusermount3 -uz "$point" 2>/dev/null || umount -l "$point" 2>/dev/null || true
        fi
    done </proc/self/mounts
}

declare -A broken=()
names=() seconds=() passes=() fails=() skips=() notes=()
passed=0 failed=0
job='' # process group of the running stage

stage() { # NAME
    local name=$1 log=$scratch/$1.log status=0 start=$SECONDS ok=0 bad=0 skip=0 note='' need
    tap=$scratch/$name.tap
    printf '\n==== %s\n' "$name"
    for need in $(needs "$name"); do
        if [[ "$need" == build-* && -n "${broken[$need]-}" ]]; then note="not run, $need failed" bad=1; fi
    done
    if [[ -z "$note" ]]; then
        logged "$log" run_stage "$name" || status=$?
        unmount_leftovers
        if has_tests "$name"; then
            ok=$(($(count_cmocka PASSED "$log") + $(count_node pass)))
            bad=$(($(count_cmocka FAILED "$log") + $(count_node fail) + $(count_node cancelled)))
            skip=$(($(count_cmocka SKIPPED "$log") + $(count_node skipped) + $(count_node todo)))
            if [[ $((ok + bad)) -eq 0 ]]; then note='ran no test' bad=1; fi
        fi
        if [[ $status -eq 124 || $status -eq 137 ]]; then
            note="stopped after $STAGE_SECONDS s" bad=$((bad + 1))
        elif [[ $status -ne 0 && $bad -eq 0 ]]; then
            note="exit status $status" bad=1
        fi
    fi
    if [[ $bad -gt 0 ]]; then broken[$name]=1; fi
    names+=("$name") seconds+=($((SECONDS - start))) passes+=("$ok") fails+=("$bad") skips+=("$skip") notes+=("$note")
    passed=$((passed + ok)) failed=$((failed + bad))
    printf -- '---- %s: %s passed, %s failed, %s skipped in %s s%s\n' \
        "$name" "$ok" "$bad" "$skip" "$((SECONDS - start))" "${note:+ ($note)}"
}

summary() {
    local i
    printf '\n%-14s %8s %8s %8s %8s\n' stage passed failed skipped seconds
    for i in "${!names[@]}"; do
        printf '%-14s %8s %8s %8s %8s  %s\n' \
            "${names[i]}" "${passes[i]}" "${fails[i]}" "${skips[i]}" "${seconds[i]}" "${notes[i]}"
    done
    printf '\n%s passed, %s failed\n' "$passed" "$failed"
}

clean_up() {
    end_job
    unmount_leftovers
    rm -rf --one-file-system "$scratch"
}

main() {
    local all wanted=() name need
    mapfile -t all < <(all_stages)
    if [[ "${1-}" == -l ]]; then
        printf '%s\n' "${all[@]}"
        return
    fi
    for name in "$@"; do
        if ! printf '%s\n' "${all[@]}" | grep -qxF -- "$name"; then
            echo "test.sh: no stage $name; there are: ${all[*]}" >&2
            exit 2
        fi
        wanted+=("$name")
        for need in $(needs "$name"); do wanted+=("$need"); done
    done
    if [[ $# -eq 0 ]]; then wanted=("${all[@]}"); fi

    scratch=$(mktemp -d)
    chmod 1777 "$scratch"
    trap clean_up EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM
    export TMPDIR=$scratch/tmp
    mkdir -m 1777 "$TMPDIR"
    export PATH=$ROOT/build/node/node_modules/node/bin:$PATH
    for name in "${all[@]}"; do
        if printf '%s\n' "${wanted[@]}" | grep -qxF -- "$name"; then stage "$name"; fi
    done
    summary
    [[ $failed -eq 0 ]]
}

main "$@"

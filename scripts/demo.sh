#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Shows what lancefs is for on a real data set, on a fresh Debian or Ubuntu: installs what is missing, builds, mounts a
# copy of tests/data/photos.lance and merges a branch with echo.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly ROOT=$PWD

# Prints a command as a person types it, and runs it.
typed() {
    printf '\n%s$ %s%s\n' "$bold" "$1" "$plain"
    eval "$1"
}

# What README shows as the first session; tests/docs/ compares the two.
session() {
    typed 'lancefs photos.lance mnt'
    typed 'ls mnt/tree'
    typed 'grep -c lance$ mnt/tree/main/.files'
    typed 'echo feature > mnt/tree/main/.merge'
    typed "grep -v '^#' mnt/tree/main/.merge"
    typed 'grep -c lance$ mnt/tree/main/.files'
    typed 'fusermount3 -u mnt'
}

prepare() {
    scripts/bootstrap.sh build
    echo "Building lancefs"
    make --silent -j"$(nproc)"
    if [[ ! -e /dev/fuse ]]; then
        echo "demo.sh: there is no /dev/fuse here (in a container: --device /dev/fuse --cap-add SYS_ADMIN)" >&2
        exit 1
    fi
    cp -r tests/data/photos.lance "$scratch/photos.lance"
    mkdir "$scratch/mnt"
    PATH=$ROOT/build:$PATH
}

clean_up() {
    cd /
    if mountpoint --quiet "$scratch/mnt" 2>/dev/null; then
        fusermount3 -u "$scratch/mnt" || fusermount3 -uz "$scratch/mnt" || true
    fi
    rm -rf --one-file-system "$scratch"
}

bold='' plain=''
if [[ -t 1 ]]; then bold=$'\e[1m' plain=$'\e[0m'; fi
scratch=$(mktemp -d)
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
prepare
cd "$scratch"
session

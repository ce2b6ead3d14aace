#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Makes README's pictures of a merge and of a rebase from what a mount of tests/data/photos.lance really says. LANCEFS names the
# program, build/lancefs if not set.
#
#     scripts/pictures.sh [DIRECTORY]      pictures/ if not given
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
lancefs=${LANCEFS:-build/lancefs}
pictures=${1:-pictures}
scratch=$(mktemp -d)
clean_up() {
    if mountpoint --quiet "$scratch/mnt"; then fusermount3 -uz "$scratch/mnt"; fi
    rm -rf --one-file-system "$scratch"
}
trap clean_up EXIT

fresh() {
    rm -rf "$scratch/photos.lance"
    cp -r tests/data/photos.lance "$scratch/photos.lance"
    mkdir -p "$scratch/mnt"
    "$lancefs" "$scratch/photos.lance" "$scratch/mnt"
}
tree=$scratch/mnt/tree
mkdir -p "$pictures"

fresh
echo feature >"$tree/main/.merge"
cat "$tree/main/.log.graph" >"$scratch/merged"
fusermount3 -u "$scratch/mnt"
node scripts/draw-history.mjs "main, after: echo feature > .merge=$scratch/merged" >"$pictures/merge.svg"

fresh
rmdir "$tree/feature/relabel"
cat "$tree/feature/.log.graph" >"$scratch/before"
echo main >"$tree/feature/.rebase"
cat "$tree/feature/.log.graph" >"$scratch/after"
fusermount3 -u "$scratch/mnt"
node scripts/draw-history.mjs "feature=$scratch/before" "feature, after: echo main > .rebase=$scratch/after" >"$pictures/rebase.svg"

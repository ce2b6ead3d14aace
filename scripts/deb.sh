#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds the Debian source and binary packages of this checkout into build/deb with dpkg-buildpackage, and has lintian look at
# them: its errors fail. Installs what that needs. The unit tests are not run (scripts/test.sh does).
#
#     scripts/deb.sh             source and binary packages
#     scripts/deb.sh source      the source package alone, in seconds
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly ROOT=$PWD OUT=$PWD/build/deb
version=$(sed -n 's/^#define LFS_VERSION "\(.*\)"/\1/p' core/version.h)
packaged=$(sed -n '1s/.*(\(.*\)-[^-]*).*/\1/p' scripts/debian/changelog)
if [[ "$version" != "$packaged" ]]; then
    echo "deb.sh: core/version.h says $version, scripts/debian/changelog $packaged" >&2
    exit 1
fi

scripts/bootstrap.sh deb
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
tree=$scratch/lancefs-$version
mkdir "$tree"
tar --exclude=./build --exclude=./.git --exclude=node_modules -cf - . | tar -C "$tree" -xf - --no-same-owner
tar -C "$scratch" --exclude="lancefs-$version/scripts/debian" -caf "$scratch/lancefs_$version.orig.tar.xz" "lancefs-$version"
cp -r "$tree/scripts/debian" "$tree/debian"
rm -r "$tree/scripts/debian"

kind=()
if [[ "${1-}" == source ]]; then kind=(--build=source); fi
(cd "$tree" && DEB_BUILD_OPTIONS="nocheck parallel=$(nproc)" DEB_BUILD_PROFILES=nocheck dpkg-buildpackage --no-sign "${kind[@]}")
rm -rf "$OUT"
mkdir -p "$OUT"
find "$scratch" -maxdepth 1 -type f -exec cp -t "$OUT" {} +
cd "$OUT"
lintian --fail-on error --allow-root ./*.changes
echo "$OUT:"
ls "$OUT"

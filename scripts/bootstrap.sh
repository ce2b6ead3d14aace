#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing to build lancefs, or to test it, from the distribution's packages (Debian 12 and later,
# Ubuntu 22.04 and later). Says what it installs and why; does nothing when all is there.
#
#     scripts/bootstrap.sh build      what `make` needs
#     scripts/bootstrap.sh test       that, and what scripts/test.sh needs
#     scripts/bootstrap.sh bench      that, and the peers of scripts/bench.sh
#     scripts/bootstrap.sh deb        what `make` and scripts/deb.sh need
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

readonly NODE_MAJOR=20 # the tests use node:test, and both engines run on it

# What is missing: parallel arrays of packages and reasons. A package may be several names joined by |: the first one
# that the release knows is installed.
packages=()
reasons=()

installed() { # PACKAGE
    [[ "$(dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null)" == installed ]]
}

need_package() { # PACKAGE WHY
    if ! installed "$1"; then
        packages+=("$1")
        reasons+=("$2")
    fi
}

need_command() { # COMMAND PACKAGE WHY
    if ! PATH="$PATH:/usr/sbin:/sbin" command -v "$1" >/dev/null; then
        packages+=("$2")
        reasons+=("$3")
    fi
}

needed_to_build() {
    need_command gcc gcc "C compiler"
    need_package libc6-dev "C library headers"
    need_command make make "runs the Makefile"
    need_command pkg-config pkg-config "finds the libraries"
    need_package libfuse3-dev "FUSE, the kernel's side of the mount"
    need_command fusermount3 fuse3 "mounts and unmounts for users"
    need_package libprotobuf-c-dev "manifests and transactions"
    need_command protoc-c protobuf-c-compiler "makes C of the .proto files"
    need_package libroaring-dev "deletion vectors"
    need_package libjansson-dev "branch and tag files"
    need_package libzstd-dev "compressed deletion files"
    need_package uuid-dev "names of commits and lines"
}

needed_to_test() {
    need_package libcmocka-dev "unit tests"
    need_command clang clang "the second compiler, and the sanitizers"
    need_sanitizers
    need_command llvm-symbolizer llvm "lines of code in the sanitizers' reports"
    need_command protoc protobuf-compiler "decodes what stock engines wrote"
    if ! node_is_good; then need_command node nodejs "runs the tests of the mount"; fi
    need_command npm npm "installs the stock Lance engines"
    need_package ca-certificates "npm over https"
    need_command python3 python3 "another program that reads and writes the mount"
    need_command busybox busybox "another shell's tools on the mount"
    need_command vim vim "an editor that writes control files"
    need_command ed ed "an editor that writes control files"
    need_command patch patch "a tool that must not write them"
    need_command rsync rsync "copies from the mount"
    need_command getfattr attr "extended attributes"
    need_command setpriv util-linux "runs as another user"
    need_command unshare util-linux "mount namespaces"
    need_command mount mount "mount -t fuse.lancefs"
    need_command xxd xxd "shows bytes"
    need_command ps procps "looks at processes"
    need_command valgrind valgrind "counts the instructions of a merge"
}

needed_to_bench() {
    need_command bindfs bindfs "another FUSE file system, to compare with"
    need_command fuse-overlayfs fuse-overlayfs "another FUSE file system, to compare with"
}

needed_to_package() {
    need_command dpkg-buildpackage dpkg-dev "builds Debian packages"
    need_command dh debhelper "builds Debian packages"
    need_command fakeroot fakeroot "builds Debian packages"
    need_command lintian lintian "looks at them"
    need_command xz xz-utils "the source package"
}

# The sanitizers' libraries are in libclang-rt-dev; on Ubuntu 22.04 in what clang itself depends on.
need_sanitizers() {
    if ! echo 'int main(void) { return 0; }' |
        clang -fsanitize=address,undefined -xc - -o /dev/null 2>/dev/null; then
        packages+=("libclang-rt-dev|libclang-common-14-dev")
        reasons+=("AddressSanitizer, UndefinedBehaviorSanitizer")
    fi
}

node_is_good() {
    command -v node >/dev/null && [[ "$(node -p 'parseInt(process.versions.node)')" -ge $NODE_MAJOR ]]
}

as_root() {
    if [[ "$(id -u)" -eq 0 ]]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        echo "bootstrap.sh: to install packages be root, or install sudo" >&2
        return 1
    fi
}

# Of NAME|NAME... the first that this release has.
choose() {
    local name
    for name in ${1//|/ }; do
        if apt-cache show --no-all-versions "$name" >/dev/null 2>&1; then
            echo "$name"
            return
        fi
    done
    echo "bootstrap.sh: this release has no package ${1//|/ or }" >&2
    return 1
}

install_packages() {
    if [[ ${#packages[@]} -eq 0 ]]; then return; fi
    if ! command -v apt-get >/dev/null; then
        echo "bootstrap.sh: there is no apt-get here; install by hand what these Debian packages bring:" >&2
        printf '  %s\n' "${packages[@]%%|*}" >&2
        return 1
    fi
    as_root apt-get update -qq || echo "bootstrap.sh: apt-get update failed; going on with the lists that are there" >&2
    local i name names=()
    echo "Installing:"
    for i in "${!packages[@]}"; do
        name=$(choose "${packages[i]}")
        printf '  %-24s %s\n' "$name" "${reasons[i]}"
        names+=("$name")
    done
    local log
    log=$(mktemp)
    if ! as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${names[@]}" \
        >"$log" 2>&1 </dev/null; then
        cat "$log" >&2
        rm -f "$log"
        return 1
    fi
    rm -f "$log"
}

# A release whose Node is too old gets it from npm, whose package `node` ships the binary. Who needs it puts
# build/node/node_modules/node/bin before PATH, as test.sh does.
install_node() {
    local bin=build/node/node_modules/node/bin
    PATH="$PWD/$bin:$PATH"
    if node_is_good; then return; fi
    echo "Installing:"
    printf '  %-24s %s\n' "node@$NODE_MAJOR (npm)" "the release's Node is too old: $(node --version)"
    mkdir -p build/node
    (cd build/node && npm install --prefix . --no-audit --no-fund --silent "node@$NODE_MAJOR" </dev/null)
    hash -r
    if ! node_is_good; then
        echo "bootstrap.sh: no Node $NODE_MAJOR or later in $bin" >&2
        return 1
    fi
}

case "${1-}" in
    build)
        needed_to_build
        install_packages
        ;;
    test | bench)
        needed_to_build
        needed_to_test
        if [[ "$1" == bench ]]; then needed_to_bench; fi
        install_packages
        install_node
        ;;
    deb)
        needed_to_build
        needed_to_package
        install_packages
        ;;
    *)
        echo "usage: scripts/bootstrap.sh build|test|bench|deb" >&2
        exit 2
        ;;
esac

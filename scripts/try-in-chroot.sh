#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Tries this checkout on a fresh minimal Debian: debootstraps SUITE into a temporary directory, copies the checkout there
# and runs scripts in it, demo.sh (as root and as a user) and test.sh by default. Everything lives in mount and process
# namespaces of its own and is removed at the end, whatever happens. Needs root, debootstrap and /dev/fuse.
#
#     scripts/try-in-chroot.sh [-b TREE] SUITE [COMMAND...]
#
#     -b TREE    copy this tree instead of running debootstrap (one that `debootstrap --variant=minbase` made)
#
# Packages come from where this machine's own apt and npm get them; CHROOT_MIRROR names another Debian mirror.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
readonly ROOT=$PWD

usage() {
    echo "usage: scripts/try-in-chroot.sh [-b TREE] SUITE [COMMAND...]" >&2
    exit 2
}

base=''
while getopts b: option; do
    case $option in
        b) base=$OPTARG ;;
        *) usage ;;
    esac
done
shift $((OPTIND - 1))
if [[ $# -lt 1 ]]; then usage; fi
if [[ "$(id -u)" -ne 0 ]]; then
    echo "try-in-chroot.sh: only root can do this" >&2
    exit 1
fi

# The mirror of this machine's main Debian archive, as apt knows it.
mirror() {
    if [[ -n "${CHROOT_MIRROR-}" ]]; then
        echo "$CHROOT_MIRROR"
        return
    fi
    # shellcheck disable=SC2016 # apt's own variables
    apt-get indextargets --format '$(REPO_URI) $(LABEL) $(COMPONENT)' 'Created-By: Packages' |
        awk '$2 == "Debian" && $3 == "main" { print $1; exit }'
}

# What this machine needs to reach its package sources: resolver, certificates, apt's and npm's own settings.
copy_network_settings() { # TREE
    local tree=$1 certificates=/etc/ssl/certs/ca-certificates.crt setting value
    cp -L /etc/resolv.conf /etc/hosts "$tree/etc/"
    apt-config dump | grep -E '^Acquire::(http|https|Check-Valid-Until|Check-Date|Retries)' \
        >"$tree/etc/apt/apt.conf.d/90try" || true
    : >"$tree/root/environment"
    if [[ -e $certificates ]]; then
        cp -L $certificates "$tree/etc/try-certificates.crt"
        {
            echo "NODE_EXTRA_CA_CERTS=/etc/try-certificates.crt"
            echo "npm_config_cafile=/etc/try-certificates.crt"
        } >>"$tree/root/environment"
    fi
    for setting in http_proxy https_proxy no_proxy; do
        if [[ -n "${!setting-}" ]]; then echo "$setting=${!setting}" >>"$tree/root/environment"; fi
    done
    if command -v npm >/dev/null; then
        for setting in registry proxy https-proxy; do
            value=$(npm config get $setting)
            if [[ -n "$value" && "$value" != null ]]; then
                echo "npm_config_${setting//-/_}=$value" >>"$tree/root/environment"
            fi
        done
    fi
}

copy_checkout() { # TREE
    mkdir -p "$1/src/lancefs"
    tar -C "$ROOT" --exclude=./build --exclude=./.git -cf - . | tar -C "$1/src/lancefs" -xf - --no-same-owner
}

inside() { # TREE COMMAND: in the new namespaces
    local tree=$1 environment
    shift
    mount -t proc proc "$tree/proc"
    if [[ ! -e $tree/etc/mtab ]]; then ln -s /proc/self/mounts "$tree/etc/mtab"; fi # as every booted system has it
    if [[ ! -e $tree/dev/fuse ]]; then mknod -m 0666 "$tree/dev/fuse" c 10 229; fi
    mapfile -t environment <"$tree/root/environment"
    chroot "$tree" env -i HOME=/root LANG=C.UTF-8 CI=true \
        PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin "${environment[@]}" \
        bash -c "cd /src/lancefs && $*" </dev/null
}

# The demo as root, which installs and builds, then as a user who only has /dev/fuse, then the tests.
readonly DEFAULT_COMMAND='scripts/demo.sh && echo && echo "==== the demo as a user" &&
    useradd -m someone && chown -R someone . && su someone -c scripts/demo.sh && chown -R root . && scripts/test.sh'

child=''
# shellcheck disable=SC2317 # called by traps
clean_up() {
    if [[ -n "$child" ]]; then # unshare is deaf to everything else; what runs inside dies with it
        kill -KILL "$child" 2>/dev/null || true
        wait "$child" 2>/dev/null || true
    fi
    rm -rf --one-file-system "$tree" "$tree.log"
}

if [[ "${TRY_INSIDE-}" == 1 ]]; then # again, in the new namespaces: SUITE is the tree
    inside "$@"
    exit
fi

suite=$1
shift
tree=$(mktemp -d)
chmod 0755 "$tree"
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
if [[ -n "$base" ]]; then
    cp -a "$base/." "$tree/"
else
    uri=$(mirror)
    if [[ -z "$uri" ]]; then
        echo "try-in-chroot.sh: apt-get update first, or set CHROOT_MIRROR" >&2
        exit 1
    fi
    debootstrap --variant=minbase "$suite" "$tree" "$uri" >"$tree.log" 2>&1 || {
        cat "$tree.log"
        exit 1
    }
fi
copy_network_settings "$tree"
copy_checkout "$tree"
TRY_INSIDE=1 unshare --mount --propagation private --pid --fork --kill-child \
    "$ROOT/scripts/try-in-chroot.sh" "$tree" "${*:-$DEFAULT_COMMAND}" &
child=$!
status=0
wait $child || status=$?
child=''
exit $status

#!/usr/bin/env bash
# Find what the tests need from outside Python, or install Debian's packages where that is possible.
# Never fails: without them those tests are skipped (and fail where CI=true).
set -euo pipefail

# What for; the package or packages, by a space; commands of which one must be there (each must, with "all").
need() {
    local purpose=$1 packages=$2 rule=$3 found=0 name
    shift 3
    for name in "$@"; do
        if command -v "$name" >/dev/null; then found=$((found + 1)); fi
    done
    if [[ $found -eq $# || ($rule == any && $found -gt 0) ]]; then
        return
    fi
    if [[ $(id -u) -eq 0 ]] && command -v apt-get >/dev/null; then
        echo "Installing $packages for $purpose"
        export DEBIAN_FRONTEND=noninteractive
        # shellcheck disable=SC2086
        if apt-get update -qq && apt-get install -y -qq --no-install-recommends $packages >/dev/null; then
            return
        fi
        echo "apt-get could not install $packages" >&2
    fi
    echo "No $* on the PATH: $purpose cannot run." >&2
    echo "On Debian or Ubuntu: sudo apt-get install $packages" >&2
}

need "the browser tests" "chromium" any chromium chromium-browser google-chrome
need "the tests of the firmware" "gcc-arm-none-eabi libnewlib-arm-none-eabi qemu-system-arm" all \
    arm-none-eabi-gcc qemu-system-arm
need "the tests of mlsys grade --run" "bubblewrap" any bwrap

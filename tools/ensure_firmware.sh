#!/usr/bin/env bash
# Find a compiler for Cortex-M and QEMU, or install Debian's where that is possible.
# Never fails: without them the firmware's tests are skipped (and fail where CI=true).
set -euo pipefail

missing=()
command -v arm-none-eabi-gcc >/dev/null || missing+=(gcc-arm-none-eabi libnewlib-arm-none-eabi)
command -v qemu-system-arm >/dev/null || missing+=(qemu-system-arm)
if [[ ${#missing[@]} -eq 0 ]]; then
    exit 0
fi

if [[ $(id -u) -eq 0 ]] && command -v apt-get >/dev/null; then
    echo "Installing ${missing[*]} for the tests of the firmware"
    export DEBIAN_FRONTEND=noninteractive
    if apt-get update -qq && apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null; then
        exit 0
    fi
    echo "apt-get could not install ${missing[*]}" >&2
fi

echo "Missing for the firmware: ${missing[*]}. Its tests cannot run." >&2
echo "On Debian or Ubuntu: sudo apt-get install ${missing[*]}" >&2

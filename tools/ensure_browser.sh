#!/usr/bin/env bash
# Find a Chromium for the browser tests, or install Debian's where that is possible.
# Never fails: without a browser the tests are skipped (and fail where CI=true).
set -euo pipefail

for name in chromium chromium-browser google-chrome; do
    if command -v "$name" >/dev/null; then
        exit 0
    fi
done

if [[ $(id -u) -eq 0 ]] && command -v apt-get >/dev/null; then
    echo "Installing chromium for the browser tests"
    export DEBIAN_FRONTEND=noninteractive
    if apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium >/dev/null; then
        exit 0
    fi
    echo "apt-get could not install chromium" >&2
fi

echo "No chromium on the PATH: the browser tests cannot run." >&2
echo "On Debian or Ubuntu: sudo apt-get install chromium. Elsewhere: put chromium or google-chrome on the PATH." >&2

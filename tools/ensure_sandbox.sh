#!/usr/bin/env bash
# Find bubblewrap for the tests of `mlsys grade --run`, or install Debian's where that is possible.
# Never fails: without it those tests are skipped (and fail where CI=true).
set -euo pipefail

if command -v bwrap >/dev/null; then
    exit 0
fi

if [[ $(id -u) -eq 0 ]] && command -v apt-get >/dev/null; then
    echo "Installing bubblewrap for the tests of mlsys grade --run"
    export DEBIAN_FRONTEND=noninteractive
    if apt-get update -qq && apt-get install -y -qq --no-install-recommends bubblewrap >/dev/null; then
        exit 0
    fi
    echo "apt-get could not install bubblewrap" >&2
fi

echo "No bwrap on the PATH: mlsys grade --run cannot be tested." >&2
echo "On Debian or Ubuntu: sudo apt-get install bubblewrap." >&2

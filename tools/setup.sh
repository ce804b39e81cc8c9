#!/usr/bin/env bash
# Make or update the virtual environment named by the first argument.
set -euo pipefail

venv=$1
cd "$(dirname "$0")/.."

# The first Python from 3.11 on that can make a virtual environment; 3.11 first, because the pins were chosen on it.
find_python() {
    local candidate
    for candidate in python3.11 python3.12 python3.13 python3 python; do
        if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    return 1
}

if [[ ! -x $venv/bin/python ]]; then
    if ! python=$(find_python); then
        echo "mlsys needs Python 3.11 or newer with its venv module, and none was found on the PATH." >&2
        echo "On Debian or Ubuntu: apt-get install python3 python3-venv" >&2
        exit 1
    fi
    echo "Making $venv with $python"
    "$python" -m venv "$venv"
fi

echo "Installing the pinned requirements (a minute or two)"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --requirement requirements.txt
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-deps --editable . --editable evidence
echo "Ready: $venv"

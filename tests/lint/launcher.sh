#!/bin/sh -e
# The launcher (deploy/cluster/*.py): Python takes it, and mypy finds nothing. 77 where there is no mypy.
cd "$(dirname "$0")/../.."
PYTHONPYCACHEPREFIX=build/pycache "${PYTHON:-python3}" -m py_compile deploy/cluster/*.py
command -v mypy >/dev/null || {
    echo "no mypy here"
    exit 77
}
mypy --cache-dir=build/mypy --ignore-missing-imports deploy/cluster/*.py

#!/usr/bin/env bash
# cppcheck.sh [JOBS]: what cppcheck is sure of. Suppressions: see cppcheck.txt.
if ! command -v cppcheck >/dev/null; then
    echo "no cppcheck here"
    exit 77
fi
mkdir -p build/cppcheck
exec cppcheck --quiet --std=c11 --platform=unix64 --enable=warning,performance,portability \
    --inline-suppr --suppressions-list=tests/lint/cppcheck.txt --cppcheck-build-dir=build/cppcheck \
    --template='{file}:{line}: {severity}: {message} [{id}]' --error-exitcode=1 \
    -j"${1:-1}" -D__GNUC__ -I. common proto ttserver worker tests/chaos

#!/usr/bin/env bash
# Fails when a tracked C++ file is not as clang-format-19 would write it. `--fix` rewrites it.
set -euo pipefail
cd "$(dirname "$0")/.."
mode=(--dry-run -Werror)
[[ "${1:-}" == --fix ]] && mode=(-i)
git ls-files -z '*.h' '*.cpp' '*.c' | xargs -0 -n 16 -P 2 clang-format-19 "${mode[@]}"

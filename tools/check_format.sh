#!/usr/bin/env bash
# Fails when a tracked C++ file is not as clang-format-19 would write it. `--fix` rewrites it.
set -euo pipefail
cd "$(dirname "$0")/.."
mode=(--dry-run -Werror)
[[ "${1:-}" == --fix ]] && mode=(-i)
git ls-files -z 'src/*.h' 'src/*.cpp' 'src/*.c' 'fuzz/*.h' 'fuzz/*.cpp' 'tools/*.cpp' | xargs -0 -n 16 -P 2 clang-format-19 "${mode[@]}"

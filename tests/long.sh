#!/usr/bin/env bash
# The long suites of scripts/test.sh --full: thread sanitizer, sandbox tests under address sanitizer, fuzzing, two equal builds.
# FUZZ_SECONDS (600) each.
set -uo pipefail
cd "$(dirname "$0")/.."
status=0
(cmake --preset tsan && cmake --build --preset tsan) >/dev/null && tests/run_unit.py build/tsan --label unit || status=1
tests/run_unit.py build/asan --label sandbox --jobs 1 || status=1
(cmake --preset fuzz && cmake --build --preset fuzz) >/dev/null && fuzz/run.sh "${FUZZ_SECONDS:-600}" || status=1
tests/reproducible.sh || status=1
exit $status

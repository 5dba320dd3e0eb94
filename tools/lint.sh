#!/usr/bin/env bash
# Every check that needs no running program, a line each. `tools/lint.sh format tree` runs only those named.
# LINT_BUDGET: seconds each for coroutines and tidy before they stop starting new work. What is left is named, and fails the
# check when LINT_COMPLETE is 1.
set -uo pipefail
cd "$(dirname "$0")/.."
budget=(--budget "${LINT_BUDGET:-600}")
[[ "${LINT_COMPLETE:-0}" == 1 ]] && budget+=(--complete)
log="$(mktemp)"
trap 'rm -f "$log"' EXIT
failed=0 passed=0
wanted=" $* "

check() {
  local name="$1" start=$SECONDS
  shift
  [[ "$wanted" == "  " || "$wanted" == *" $name "* ]] || return 0
  if "$@" >"$log" 2>&1 </dev/null; then
    passed=$((passed + 1))
    printf 'ok    %-12s %4ds  %s\n' "$name" $((SECONDS - start)) "$(tail -n 1 "$log")"
  else
    failed=$((failed + 1))
    printf 'FAIL  %-12s %4ds\n' "$name" $((SECONDS - start))
    tail -n 60 "$log" | sed 's/^/      /'
  fi
}

layers() { tools/check_layers.py --self-test && tools/check_layers.py; }
shell() { git ls-files -z '*.sh' .ci/run | xargs -0 -n 1 bash -n; }
python() { git ls-files -z '*.py' | xargs -0 python3 -c 'import ast,sys
for name in sys.argv[1:]: ast.parse(open(name, encoding="utf-8").read(), name)'; }
headers() { cmake --preset tidy && cmake --build --preset headers -j 2; }
coroutines() { tools/check_coroutines.py --self-test && tools/check_coroutines.py "${budget[@]}"; }
tidy() { tools/check_tidy.py --self-test && tools/check_tidy.py "${budget[@]}"; }

check layers layers
check tree tools/check_tree.py
check format tools/check_format.sh
check shell shell
check python python
check headers headers
check coroutines coroutines
check tidy tidy
echo "lint: $passed passed, $failed failed"
exit $((failed > 0))

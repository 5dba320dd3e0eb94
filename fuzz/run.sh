#!/usr/bin/env bash
# Runs every fuzz target of build/fuzz for some seconds each: fuzz/run.sh 60. A crash leaves its input in build/fuzz/crashes.
set -uo pipefail
cd "$(dirname "$0")/.."
seconds="${1:-60}" failed=0 passed=0
mkdir -p build/fuzz/crashes
for target in build/fuzz/fuzz/fuzz_*; do
  [[ -x "$target" ]] || continue
  name="${target##*/fuzz_}"
  corpus="build/fuzz/corpus/$name"
  mkdir -p "$corpus"
  seeds=()
  [[ -d "fuzz/corpus/$name" ]] && seeds=("fuzz/corpus/$name")
  if "$target" -max_total_time="$seconds" -max_len=8192 -timeout=10 -rss_limit_mb=2048 -print_final_stats=1 -verbosity=0 \
      -artifact_prefix="build/fuzz/crashes/$name-" "$corpus" "${seeds[@]}" >"build/fuzz/$name.log" 2>&1; then
    passed=$((passed + 1))
    echo "ok    $name  $(grep -o 'number_of_executed_units: [0-9]*' "build/fuzz/$name.log")"
  else
    failed=$((failed + 1))
    echo "FAIL  $name"
    tail -n 30 "build/fuzz/$name.log" | sed 's/^/      /'
  fi
done
echo "fuzz: $passed passed, $failed failed"
((failed == 0 && passed > 0))

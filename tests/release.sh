#!/usr/bin/env bash
# What users run is what we say it is: hardened, without the debug information that lies beside it, nothing of this machine in it.
set -u  # no pipefail: grep -q ends as soon as it has found something, and what feeds it dies of that
cd "$(dirname "$0")/.."
program=build/release/prims passed=0 failed=0

check() {
  if eval "$2"; then passed=$((passed + 1)); else failed=$((failed + 1)); echo "FAIL  $1"; fi
}

check "position independent" 'readelf -h $program | grep -q "DYN"'
check "relocations are read-only and bound at start" 'readelf -d $program | grep -q "BIND_NOW\|NOW" && readelf -l $program | grep -q GNU_RELRO'
check "the stack is not executable" 'readelf -lW $program | grep GNU_STACK | grep -qv "RWE"'
check "stack protector" 'readelf -sW --dyn-syms $program | grep -q __stack_chk_fail'
check "fortified" 'readelf -sW --dyn-syms $program | grep -q "_chk@"'
check "no debug sections" '! readelf -SW $program | grep -q "\.debug_info"'
check "debug information beside it" '[[ -s $program.debug ]] && readelf -SW $program.debug | grep -q "\.debug_info"'
check "linked to it" 'readelf -SW $program | grep -q gnu_debuglink'
check "no folder of this machine" '! strings -n 6 $program | grep -qF "$PWD/"'
check "says its version" '[[ "$($program --version)" == *"$(cat VERSION)"* ]]'
echo "release: $passed passed, $failed failed"
((failed == 0))

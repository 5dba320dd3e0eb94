#!/usr/bin/env bash
# Installs what the tests need, builds, and runs everything; within 45 minutes on 2 cores from a clean clone.
#
#   scripts/test.sh                 all suites
#   scripts/test.sh unit e2e        some suites (setup and builds they need run as well)
#   scripts/test.sh --full          the long versions too
#   scripts/test.sh --list          names of the suites
#
# Each suite prints its budget and the time it took. The last line is the sum of all tests; the exit status is not 0 when one
# failed. As root the suites that make sandboxes run once more as an ordinary user. PRIMS_MCP_SCHEMA_DIR may name a folder with
# the official JSON schemas of MCP; without it the official types package judges the messages.
set -uo pipefail
cd "$(dirname "$0")/.."

test_user=prims-test
clients="$PWD/build/clients"
logs="$PWD/build/test-logs"
full=0 wanted=()
# name, budget in seconds, what it is
suites=(
  "setup      150  packages of the system"
  "build      380  dev and release builds"
  "lint       300  layers, format, headers, coroutine rule, clang-tidy"
  "unit       140  unit tests"
  "sandbox     45  sandbox tests, as root"
  "sandbox-user  30  sandbox tests, as an ordinary user"
  "quickstart  30  scripts/quickstart.sh --check, and what the release build is"
  "e2e        450  the real program, as root"
  "e2e-plain  420  the same without templates"
  "e2e-user   300  the real program, as an ordinary user"
  "clients     90  official MCP clients"
  "asan       330  unit tests with address and undefined-behaviour sanitizers"
)
for option in "$@"; do
  case "$option" in
    --full) full=1; suites+=("long       7200  every mode, soak, long fuzzing, reproducible build") ;;
    --list) printf '%s\n' "${suites[@]}"; exit 0 ;;
    -h|--help) sed -n '2,12s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*) echo "test: unknown option $option (--full, --list)" >&2; exit 2 ;;
    *) wanted+=("$option") ;;
  esac
done
unset PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE

passed=0 failed=0 skipped=0
mkdir -p "$logs"

is_wanted() {
  local name
  ((${#wanted[@]})) && [[ "$1" != setup && "$1" != build ]] || return 0
  for name in "${wanted[@]}"; do [[ "$name" == "$1" ]] && return 0; done
  return 1
}

# Adds the "N passed, N failed, N skipped" lines of a suite's log to the totals; `sum` is what they say together. A suite that
# failed without saying so counts as one failure.
count() {
  local log="$1" status="$2" p=0 f=0 s=0 line
  while read -r line; do
    [[ "$line" =~ ([0-9]+)\ passed,\ ([0-9]+)\ failed ]] && p=$((p + BASH_REMATCH[1])) f=$((f + BASH_REMATCH[2]))
    [[ "$line" =~ failed,\ ([0-9]+)\ skipped ]] && s=$((s + BASH_REMATCH[1]))
  done < <(grep -E '^[a-z0-9-]+: [0-9]+ passed, [0-9]+ failed' "$log")
  ((status == 0 && p + f == 0)) && p=1
  ((status != 0 && f == 0)) && f=1
  passed=$((passed + p)) failed=$((failed + f)) skipped=$((skipped + s))
  sum="$p passed, $f failed, $s skipped"
}

run_suite() {
  local name="$1" budget="$2" what="$3" start=$SECONDS status=0 used sum
  printf '\n== %s: %s (budget %d s, %d s since the start)\n' "$name" "$what" "$budget" "$SECONDS"
  "suite_${name//-/_}" 2>&1 </dev/null | tee "$logs/$name.log" || status=$?
  used=$((SECONDS - start))
  count "$logs/$name.log" "$status"
  summary+=("$(printf '%-13s %5d s of %5d s  %s' "$name" "$used" "$budget" "$sum")")
  ((used <= budget)) || summary+=("$(printf '%-13s took longer than its budget' "$name")")
}

suite_setup() { scripts/setup_env.sh --no-build --tests; }

suite_build() {
  cmake --preset dev && cmake --build --preset dev && scripts/setup_env.sh
}

suite_lint() { LINT_BUDGET=$((full ? 3600 : 300)) LINT_COMPLETE=$full tools/lint.sh; }
suite_unit() { tests/run_unit.py build/dev --label unit; }
suite_sandbox() { tests/run_unit.py build/dev --label sandbox --jobs 1; }
suite_quickstart() { scripts/quickstart.sh --check && tests/release.sh; }

make_user() {
  id "$test_user" >/dev/null 2>&1 || useradd --create-home --shell /usr/sbin/nologin "$test_user"
}

suite_sandbox_user() {
  if ((EUID != 0)); then
    echo "already an ordinary user"
    return
  fi
  make_user && tests/run_unit.py build/dev --label sandbox --user "$test_user" --jobs 1
}

# Locked: hashes for Python, package-lock.json for npm; install scripts never run.
install_clients() {
  mkdir -p "$clients"
  local name
  for name in "$@"; do
    cmp -s "tests/clients/requirements-$name.txt" "$clients/$name/installed.txt" && continue
    rm -rf "${clients:?}/$name"
    /usr/bin/python3 -m venv "$clients/$name" || return
    local store=()
    [[ -z "${PIP_CERT:-}" && -f /etc/ssl/certs/ca-certificates.crt ]] && store=(--cert /etc/ssl/certs/ca-certificates.crt)
    "$clients/$name/bin/pip" install --quiet --disable-pip-version-check "${store[@]}" --require-hashes \
      -r "tests/clients/requirements-$name.txt" || return
    cp "tests/clients/requirements-$name.txt" "$clients/$name/installed.txt"
  done
}

install_node_clients() {
  if ! cmp -s tests/clients/package-lock.json "$clients/installed-lock.json"; then
    cp tests/clients/package.json tests/clients/package-lock.json "$clients/"
    # Not `npm ci`: it refuses the lock over an optional package for another system that has no release. Everything that is
    # installed comes from the lock, by hash.
    npm install --prefix "$clients" --ignore-scripts --no-audit --no-fund || return
    cp tests/clients/package-lock.json "$clients/installed-lock.json"
  fi
  cp tests/clients/client_node.mjs "$clients/"
}

e2e() {
  local arguments=()
  ((full)) && arguments+=(--full)
  PRIMS="$PWD/build/release/prims" PRIMS_TEST_CLIENTS="$clients" PRIMS_TEST_STATE="$PWD/build/test-state" \
    "$clients/mcp/bin/python" tests/e2e/run.py "${arguments[@]}" "$@"
}

suite_e2e() { install_clients mcp && e2e; }
suite_e2e_plain() { install_clients mcp && e2e --templates off; }
suite_clients() { install_clients mcp fastmcp fastmcp-2 && install_node_clients && e2e test_clients; }

# The program, the tests and their Python where an ordinary user can read them.
suite_e2e_user() {
  if ((EUID != 0)); then
    echo "already an ordinary user"
    return
  fi
  make_user && install_clients mcp || return
  local home copy
  home="$(getent passwd "$test_user" | cut -d: -f6)"
  copy="$home/e2e"
  rm -rf "$copy"
  mkdir -p "$copy/build/clients" "$copy/schema"
  cp -r tests VERSION "$copy/"
  cp -r "$clients/mcp" "$copy/build/clients/"
  mkdir -p "$copy/build/release"
  cp build/release/prims build/release/*.whl "$copy/build/release/"
  [[ -n "${PRIMS_MCP_SCHEMA_DIR:-}" ]] && cp "$PRIMS_MCP_SCHEMA_DIR"/*.json "$copy/schema/"
  chown -R "$test_user:" "$copy"
  local schema=()
  [[ -n "${PRIMS_MCP_SCHEMA_DIR:-}" ]] && schema=(PRIMS_MCP_SCHEMA_DIR="$copy/schema")
  (cd "$copy" && setpriv --reuid "$test_user" --regid "$test_user" --init-groups env -i HOME="$home" USER="$test_user" \
    PATH=/usr/local/bin:/usr/bin:/bin LANG=C.UTF-8 PRIMS="$copy/build/release/prims" PRIMS_TEST_STATE="$home/state" \
    PRIMS_TEST_SHORT="$((1 - full))" "${schema[@]}" build/clients/mcp/bin/python tests/e2e/run.py)
}

suite_asan() {
  cmake --preset asan && cmake --build --preset asan && tests/run_unit.py build/asan --label unit
}

suite_long() {
  tests/long.sh
}

summary=()
for line in "${suites[@]}"; do
  read -r name budget what <<<"$line"
  is_wanted "$name" && run_suite "$name" "$budget" "$what"
  # Without these nothing after them means anything.
  [[ "$name" == setup || "$name" == build ]] && ((failed)) && break
done

printf '\n== summary (%d s in all, budget 2700 s)\n' "$SECONDS"
printf '%s\n' "${summary[@]}"
if ((skipped)); then
  echo "$passed passed, $failed failed, $skipped skipped"
else
  echo "$passed passed, $failed failed"
fi
exit $((failed > 0 || passed == 0))

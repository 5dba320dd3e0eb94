#!/usr/bin/env bash
# From a fresh Debian 12 machine to a running MCP server: installs what is missing, builds, serves on 127.0.0.1:9000, runs
# one real job through MCP and prints what to paste into your client.
#
#   scripts/quickstart.sh            keeps serving until Ctrl-C
#   scripts/quickstart.sh --check    ends after the job, with its exit status
#   PRIMS_PORT=9100 scripts/quickstart.sh
#
# Safe to repeat.
set -euo pipefail
cd "$(dirname "$0")/.."

check=0
case "${1:-}" in
  "") ;;
  --check) check=1 ;;
  -h|--help) sed -n '2,9s/^# \{0,1\}//p' "$0"; exit 0 ;;
  *) echo "quickstart: unknown option $1 (--check)" >&2; exit 2 ;;
esac
port="${PRIMS_PORT:-9000}"
unset PRIMS_PORT
prims="$PWD/build/release/prims"
log="$PWD/build/quickstart.log"
server=

port_is_taken() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }
step() { printf '\n\033[1m== %s\033[0m (%d s)\n' "$1" "$SECONDS"; }

stop_server() {
  if [[ -n "$server" ]]; then
    kill "$server" 2>/dev/null || true
    wait "$server" 2>/dev/null || true
  fi
}

choose_port() {
  port_is_taken "$port" || return 0
  if ((check)); then
    echo "port $port is taken; this check uses a free one"
    port=0
  else
    echo "quickstart: port $port is taken. Stop what uses it, or: PRIMS_PORT=9100 $0" >&2
    exit 1
  fi
}

start_server() {
  "$prims" serve --port "$port" >"$log" 2>&1 &
  server=$!
  trap stop_server EXIT
  local _
  for _ in $(seq 300); do
    url="$(grep -oE 'http://[^ ]+/mcp' "$log" | head -n 1 || true)"
    [[ -n "$url" ]] && return
    kill -0 "$server" 2>/dev/null || break
    sleep 0.1
  done
  echo "quickstart: the server did not start:" >&2
  cat "$log" >&2
  exit 1
}

# Cars of 1970 to 1982: a table that the package ships, grouped with pandas and drawn.
job() {
  python3 - <<'PY'
import json
code = '''
import os
import matplotlib.pyplot as plt
import pandas as pd
from vega_datasets import data

cars = data.cars()
by_year = cars.groupby([cars.Year.dt.year, "Origin"]).Miles_per_Gallon.mean().unstack().round(1)
print(by_year.tail(4))
by_year.plot(title="Miles per gallon", ylabel="mpg", xlabel="year")
os.makedirs("output", exist_ok=True)
plt.savefig("output/miles_per_gallon.png")
f"{len(cars)} cars, {by_year.loc[1970].mean():.1f} -> {by_year.loc[1982].mean():.1f} mpg"
'''
print(json.dumps({"code": code, "requirements": ["vega_datasets==0.9.0"]}))
PY
}

run_job() {
  local result="$PWD/build/quickstart-result.json"
  job | "$prims" call --json "$url" run_code - >"$result" || { cat "$result"; return 1; }
  python3 - "$result" <<'PY'
import json, sys

answer = json.load(open(sys.argv[1], encoding="utf-8"))
result = answer.get("structuredContent") or answer.get("result", {}).get("structuredContent") or answer
print(result.get("stdout", "") + result.get("stderr", ""), end="")
print("value:    ", result.get("value", {}).get("text"))
for artifact in result.get("artifacts", []):
    print("artifact: ", artifact["relative_path"], artifact["mime"], artifact["size"], "bytes")
print("status:   ", result["status"], "| isolation:", result.get("isolation"), "| milliseconds:", result.get("timings"))
if result["status"] != "ok" or not result.get("artifacts"):
    sys.exit("quickstart: the job failed: " + str(result.get("message") or result))
PY
}

print_clients() {
  cat <<END

The server speaks MCP at  $url

Paste this into your client; prims is started by the client itself (stdio), nothing else needs to run:

Claude Desktop   Linux ~/.config/Claude/claude_desktop_config.json
                 macOS ~/Library/Application Support/Claude/claude_desktop_config.json
                 Windows %APPDATA%\\Claude\\claude_desktop_config.json
Cursor           ~/.cursor/mcp.json, or .cursor/mcp.json in a project
Windsurf         ~/.codeium/windsurf/mcp_config.json

  {"mcpServers": {"prims": {"command": "$prims", "args": ["stdio"]}}}

On Windows with WSL:

  {"mcpServers": {"prims": {"command": "wsl.exe", "args": ["--", "$prims", "stdio"]}}}

Claude Code      claude mcp add --scope user prims -- $prims stdio
                 or, to this server: claude mcp add --scope user --transport http prims $url
VS Code          .vscode/mcp.json, or "MCP: Open User Configuration"

  {"servers": {"prims": {"type": "stdio", "command": "$prims", "args": ["stdio"]}}}
  {"servers": {"prims": {"type": "http", "url": "$url"}}}

Clients that take an address (Cursor: "url", Windsurf: "serverUrl"):

  {"mcpServers": {"prims": {"url": "$url"}}}

Clients that only start programs, to this server through mcp-remote:

  {"mcpServers": {"prims": {"command": "npx", "args": ["-y", "mcp-remote", "${url/127.0.0.1/localhost}"]}}}
END
}

scripts/setup_env.sh
choose_port
step "serve"
start_server
echo "$url"
step "a job through MCP: packages are fetched on first use"
run_job
step "connect your client"
print_clients
if ((check)); then
  step "check passed"
  exit 0
fi
printf '\nServing until Ctrl-C; log: %s\n' "$log"
trap 'stop_server; exit 0' INT TERM
wait "$server"

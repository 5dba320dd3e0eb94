#!/usr/bin/env bash
# Builds the committed tree twice, in two folders of different names, without a compiler cache: the programs are equal byte for
# byte. Prints their hash.
set -euo pipefail
cd "$(dirname "$0")/.."
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
export CCACHE_DISABLE=1
for folder in one a-folder-with-a-longer-name/two; do
  mkdir -p "$work/$folder"
  git archive HEAD | tar -x -C "$work/$folder"
  (cd "$work/$folder" && cmake --preset release >/dev/null && cmake --build --preset release --target prims >/dev/null)
  sha256sum "$work/$folder/build/release/prims"
done
if cmp "$work/one/build/release/prims" "$work/a-folder-with-a-longer-name/two/build/release/prims"; then
  echo "reproducible: 1 passed, 0 failed"
else
  echo "reproducible: 0 passed, 1 failed"
  exit 1
fi

#!/usr/bin/env python3
"""Checks the coroutine rule (tools/coroutine_rule.query) over everything in src/, tests too.

--self-test runs the rule over tools/coroutine_examples.cpp: each line marked `// bad` is found, no other line is.
"""

import re
import subprocess
import sys

import translation_units as tu

QUERY = tu.ROOT / "tools/coroutine_rule.query"
EXAMPLES = tu.ROOT / "tools/coroutine_examples.cpp"
FOUND = re.compile(r'^(\S+?:\d+):\d+: note: "([^"]+)" binds here', re.MULTILINE)
AWAIT = re.compile(r"^[^/\n]*\bco_await\b", re.MULTILINE)  # not in a comment
BROKEN = re.compile(r"^(\S+?:\d+:\d+: (?:fatal )?error: .*)$", re.MULTILINE)


def look(unit):
    done = subprocess.run(["clang-query-19", "-f", str(QUERY), str(unit.file), "--", *unit.flags, "-Wno-everything"],
                          cwd=tu.ROOT, capture_output=True, text=True, check=False)
    if "Error parsing" in done.stdout + done.stderr or "Invalid" in done.stderr:
        raise SystemExit(f"{QUERY}: {done.stdout}{done.stderr}")
    broken = BROKEN.findall(done.stdout + done.stderr)
    if broken:
        return broken, False
    return [f"{where}: {what}; name it first, then await" for where, what in FOUND.findall(done.stdout)], True


def awaits():
    """Sources with a co_await in them or in a header of ours that they name; the others cannot break the rule."""
    def has(path):
        return AWAIT.search(path.read_text(encoding="utf-8")) is not None

    headers = {f'#include "{path.relative_to(tu.ROOT / "src")}"' for path in (tu.ROOT / "src").rglob("*.h") if has(path)}
    return lambda path: has(path) or any(line.strip() in headers for line in path.read_text(encoding="utf-8").splitlines())


def self_test():
    unit = tu.Unit("examples", [EXAMPLES], ["-std=c++23"])
    found, readable = look(unit)
    if not readable:
        raise SystemExit("\n".join(found))
    seen = {int(fault.split(":")[1]) for fault in found}
    lines = EXAMPLES.read_text(encoding="utf-8").splitlines()
    bad = {number for number, line in enumerate(lines, 1) if "// bad" in line}
    for number in sorted(seen ^ bad):
        print(f"{EXAMPLES}:{number}: {'found, but allowed' if number in seen else 'not found'}: {lines[number - 1].strip()}")
    print(f"coroutine rule: {len(bad)} forbidden forms, {len(seen & bad)} found, {len(seen - bad)} false")
    return 1 if seen != bad else 0


if __name__ == "__main__":
    rules = QUERY.read_bytes()
    sys.exit(tu.main(__doc__, tu.Check("coroutines", "clang-query-19", rules, look, self_test), awaits()))

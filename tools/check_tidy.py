#!/usr/bin/env python3
"""clang-tidy-19 with the checks of .clang-tidy over the sources of src/, tests aside."""

import argparse
import re
import subprocess
import sys

import translation_units as tu

FAULT = re.compile(r"^(\S+?:\d+:\d+: (?:error|warning): .*)$", re.MULTILINE)


def look(unit):
    done = subprocess.run(["clang-tidy-19", "--quiet", f"--config-file={tu.ROOT / '.clang-tidy'}", str(unit.file), "--",
                           *unit.flags, "-Wno-everything"], cwd=tu.ROOT, capture_output=True, text=True, check=False)
    faults = FAULT.findall(done.stdout)
    readable = not any("clang-diagnostic-error" in fault for fault in faults)
    return faults, readable


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--budget", type=float, default=600, help="seconds after which no further group is started")
    args = options.parse_args()
    tu.configure()
    todo = tu.units(lambda path: not path.stem.endswith("_test"))
    cache = tu.Cache("clang-tidy-19", (tu.ROOT / ".clang-tidy").read_bytes())
    return tu.report("tidy", todo, *tu.run(todo, cache, look, args.budget))


if __name__ == "__main__":
    sys.exit(main())

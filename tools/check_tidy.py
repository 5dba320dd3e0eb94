#!/usr/bin/env python3
"""clang-tidy-19 with the checks of .clang-tidy over the sources of src/, tests aside.

--self-test proves on a sample that faults are seen in a source that is read as part of a group.
"""

import re
import subprocess
import sys

import translation_units as tu

# The sources of a group are headers to clang-tidy.
FILTER = "--header-filter=/src/"
SAMPLE = """#include <string>
#include <utility>
struct wrong_case { int member = 0; };
int use(std::string text) { std::string taken = std::move(text); return static_cast<int>(text.size() + taken.size()); }
"""
FAULT = re.compile(r"^(\S+?:\d+:\d+: (?:error|warning): .*)$", re.MULTILINE)


def look(unit):
    done = subprocess.run(["clang-tidy-19", "--quiet", f"--config-file={tu.ROOT / '.clang-tidy'}", FILTER, str(unit.file), "--",
                           *unit.flags, "-Wno-everything"], cwd=tu.ROOT, capture_output=True, text=True, check=False)
    faults = FAULT.findall(done.stdout)
    readable = not any("clang-diagnostic-error" in fault for fault in faults)
    return faults, readable


def self_test():
    folder = tu.BUILD / "lint/src"
    folder.mkdir(parents=True, exist_ok=True)
    sources = [folder / "sample.cpp", folder / "empty.cpp"]
    for source, text in zip(sources, (SAMPLE, "")):
        source.write_text(text, encoding="utf-8")
    faults, _ = look(tu.Unit("sample", sources, ["-std=c++23"]))
    missing = [check for check in ("readability-identifier-naming", "bugprone-use-after-move")
               if not any(check in fault for fault in faults)]
    if missing:
        print(f"tidy: blind for {' '.join(missing)} in a group of sources")
    return 1 if missing else 0


def is_no_test(path):
    return not path.stem.endswith("_test") and path.stem != "test_support"


if __name__ == "__main__":
    rules = (tu.ROOT / ".clang-tidy").read_bytes() + FILTER.encode()
    sys.exit(tu.main(__doc__, tu.Check("tidy", "clang-tidy-19", rules, look, self_test), is_no_test))

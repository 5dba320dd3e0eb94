#!/usr/bin/env python3
"""Small rules about the tracked files that no compiler checks. Prints one line per fault."""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# A test that sleeps is slow on a quick machine and wrong on a slow one. One that sleeps for another purpose says so on the line.
SLEEP = re.compile(r"this_thread::sleep|\busleep\s*\(|\bnanosleep\s*\(|(?<![\w.])::sleep\s*\(")
TODO_NOW = re.compile(r"TODO\(" + "now" + r"\)")
# Package registries are settings of the user's machine. Joined here so that this file passes its own check.
REGISTRIES = [".".join(parts) for parts in (
    ("pypi", "org"), ("pythonhosted", "org"), ("npmjs", "org"), ("npmjs", "com"), ("crates", "io"))]
LICENSES = pathlib.Path("licenses")


def tracked():
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
    return [pathlib.Path(name) for name in names.decode().split("\0") if name and (ROOT / name).is_file()]


def text_of(path):
    data = (ROOT / path).read_bytes()
    return None if b"\0" in data else data.decode("utf-8", errors="replace")


def line_faults(path, text):
    parent = str(ROOT.parent)
    local = parent + "/" if len(ROOT.parent.parts) > 1 and parent not in ("/tmp", "/home", "/root", "/opt") else None
    is_test = path.name.endswith("_test.cpp")
    for number, line in enumerate(text.splitlines(), 1):
        if is_test and SLEEP.search(line) and "//" not in line:
            yield f"{path}:{number}: a test waits for an event, it does not sleep"
        if TODO_NOW.search(line):
            yield f"{path}:{number}: a TODO for now is done now"
        if local and re.search(r"(?<![\w./$}])" + re.escape(local), line):
            yield f"{path}:{number}: names a folder of this machine"
        for host in REGISTRIES:
            if host in line and not path.is_relative_to(LICENSES):
                yield f"{path}:{number}: names a package registry's host"
        if path.name == "package-lock.json" and re.search(r'"resolved":\s*"http', line):
            yield f"{path}:{number}: a download address; run npm with --omit-lockfile-registry-resolved"


def version_faults():
    version = (ROOT / "VERSION").read_text(encoding="utf-8").strip()
    entry = re.search(r"^## \[?([0-9][^\]\s]*)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)
    if not entry or entry.group(1) != version:
        yield f"CHANGELOG.md: its top entry is {entry.group(1) if entry else 'missing'}, VERSION says {version}"


def lock_faults():
    for path in sorted((ROOT / "tests/clients").glob("requirements-*.txt")):
        text = path.read_text(encoding="utf-8").replace("\\\n", " ")
        for line in filter(None, text.splitlines()):
            if not line.startswith("#") and ("==" not in line or "--hash=sha256:" not in line):
                yield f"{path.relative_to(ROOT)}: `{line.split()[0]}` is not pinned with a hash"


def readme_faults():
    for folder in sorted(entry for entry in (ROOT / "src").iterdir() if entry.is_dir()):
        if not (folder / "README.md").is_file():
            yield f"src/{folder.name}: has no README.md that says what it is for"


def main():
    faults = []
    for path in tracked():
        text = text_of(path)
        if text is not None:
            faults.extend(line_faults(path, text))
    faults.extend([*version_faults(), *lock_faults(), *readme_faults()])
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())

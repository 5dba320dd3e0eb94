"""What the clang tools look at: sources in groups, from the compile commands of the `tidy` preset.

Most of the time of a clang tool goes into the library headers, so the sources of one folder are read as one translation
unit. Where two of them cannot stand together (the same name in two anonymous namespaces), the group is halved. A group whose
preprocessed text was clean before is not read again.
"""

import argparse
import concurrent.futures
import dataclasses
import hashlib
import json
import pathlib
import shlex
import subprocess
import time
from collections.abc import Callable

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build/tidy"
GROUP_SIZE = 10
JOBS = 2


class Unit:
    """One or more sources that are read together."""

    def __init__(self, name, sources, flags):
        self.name = name
        self.sources = sources
        self.flags = flags
        self.file = self._write() if len(sources) > 1 else sources[0]

    def _write(self):
        folder = BUILD / "lint"
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.name}.cpp"
        text = "".join(f'#include "{source}"\n' for source in self.sources)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
        return path

    def split(self):
        half = len(self.sources) // 2
        return [Unit(f"{self.name}{part}", sources, self.flags)
                for part, sources in (("a", self.sources[:half]), ("b", self.sources[half:]))]

    def preprocessed(self):
        done = subprocess.run(["clang++-19", *self.flags, "-E", "-P", "-o", "-", str(self.file)], capture_output=True,
                              check=False)
        return done.stdout if done.returncode == 0 else None


def configure():
    done = subprocess.run(["cmake", "--preset", "tidy"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(done.stdout + done.stderr)


def flags_of(command):
    """Compiler flags without launcher, compiler, input, output and what only code generation needs."""
    words = shlex.split(command)
    while words and "clang" not in pathlib.Path(words[0]).name:
        words.pop(0)
    flags, skip = [], False
    for word in words[1:]:
        if skip or word in ("-c", "-o"):
            skip = word == "-o"
        elif word == "--":
            break
        elif not word.endswith((".cpp", ".c")):
            flags.append(word)
    return [flag for flag in flags if flag != "-Werror"]


def units(want):
    """Groups of the C++ sources under src/ for which want(path) holds. Never across folders or flags."""
    groups = {}
    for entry in json.loads((BUILD / "compile_commands.json").read_text(encoding="utf-8")):
        path = pathlib.Path(entry["file"])
        if path.suffix != ".cpp" or not path.is_relative_to(ROOT / "src") or not want(path):
            continue
        flags = tuple(flags_of(entry["command"]))
        group = groups.setdefault((path.relative_to(ROOT / "src").parts[0], flags), [])
        if path not in group:
            group.append(path)
    found, names = [], {}
    for (folder, flags), sources in sorted(groups.items(), key=lambda item: (item[0][0], str(item[1][0]))):
        sources.sort()
        for at in range(0, len(sources), GROUP_SIZE):
            names[folder] = names.get(folder, 0) + 1
            test = "_test" if sources[at].stem.endswith("_test") else ""
            found.append(Unit(f"{folder}{test}_{names[folder]}", sources[at:at + GROUP_SIZE], list(flags)))
    return found


class Cache:
    """Remembers by content which units were clean under one tool and one rule text."""

    def __init__(self, tool, rules):
        self.folder = BUILD / "lint-cache"
        self.folder.mkdir(parents=True, exist_ok=True)
        version = subprocess.run([tool, "--version"], capture_output=True, check=False).stdout
        self.seed = hashlib.sha256(version + rules)

    def key(self, unit):
        text = unit.preprocessed()
        if text is None:
            return None
        digest = self.seed.copy()
        digest.update("\0".join(unit.flags).encode() + text)
        return digest.hexdigest()

    def has(self, key):
        return key is not None and (self.folder / key).exists()

    def add(self, key):
        if key is not None:
            (self.folder / key).touch()


def run(todo, cache, look, budget_s):
    """Calls look(unit) -> (faults, readable) for each unit that is not known as clean; stops starting at the budget.

    Returns the faults and the units that there was no time for.
    """
    deadline = time.monotonic() + budget_s

    def work(unit):
        if time.monotonic() > deadline:
            return [], [unit]
        key = cache.key(unit)
        if cache.has(key):
            return [], []
        faults, readable = look(unit) if key is not None else ([], False)
        if not readable and len(unit.sources) > 1:
            results = [work(part) for part in unit.split()]
            return [f for r in results for f in r[0]], [u for r in results for u in r[1]]
        if not readable and not faults:
            faults = [f"{unit.file}: does not compile"]
        if not faults:
            cache.add(key)
        for fault in faults:
            print(fault, flush=True)
        return faults, []

    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        results = list(pool.map(work, todo))
    faults = [fault for result in results for fault in result[0]]
    return list(dict.fromkeys(faults)), [unit for result in results for unit in result[1]]


def report(tool, todo, faults, late, complete):
    """Prints what was found; the exit status. Sources that there was no time for are a fault when `complete` is asked for."""
    for unit in late:
        print(f"{tool}: no time left for {unit.name}: {' '.join(str(s.relative_to(ROOT)) for s in unit.sources)}")
    unread = sum(len(unit.sources) for unit in late)
    print(f"{tool}: {sum(len(unit.sources) for unit in todo) - unread} sources, {len(faults)} faults, {unread} not read in time")
    return 1 if faults or (late and complete) else 0


@dataclasses.dataclass
class Check:
    name: str
    tool: str  # executable, whose version counts for what is remembered
    rules: bytes  # so does the text of its rules
    look: Callable  # as run() calls it
    self_test: Callable  # its exit status


def main(doc, check, want):
    """The command line of a check; its exit status. `want(path)` tells which sources it is about."""
    options = argparse.ArgumentParser(description=doc)
    options.add_argument("--budget", type=float, default=600, help="seconds after which no further group is started")
    options.add_argument("--complete", action="store_true", help="fail when the budget ends before every source was read")
    options.add_argument("--self-test", action="store_true")
    args = options.parse_args()
    if args.self_test:
        return check.self_test()
    configure()
    todo = units(want)
    faults, late = run(todo, Cache(check.tool, check.rules), check.look, args.budget)
    return report(check.name, todo, faults, late, args.complete)

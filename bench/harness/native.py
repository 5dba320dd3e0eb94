"""The programs with the clock: built on first use, run with a schedule, their samples read back."""

import collections
import hashlib
import json
import shlex
import shutil
import subprocess
import time

from . import paths

SOURCES = paths.BENCH / "native"
SHARED = ["timing.cpp", "text.cpp", "options.cpp"]
PROGRAMS = {
    "probe": ["main.cpp", "http.cpp", "http_calls.cpp", "child.cpp", "program_calls.cpp", *SHARED],
    "floor": ["floor.cpp", *SHARED],
}
READY_S = 1.0  # from the start of measuring programs to their first call: long enough to warm up


class Unavailable(Exception):
    """Something that a measurement needs is not here; the message says how to get it."""


class Failed(Exception):
    """A measurement that went wrong."""


def compiler():
    for name in ("clang++-19", "clang++", "g++", "c++"):
        if shutil.which(name):
            return name
    raise Unavailable("no C++ compiler: apt-get install g++")


def python_flags():
    config = paths.PYTHON + "-config"
    if not shutil.which(config):
        raise Unavailable("the floor embeds Python: apt-get install python3-dev")

    def ask(*what):
        return shlex.split(
            subprocess.run([config, "--embed", *what], check=True, capture_output=True, text=True).stdout
        )

    return [flag.replace("-I", "-isystem") for flag in ask("--includes")], ask("--ldflags")


def build(name):
    """The path of a program, built anew when a source has changed."""
    includes, libraries = python_flags() if name == "floor" else ([], [])
    line = [
        compiler(),
        "-std=c++20",
        "-O2",
        "-Wall",
        "-Wextra",
        *includes,
        *(str(SOURCES / file) for file in PROGRAMS[name]),
    ]
    digest = hashlib.sha256(" ".join(line + libraries).encode())
    for file in sorted(SOURCES.iterdir()):
        digest.update(file.read_bytes())
    target = paths.BUILD / "native" / f"{name}-{digest.hexdigest()[:16]}"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        made = subprocess.run([*line, *libraries, "-o", str(target) + ".new"], capture_output=True, text=True)
        if made.returncode != 0:
            raise Unavailable(f"{name} does not compile: {made.stderr[-800:]}")
        (target.parent / (target.name + ".new")).rename(target)
    return str(target)


class Samples:
    """Durations in seconds, in the order they were taken."""

    def __init__(self, seconds=(), failures=0, elapsed=0.0, why=""):
        self.seconds = list(seconds)
        self.failures = failures
        self.elapsed = elapsed
        self.why = why  # what the first failure looked like

    def extend(self, other):
        self.seconds += other.seconds
        self.failures += other.failures
        self.elapsed += other.elapsed
        self.why = self.why or other.why

    @property
    def rate(self):
        return len(self.seconds) / self.elapsed if self.elapsed else 0.0


class Measurement(collections.namedtuple("Measurement", "label tool arguments program cwd share")):
    """A command that measures, still without its schedule. `tool` is one of ours, or the start of a command line whose
    program takes the same schedule and prints the same JSON. `share`: of the period when several alternate."""

    def prepare(self):
        """The start of the command line; builds what is not built yet."""
        return [build(self.tool)] if isinstance(self.tool, str) else list(self.tool)

    def command(self, **schedule):
        options = [f"--{name.replace('_', '-')}={value}" for name, value in schedule.items() if value]
        flat = [word for option in options for word in option.split("=", 1)]
        return [*self.prepare(), *self.arguments, *flat, *(["--", *self.program] if self.program else [])]

    def start(self, **schedule):
        return Running(self.command(**schedule), self.cwd)

    def run(self, **schedule):
        return self.start(**schedule).samples()


def measurement(label, tool, *words, program=(), share=8, **options):
    """`options` become --name VALUE, `program` follows behind a --."""
    named = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    return Measurement(label, tool, [*words, *named], [str(word) for word in program], paths.scratch(), share)


class Running:
    def __init__(self, command, cwd):
        self.line = command
        self.process = subprocess.Popen(
            command,
            env=paths.environment(),
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )

    def samples(self):
        try:
            output, errors = self.process.communicate()
        except BaseException:
            self.process.kill()
            raise
        if self.process.returncode != 0:
            raise Failed(f"{shlex.join(self.line)}\n{errors[-2000:]}")
        told = json.loads(output)
        return Samples(
            [value / 1e9 for value in told["samples"]],
            told["failures"],
            told["elapsed"] / 1e9,
            errors[-2000:] if told["failures"] else "",
        )


def paced(measurements, count, rate, warm_up, ready=READY_S):
    """All at the same fixed rate, each in its own part of the period, so that they alternate and do not overlap."""
    for each in measurements:
        each.prepare()
    unit = 1e9 / rate / sum(each.share for each in measurements)
    turn = time.monotonic_ns() + int(ready * 1e9)
    running = []
    for each in measurements:
        running.append(each.start(count=count, rate=rate, warm_up=warm_up, start=turn))
        turn += int(each.share * unit)
    return [each.samples() for each in running]


def alternate(measurements, count, warm_up, blocks=5):
    """Back to back, in turns: a block of each, then the next block of each. `count` is of samples, or one for each."""
    counts = count if isinstance(count, (list, tuple)) else [count] * len(measurements)
    totals = [Samples() for _ in measurements]
    for _ in range(blocks):
        for each, wanted, total in zip(measurements, counts, totals):
            total.extend(each.run(count=max(1, wanted // blocks), warm_up=warm_up))
    return totals

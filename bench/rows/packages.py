"""A set of packages that nobody asked for before, beside uv doing the same."""

import json
import re
import shutil
import subprocess
import time

from harness import native, paths, thirdparty
from harness.bench import row
from harness.program import data_packages
from harness.results import Bar

COUNT = "import importlib.metadata as m; print('installed:', len(list(m.distributions())))"


class Set:
    """What is asked for. prims adds the base packages to a program that names one of their modules; uv is told so."""

    def __init__(self, label, wanted, code, uv_wanted):
        self.label = label
        self.wanted = wanted
        self.code = code
        self.uv_wanted = uv_wanted


def sets():
    small = ["rich==14.2.0", "attrs==25.4.0"]
    return [
        Set("2 packages", small, COUNT, small),
        Set("base and 2 packages", small, COUNT + "  # pandas", [*data_packages(), *small]),
    ]


class Side:
    """One of the two with its caches: install() returns the seconds and the number of distributions that are there then."""

    def clear(self, *names):
        for name in names:
            shutil.rmtree(self.folder / name, ignore_errors=True)


class Prims(Side):
    folder = paths.BUILD / "cold-state"
    label = "prims run"

    def __init__(self, run):
        self.run = run

    def empty(self):
        self.clear("uv-cache")

    def line(self, wanted):
        named = [word for name in wanted.wanted for word in ("--with", name)]
        return [*self.run.program.command("run", "--json", state=self.folder), *named, "-c", wanted.code]

    def install(self, wanted):
        """Resolve, install, compile, and run a line."""
        self.clear("layers", "resolutions")
        began = time.monotonic()
        done = subprocess.run(
            self.line(wanted), env=paths.environment(), capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
        seconds = time.monotonic() - began
        try:
            return seconds, count_in(json.loads(done.stdout)["stdout"])
        except (ValueError, KeyError, AttributeError):
            raise native.Failed(f"prims did not install: {(done.stdout + done.stderr)[-800:]}") from None


class Uv(Side):
    folder = paths.BUILD / "cold-uv"
    label = "uv pip install"

    def empty(self):
        self.clear("cache")

    def line(self, wanted):
        return [
            thirdparty.uv(),
            "pip",
            "install",
            "-q",
            "--compile-bytecode",
            "--cache-dir",
            str(self.folder / "cache"),
            "--python",
            str(self.folder / "venv/bin/python"),
            *wanted.uv_wanted,
        ]

    def install(self, wanted):
        environment = {**paths.environment(), "UV_SYSTEM_CERTS": "1"}
        self.clear("venv")
        subprocess.run(
            [thirdparty.uv(), "venv", "-q", "--python", paths.PYTHON, self.folder / "venv"],
            check=True,
            env=environment,
        )
        began = time.monotonic()
        done = subprocess.run(self.line(wanted), env=environment, capture_output=True, text=True)
        seconds = time.monotonic() - began
        if done.returncode != 0:
            raise native.Unavailable(f"uv does not install: {done.stderr[-600:]}")
        python = self.folder / "venv/bin/python"
        return seconds, count_in(
            subprocess.run([python, "-I", "-c", COUNT], capture_output=True, text=True).stdout
        )


def count_in(text):
    return int(re.search(r"installed: (\d+)", text).group(1))


@row(
    "cold",
    "a requirement set seen for the first time, beside uv pip install --compile-bytecode: cache filled, then empty",
)
def cold(run, made):
    ours, theirs = Prims(run), Uv()
    for wanted in sets():
        ours.install(wanted)  # fills both caches
        theirs.install(wanted)
        measure(made, ours, theirs, wanted, "cache filled", run.count(5, 1), lambda: None, Bar(1.2, 1.0))

    def empty_both():
        ours.empty()
        theirs.empty()

    measure(made, ours, theirs, sets()[0], "cache empty", run.count(3, 1), empty_both, None)


def measure(made, ours, theirs, wanted, how, count, prepare, bar):
    mine, uv = native.Samples(), native.Samples()
    for _ in range(count):
        prepare()
        seconds, installed = ours.install(wanted)
        mine.seconds.append(seconds)
        seconds, expected = theirs.install(wanted)
        uv.seconds.append(seconds)
    label = f"{wanted.label}, {how}"
    figure = made.samples(f"{ours.label}, {label}", mine, "ours", [paths.command_text(ours.line(wanted))])
    made.samples(
        f"{theirs.label}, {label}", uv, "baseline", [paths.command_text(theirs.line(wanted))], figure, bar
    )
    if installed != expected:
        made.note(f"not the same set: {installed} distributions here, {expected} with uv")

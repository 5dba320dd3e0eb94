"""A set of packages that nobody asked for before, beside uv doing the same."""

import json
import shutil
import subprocess
import time

from harness import native, paths, thirdparty
from harness.bench import row
from harness.program import data_packages
from harness.results import Bar

WANTED = ["rich==14.2.0", "attrs==25.4.0"]
CODE = "import rich, attrs; print('ready')"


def clear(folder, *names):
    for name in names:
        shutil.rmtree(folder / name, ignore_errors=True)


def ours(run, state):
    """Resolve, install, compile, run a line: a set whose layer and resolution are not there."""
    clear(state, "layers", "resolutions")
    line = [*run.program.command("run", "--json", state=state), *(word for name in WANTED for word in ("--with", name)), "-c", CODE]
    began = time.monotonic()
    done = subprocess.run(line, env=paths.environment(), capture_output=True, text=True, stdin=subprocess.DEVNULL)
    seconds = time.monotonic() - began
    if '"ready\\n"' not in done.stdout:
        raise native.Failed(f"prims did not install: {(done.stdout + done.stderr)[-800:]}")
    return seconds, json.loads(done.stdout)


def uv_line(cache, venv):
    return [thirdparty.uv(), "pip", "install", "-q", "--compile-bytecode", "--cache-dir", str(cache),
            "--python", str(venv / "bin/python"), *data_packages(), *WANTED]


def theirs(cache):
    venv = paths.BUILD / "uv-venv"
    shutil.rmtree(venv, ignore_errors=True)
    environment = {**paths.environment(), "UV_SYSTEM_CERTS": "1"}
    subprocess.run([thirdparty.uv(), "venv", "-q", "--no-config", "--python", paths.PYTHON, venv], check=True, env=environment)
    began = time.monotonic()
    done = subprocess.run(uv_line(cache, venv), env=environment, capture_output=True, text=True)
    if done.returncode != 0:
        raise native.Unavailable(f"uv does not install: {done.stderr[-600:]}")
    return time.monotonic() - began


@row("cold", "a requirement set seen for the first time, beside uv pip install --compile-bytecode: cache filled, then empty")
def cold(run, made):
    state, cache = paths.BUILD / "cold-state", paths.BUILD / "cold-uv-cache"
    made.note(f"the set: the base packages, {', '.join(WANTED)}")
    ours(run, state)  # fills the caches
    theirs(cache)
    measure(run, made, state, cache, "cache filled", run.count(5, 1), lambda: None, Bar(1.2, 1.0))

    def empty():
        clear(state, "uv-cache", "file-hosts.json")
        shutil.rmtree(cache, ignore_errors=True)

    measure(run, made, state, cache, "cache empty", run.count(3, 1), empty, None)


def measure(run, made, state, cache, how, count, prepare, bar):
    mine, uv = native.Samples(), native.Samples()
    for _ in range(count):
        prepare()
        mine.seconds.append(ours(run, state)[0])
        uv.seconds.append(theirs(cache))
    figure = made.samples(f"prims run --with, {how}", mine, "ours")
    made.samples(f"uv pip install --compile-bytecode, {how}", uv, "baseline",
                 [" ".join(uv_line(cache, paths.BUILD / "uv-venv")).replace(str(paths.ROOT) + "/", "")], figure, bar)

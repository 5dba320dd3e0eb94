"""What else runs a line of Python, from asking to its end: one table for hello, one for a groupby."""

import shutil
import subprocess
import time

from harness import baselines, messages, native, paths, thirdparty
from harness.baselines import HELLO
from harness.bench import row
from rows.data import GROUPBY

BUBBLEWRAP = "bwrap --unshare-all + python3 -I -c"


def jupyter(mode, code, expect):
    label = {"used": "Jupyter kernel, one for all calls (state stays)", "new": "Jupyter kernel, a new one"}[mode]
    line = [thirdparty.venv("data", "jupyter"), str(paths.BENCH / "rivals/jupyter_calls.py"), mode]
    return native.measurement(label, line, code=code, expect=expect)


def pyodide(mode, code, expect, packages=()):
    node, folder = thirdparty.node_folder("rivals/pyodide")
    line = [node, str(folder / "calls.mjs")]
    loading = ["--packages", ",".join(packages)] if packages else []
    if packages:
        trial = [*line, "once", "--code", "pass", *loading]
        if subprocess.run(trial, env=paths.environment(), capture_output=True).returncode != 0:
            names = " and ".join(packages)
            raise native.Unavailable(
                f"Pyodide's npm package does not hold {names}, and they cannot be fetched here"
            )
    if mode == "used":
        line += ["used", *loading]
        return native.measurement("Pyodide in Node, one for all calls", line, code=code, expect=expect)
    line += ["once", "--code", code, *loading]
    return native.measurement("Pyodide in Node, a new process", "probe", "run", expect=expect, program=line)


def in_new_venv(run, made, ours, code, packages):
    """A virtual environment with pip for each call: measured a few times, it takes seconds."""
    taken = native.Samples()
    for _ in range(run.count(3, 1)):
        folder = paths.BUILD / "throw-away-venv"
        shutil.rmtree(folder, ignore_errors=True)
        began = time.monotonic()
        steps = [[paths.PYTHON, "-m", "venv", folder]]
        if packages:
            steps.append([folder / "bin/python", "-m", "pip", "install", "-q", *packages])
        steps.append([folder / "bin/python", "-I", "-c", code.replace("%UNIQUE%", "12345678")])
        for step in steps:
            done = subprocess.run(
                [str(word) for word in step], capture_output=True, text=True, stdin=subprocess.DEVNULL
            )
            if done.returncode != 0:
                made.note(f"a baseline is left out: a venv for each call: {done.stderr.strip()[-300:]}")
                return
        taken.seconds.append(time.monotonic() - began)
    what = "venv, pip install and run" if packages else "venv with pip, and run"
    made.samples(f"{what}, for each call", taken, "baseline", (), ours)


def compare(run, made, code, expect, name, others):
    """`others`: how many samples, and what makes the measurement."""
    server = run.server()
    run.warm(server, code)
    measurements = [run.http("prims over HTTP, back to back", server, messages.run_code(code), expect, name)]
    counts = [run.count(300, 5)]
    for count, maker in others:
        for measurement in baselines.available(made, maker):
            measurements.append(measurement)
            counts.append(run.count(count, 3))
    few = {"warm_up": run.count(3, 1), "blocks": run.count(3, 1)}
    return run.alternate(made, measurements, counts, **few)[0]


@row("rivals-hello", "print('hi'): Monty, Pyodide in Node, a Jupyter kernel, bubblewrap, a venv for each call")
def rivals_hello(run, made):
    expect = "hi %UNIQUE%"
    others = [
        (300, lambda: baselines.monty("used", HELLO, expect)),
        (60, lambda: baselines.monty("new", HELLO, expect)),
        (300, lambda: pyodide("used", HELLO, expect)),
        (9, lambda: pyodide("new", HELLO, expect)),
        (150, lambda: jupyter("used", HELLO, expect)),
        (6, lambda: jupyter("new", HELLO, expect)),
        (60, lambda: baselines.bubblewrap(HELLO, expect, BUBBLEWRAP)),
    ]
    ours = compare(run, made, HELLO, expect, "hello", others)
    in_new_venv(run, made, ours, HELLO, ())


@row("rivals-groupby", "the groupby: Pyodide in Node, a Jupyter kernel, bubblewrap, a venv with pip for each call")
def rivals_groupby(run, made):
    expect = "groups of %UNIQUE%"
    python = thirdparty.venv("data")
    folder = python.rsplit("/bin/", 1)[0]
    packages = ("numpy", "pandas")
    others = [
        (60, lambda: pyodide("used", GROUPBY, expect, packages)),
        (6, lambda: pyodide("new", GROUPBY, expect, packages)),
        (150, lambda: jupyter("used", GROUPBY, expect)),
        (6, lambda: jupyter("new", GROUPBY, expect)),
        (9, lambda: baselines.bubblewrap(GROUPBY, expect, BUBBLEWRAP, python, [folder])),
    ]
    ours = compare(run, made, GROUPBY, expect, "groupby", others)
    in_new_venv(run, made, ours, GROUPBY, packages)
    made.note("Monty has no packages, so it cannot run this one")

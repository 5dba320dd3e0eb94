"""What else runs a line of Python, from asking to its end: one table for hello, one for a groupby."""

import shutil
import subprocess
import time

from harness import baselines, messages, native, paths, thirdparty
from harness.baselines import HELLO
from harness.bench import row
from rows.data import GROUPBY


def jupyter(mode, code, expect):
    python = thirdparty.venv("data", "jupyter")
    label = {"used": "Jupyter kernel, one for all calls (state stays)", "new": "Jupyter kernel, a new one"}[mode]
    return native.measurement(
        label, [python, str(paths.BENCH / "rivals/jupyter_calls.py"), mode], "--code", code, "--expect", expect
    )


def pyodide(mode, code, expect, packages=()):
    node, folder = thirdparty.node_folder("rivals/pyodide")
    line = [node, str(folder / "calls.mjs")]
    loading = ["--packages", ",".join(packages)] if packages else []
    if packages:
        tried = subprocess.run(
            [*line, "once", "--code", "pass", *loading], env=paths.environment(), capture_output=True, text=True
        )
        if tried.returncode != 0:
            raise native.Unavailable(
                "Pyodide cannot load " + ", ".join(packages) + " here: its npm package does not hold them"
            )
    if mode == "used":
        return native.measurement(
            "Pyodide in Node, one for all calls", [*line, "used"], "--code", code, "--expect", expect, *loading
        )
    return native.measurement(
        "Pyodide in Node, a new process",
        "probe",
        "run",
        "--expect",
        expect,
        program=[*line, "once", "--code", code, *loading],
    )


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


def compare(run, made, code, expect, name, others, counts):
    server = run.server()
    run.warm(server, code)
    body = messages.run_code(code)
    ours = run.http("prims over HTTP, back to back", server, body, expect, name)
    found = [
        (measurement, count)
        for maker, count in zip(others, counts)
        for measurement in baselines.available(made, maker)
    ]
    measurements = [ours, *(measurement for measurement, _ in found)]
    return run.alternate(
        made,
        measurements,
        [run.count(300, 5), *(run.count(count, 3) for _, count in found)],
        warm_up=run.count(3, 1),
        blocks=run.count(3, 1),
    )[0]


@row("rivals-hello", "print('hi'): Monty, Pyodide in Node, a Jupyter kernel, bubblewrap, a venv for each call")
def rivals_hello(run, made):
    expect = "hi %UNIQUE%"
    others = [
        lambda: baselines.monty("used", HELLO, expect),
        lambda: baselines.monty("new", HELLO, expect),
        lambda: pyodide("used", HELLO, expect),
        lambda: pyodide("new", HELLO, expect),
        lambda: jupyter("used", HELLO, expect),
        lambda: jupyter("new", HELLO, expect),
        lambda: baselines.bubblewrap(HELLO, expect, "bwrap --unshare-all + python3 -I -c"),
    ]
    ours = compare(run, made, HELLO, expect, "hello", others, [300, 60, 300, 9, 150, 6, 60])
    in_new_venv(run, made, ours, HELLO, ())


@row("rivals-groupby", "the groupby: Pyodide in Node, a Jupyter kernel, bubblewrap, a venv with pip for each call")
def rivals_groupby(run, made):
    expect = "groups of %UNIQUE%"
    python = thirdparty.venv("data")
    packages = ("numpy", "pandas")
    others = [
        lambda: pyodide("used", GROUPBY, expect, packages),
        lambda: pyodide("new", GROUPBY, expect, packages),
        lambda: jupyter("used", GROUPBY, expect),
        lambda: jupyter("new", GROUPBY, expect),
        lambda: baselines.bubblewrap(
            GROUPBY, expect, "bwrap --unshare-all + python3 -I -c", python, [python.rsplit("/bin/", 1)[0]]
        ),
    ]
    ours = compare(run, made, GROUPBY, expect, "groupby", others, [60, 6, 150, 6, 9])
    in_new_venv(run, made, ours, GROUPBY, packages)
    made.note("Monty has no packages, so it cannot run this one")

"""Programs that people send: a pandas groupby and a plot, and what packages cost."""

from harness import baselines, messages, native, thirdparty
from harness.bench import row
from harness.results import Bar

GROUPBY = """\
import numpy as np
import pandas as pd
rng = np.random.default_rng(%UNIQUE%)
frame = pd.DataFrame({"key": rng.integers(0, 50, 10_000), "value": rng.random(10_000)})
table = frame.groupby("key")["value"].agg(["mean", "sum", "count"])
print(len(table), "groups of %UNIQUE%")
"""
PLOT = """\
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt
plt.plot([1, 2, 3], [1, 4, %UNIQUE%])
plt.savefig("output/plot.png")
print(open("output/plot.png", "rb").read(4)[1:], "of %UNIQUE%")
"""
HELLO = baselines.HELLO
LAYER = ["humanize==4.17.0"]
HUMANIZE = "import humanize; print(humanize.intcomma(1000), 'of %UNIQUE%')"


def steady_rate(run, server, body, expect, name):
    """20 a second where calls are that quick; otherwise what the machine keeps up with."""
    few = run.http("", server, body, expect, name).run(count=3, warm_up=2)
    if not few.seconds:
        raise native.Failed(f"the program does not run: {few.why}")
    return 20 if max(few.seconds) < 0.04 else max(1, int(0.5 / max(few.seconds)))


def beside_plain(run, made, code, expect, name, bar):
    """Ours at a steady rate in turns with the same script in an interpreter without a sandbox, and in bubblewrap."""
    server = run.server()
    python = thirdparty.venv("data")
    run.warm(server, code)
    body = messages.run_code(code)
    rate = steady_rate(run, server, body, expect, name)
    ours = run.http(f"prims over HTTP, {rate}/s", server, body, expect, name)
    plain = baselines.clean_python(code, expect, "python3 -I -c, no sandbox, compiled modules", python)
    others = [
        plain,
        *baselines.available(
            made, lambda: baselines.bubblewrap(code, expect, python=python, mounts=[python.rsplit("/bin/", 1)[0]])
        ),
    ]
    totals = [native.Samples() for _ in range(1 + len(others))]
    blocks = run.count(10, 2)
    paced = {"count": run.count(20, 5), "rate": rate, "warm_up": 2}
    for _ in range(blocks):
        totals[0].extend(ours.run(**paced))
        for other, total in zip(others, totals[1:]):
            total.extend(other.run(count=2, warm_up=1))
    schedules = [paced, *({"count": 2, "warm_up": 1} for _ in others)]
    return run.show(made, [ours, *others], totals, schedules, bars={plain.label: bar})


@row("groupby", "numpy and pandas imported, ten thousand rows grouped")
def groupby(run, made):
    beside_plain(run, made, GROUPBY, "groups of %UNIQUE%", "groupby", Bar(1 / 30, 1 / 60))


@row("plot", "matplotlib imported, a line plotted, a PNG written and collected")
def plot(run, made):
    beside_plain(run, made, PLOT, "of %UNIQUE%", "plot", Bar(1 / 6, 1 / 9))


@row("layer", "packages of the caller's own: with a warm template against hello, without one against plain Python")
def layer(run, made):
    with_template(run, made)
    without_template(run, made)


def with_template(run, made):
    server = run.server()
    run.warm(server, HELLO, requirements=LAYER)
    body = messages.run_code(HELLO, requirements=LAYER)
    rate = steady_rate(run, server, body, "hi %UNIQUE%", "layer")
    made.note("the set: " + ", ".join(LAYER))
    ours = run.http(f"prims, hello with requirements, {rate}/s", server, body, "hi %UNIQUE%", "layer")
    hello = run.http(f"prims, hello without, {rate}/s", server, messages.run_code(HELLO), "hi %UNIQUE%", "hello")
    run.paced(made, [ours, hello], bars={hello.label: Bar(1.3, 1.1)}, rate=rate, count=run.count(200, 10))


def without_template(run, made):
    flags = ("--templates=false",) if run.program.has_setting("templates") else ()
    with run.own_server(*flags) as server:
        run.warm(server, HUMANIZE, requirements=LAYER)
        body = messages.run_code(HUMANIZE, requirements=LAYER)
        ours = run.http("prims, templates off, import humanize", server, body, "1,000 of %UNIQUE%", "layer-plain")
        plain = baselines.clean_python(
            HUMANIZE, "1,000 of %UNIQUE%", "python3 -I -c on the same packages", thirdparty.venv("layer")
        )
        run.alternate(made, [ours, plain], [run.count(100, 5)] * 2, bars={plain.label: Bar(1.5, 1.2)})

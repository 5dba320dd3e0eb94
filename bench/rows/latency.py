"""How long one call takes: a fresh, fully isolated sandbox for a line of Python."""

from harness import baselines, messages
from harness.baselines import HELLO
from harness.bench import row
from harness.results import Bar

EXPECT = "hi %UNIQUE%\\n"  # as JSON has it
PASS = "pass #%UNIQUE%"

CLEAN = "python3 -I -c pass, no sandbox"
FLOOR = "floor: fork of a warm interpreter into all namespaces"
MONTY = "Monty, used worker, new session"
BWRAP = "bwrap --unshare-all + python3 -I -c pass"


def hello_baselines(made):
    return baselines.available(
        made,
        lambda: baselines.clean_python(PASS, label=CLEAN),
        lambda: baselines.bubblewrap(PASS, label=BWRAP),
        lambda: baselines.floor(FLOOR),
        lambda: baselines.monty("used", HELLO, "hi %UNIQUE%"),
    )


BARS = {CLEAN: Bar(1 / 15, 1 / 35), FLOOR: Bar(0.3, 0.15), MONTY: Bar(aim=1.0)}


def check_tail(made, figure):
    if figure.tail:
        made.check("  its own p99 : p50", figure.tail / figure.value, Bar(4))


@row("hello", "print('hi') over HTTP keep-alive, 20 calls a second whatever the answers do (the pool is full)")
def hello(run, made):
    server = run.server()
    ours = run.http("prims over HTTP, 20/s", server, messages.run_code(HELLO), EXPECT, "hello")
    figures = run.paced(made, [ours, *hello_baselines(made)], bars=BARS)
    check_tail(made, figures[0])


@row("hello-back-to-back", "the same, each call right after the answer to the one before")
def hello_back_to_back(run, made):
    server = run.server()
    ours = run.http("prims over HTTP, back to back", server, messages.run_code(HELLO), EXPECT, "hello")
    others = hello_baselines(made)
    counts = [run.count(1000, 20), *(run.count(100, 5) for _ in others)]
    run.alternate(made, [ours, *others], counts)


@row("hello-stdio", "print('hi') over stdio: 20 calls a second, then back to back")
def hello_stdio(run, made):
    program = run.program.command("stdio")
    paced = run.stdio("prims over stdio, 20/s", program, messages.run_code(HELLO), EXPECT, "hello")
    figures = run.paced(made, [paced, *hello_baselines(made)], bars=BARS, warm_up=run.count(100, 10), ready=3)
    check_tail(made, figures[0])
    back_to_back = run.stdio("prims over stdio, back to back", program, messages.run_code(HELLO), EXPECT, "hello")
    samples = back_to_back.run(count=run.count(500, 20), warm_up=run.count(20, 3))
    made.samples(back_to_back.label, samples, "ours")

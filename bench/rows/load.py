"""Many calls at once: sustained rates, a burst, many workspaces."""

from harness import baselines, messages, native
from harness.baselines import HELLO
from harness.bench import command_text, row
from harness.results import Bar

EXPECT = "hi %UNIQUE%\\n"


def clients_text(count, what="client"):
    return f"{count:,} {what}{'s' * (count > 1)}"


def floor_sustained(workers):
    label = f"floor, {clients_text(workers, 'worker')}"
    return native.measurement(label, "floor", "sustained", workers=workers)


@row("sustained", "complete runs a second at 1, 2, 8 and 64 clients, beside the floor on one and on two workers")
def sustained(run, made):
    server = run.server()
    body = messages.run_code(HELLO)
    loads = [
        run.http(f"prims, {clients_text(clients)}", server, body, EXPECT, "sustained", clients)
        for clients in (1, 2, 8, 64)
    ]
    floors = baselines.available(made, lambda: floor_sustained(1), lambda: floor_sustained(2))
    seconds = run.count(5, 1)
    schedules = [{"seconds": seconds, "warm_up": 20}] * len(loads) + [{"seconds": seconds}] * len(floors)
    totals = [native.Samples() for _ in schedules]
    for _ in range(run.count(3, 1)):
        for each, total, schedule in zip([*loads, *floors], totals, schedules):
            total.extend(each.run(**schedule))
    figures = []
    for each, total, schedule in zip([*loads, *floors], totals, schedules):
        role = "ours" if each in loads else "baseline"
        commands = [command_text(each, schedule)]
        figures.append(made.number(each.label, total.rate, "runs/s", role, commands, samples=total))
    compare_with_floor(made, figures[2], figures[len(loads) :])


def compare_with_floor(made, eight_clients, floors):
    for figure in floors:
        bar = Bar(1.0, 1.5, at_least=True) if figure is floors[-1] else None
        made.check(f"  {eight_clients.label} : {figure.label}", eight_clients.value / figure.value, bar)


@row("burst", "200 calls at the same moment on a pool of 8: until the last answer, and none may fail")
def burst(run, made):
    flags = ("--pool-size=8",) if run.program.has_setting("pool_size") else ()
    with run.own_server(*flags) as server:
        load = run.http(
            "prims, 200 calls at once, each call", server, messages.run_code(HELLO), EXPECT, "burst", 200
        )
        calls, whole = native.Samples(), native.Samples()
        for _ in range(run.count(10, 2)):
            one = load.run(count=200)
            calls.extend(one)
            whole.extend(native.Samples([one.elapsed]))
    made.samples(load.label, calls, "ours", [command_text(load, {"count": 200})])
    made.samples("prims, 200 calls at once, until the last answer", whole, "ours")
    made.check("  calls that failed", calls.failures, Bar(0), str(calls.failures))


@row("workspaces", "hello with 1, 100 and 1,000 workspaces that exist, used in turn")
def workspaces(run, made):
    server = run.server()
    first = None
    for count in (1, 100, 1000):
        requests = run.in_workspaces(server, HELLO, count, f"workspaces-{count}")
        options = {"port": server.port, "requests": requests, "expect": EXPECT}
        load = native.measurement(f"prims, {clients_text(count, 'workspace')}", "probe", "http", **options)
        schedule = {"count": run.count(max(400, count), 20), "rate": 20, "warm_up": run.count(20, 2)}
        figure = made.samples(load.label, load.run(**schedule), "ours", [command_text(load, schedule)])
        if first:
            bar = Bar(1.2, 1.05) if count == 1000 else None
            made.check(f"  {figure.label} : 1 workspace", figure.value / first.value, bar)
        first = first or figure
    made.note("a workspace here is that of an MCP session of its own; calls go through the sessions in turn")

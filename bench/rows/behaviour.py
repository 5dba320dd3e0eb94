"""What happens beside the ordinary call: streams, limits, faults, large data, memory."""

import itertools
import os
import shlex
import signal
import statistics
import time

from harness import messages, native, processes, stream
from harness.baselines import HELLO
from harness.bench import command_text, row
from harness.results import Bar, duration
from rows.data import GROUPBY, LAYER

LINE = "import time\nprint(f'line {time.monotonic_ns()} %UNIQUE%')\ntime.sleep(0.15)"
LIMIT_S = 0.2
BYTES = 100_000_000
COPY = "import shutil, sys; shutil.copyfileobj(sys.stdin.buffer, sys.stdout.buffer)"


@row("stream", "how long a printed line takes to the client while the program runs on")
def streaming(run, made):
    server = run.server()
    delays = native.Samples()
    with stream.connect(server.port) as connection:
        for number in range(10_000_000, 10_000_000 + run.count(50, 5)):
            body = messages.tool_call("run_code", {"code": LINE}, token=number)
            found, arrived, received = stream.call_until(
                connection, server.port, body, number, rb'"message":"line (\d+) ' + str(number).encode()
            )
            if found:
                delays.seconds.append((arrived - int(found.group(1))) / 1e9)
            else:
                delays.failures += 1
                delays.why = received[-500:].decode(errors="replace")
    made.samples("prims, from print() to the client", delays, "ours")


@row("timeout", f"an endless loop with a limit of {LIMIT_S} s: how long after the limit the answer is there")
def timeout(run, made):
    server = run.server()
    body = messages.run_code("while True: x = %UNIQUE%", timeout=LIMIT_S)
    load = run.http("prims, answer after the limit", server, body, '"status":"timeout"', "timeout")
    schedule = {"count": run.count(50, 5), "warm_up": 1}
    samples = load.run(**schedule)
    samples.seconds = [seconds - LIMIT_S for seconds in samples.seconds]
    figure = made.samples(load.label, samples, "ours", [command_text(load, schedule)])
    made.check("  in ms", figure.value * 1000, Bar(20, 5), duration(figure.value))


def hello_for(server, seconds):
    """Calls one after the other for a while: when each began, how long it took, and the answer where it failed."""
    taken = []
    end = time.monotonic() + seconds
    with stream.connect(server.port) as connection:
        for number in itertools.count(20_000_000):
            began = time.monotonic()
            if began > end:
                return taken
            found, _, answer = stream.call_until(
                connection, server.port, messages.run_code(HELLO), number, b"hi " + str(number).encode()
            )
            taken.append((began, time.monotonic() - began, None if found else answer))


@row("recovery", "a template is killed: the slowest call after that, and when calls are as quick as before")
def recovery(run, made):
    with run.own_server() as server:  # whose only template is the one of hello
        measure_recovery(run, made, server)


def wait_for_templates(server, seconds=20):
    """Templates that have sandboxes waiting; none when there are none in time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        hello_for(server, 0.2)  # who is not asked keeps no template
        time.sleep(1)
        templates, waiting = processes.guests(server.pid)
        if templates and waiting:
            return templates
    return []


def measure_recovery(run, made, server):
    before = statistics.median(seconds for _, seconds, _ in hello_for(server, 1))
    slowest, back, failed = native.Samples(), native.Samples(), []
    for killed in range(run.count(5, 1)):
        templates = wait_for_templates(server)
        if not templates:
            made.note(f"after {killed} kills this server has no template that one could kill, 20 s later")
            break
        os.kill(templates[0].python.pid, signal.SIGKILL)
        began = time.monotonic()
        taken = hello_for(server, run.count(8, 3))
        slow = [when + seconds for when, seconds, _ in taken if seconds > 3 * before]
        failed += [answer for _, _, answer in taken if answer]
        slowest.seconds.append(max(seconds for _, seconds, _ in taken))
        back.seconds.append(max(slow, default=began) - began)
    if not slowest.seconds:
        return
    made.number("prims, a call before", before, "s", "ours")
    made.samples("prims, the slowest call after the kill", slowest, "ours")
    made.samples("prims, until the last call slower than 3 x before", back, "ours")
    made.check("  calls that failed", len(failed), Bar(0), str(len(failed)))
    if failed:
        body = failed[0].partition(b"\r\n\r\n")[2]
        made.note(f"the first of them: {body[:300].decode(errors='replace')}")


@row("pipe", "100 MB through a program's standard input and output, and 100 MB printed by a call")
def pipe(run, made):
    def through(label, line):
        command = f"head -c {BYTES} /dev/zero | {line} | wc -c"
        return native.measurement(label, "probe", "run", expect=BYTES, program=["sh", "-c", command])

    prims = shlex.join(run.program.command("run", "--kept-output=1GiB"))
    copy = f"-c '{COPY}  # %UNIQUE%'"
    ours = through("prims run, stdin to stdout", f"{prims} {copy}")
    plain = through("python3 -I -c, stdin to stdout", f"/usr/bin/python3 -I {copy}")
    run.alternate(made, [ours, plain], [run.count(20, 2)] * 2)
    with run.own_server("--kept-output=256MiB") as server:
        body = messages.run_code(f"import sys\nfor _ in range(100): sys.stdout.write('%UNIQUE%' * {BYTES // 800})")
        load = run.http("prims over HTTP, 100 MB printed", server, body, '"status":"ok"', "print")
        schedule = {"count": run.count(10, 2), "warm_up": 1}
        made.samples(load.label, load.run(**schedule), "ours", [command_text(load, schedule)])


@row("memory", "private memory of a sandbox that waits: without numpy and pandas, and with them imported")
def memory(run, made):
    server = run.server()
    run.warm(server, HELLO, requirements=LAYER)
    run.warm(server, GROUPBY)
    time.sleep(3)  # the pool fills up
    templates, waiting = processes.guests(server.pid)
    if not waiting:
        made.note("skipped: no sandbox waits in this server")
        return
    bars = {False: Bar(1.5, 0.8), True: Bar(2.5, 1.2)}
    for heavy, name in ((False, "light"), (True, "heavy")):
        held = [guest.private_bytes() / 1e6 for guest in waiting if guest.heavy == heavy]
        if not held:
            made.note(f"no {name} sandbox waits")
            continue
        figure = made.number(
            f"prims, a waiting sandbox ({name}, {len(held)} wait)", statistics.median(held), "MB", "ours"
        )
        made.check("  in MB", figure.value, bars[heavy], f"{figure.value:.2f} MB")
    for template in templates:
        name = "heavy" if template.heavy else "light"
        made.number(f"prims, the {name} template itself", template.private_bytes() / 1e6, "MB", "ours")

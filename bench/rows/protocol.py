"""The server without a sandbox: MCP ping, a plain echo tool, and the start of a stdio server."""

from harness import messages, native, thirdparty
from harness.bench import command_text, row
from harness.program import Server
from harness.results import Bar

RUST = "Rust SDK (rmcp), stateless, JSON"
GO = "Go SDK, stateless, JSON"
TYPESCRIPT = "TypeScript SDK, stateless, JSON"
SDKS = ((RUST, thirdparty.rust_server), (GO, thirdparty.go_server), (TYPESCRIPT, thirdparty.typescript_server))
CLIENTS = (1, 8, 64)


def sdk_lines(made, argument):
    """The command lines of the servers that this machine can build."""
    found = []
    for label, build in SDKS:
        try:
            found.append((label, [*build(), argument]))
        except native.Unavailable as missing:
            made.note(f"a baseline is left out: {missing}")
    return found


class Loads:
    """The same request to several servers at 1, 8 and 64 clients, in turns; a row's figures from that."""

    def __init__(self, run, made, body, expect, name):
        self.run = run
        self.made = made
        self.body = body
        self.expect = expect
        self.name = name
        self.targets = []

    def add(self, label, server, session=None):
        self.targets.append((label, server, session))

    def measure(self):
        for clients in CLIENTS:
            loads = [
                self.run.http(label, server, self.body, self.expect, f"{self.name}-{index}", clients, session)
                for index, (label, server, session) in enumerate(self.targets)
            ]
            totals = [native.Samples() for _ in loads]
            schedule = {"seconds": self.run.count(2, 1), "warm_up": 200}
            for _ in range(self.run.count(3, 1)):
                for load, total in zip(loads, totals):
                    total.extend(load.run(**schedule))
            self._show(clients, loads, totals, schedule)

    def _show(self, clients, loads, totals, schedule):
        who = f", {clients} client{'s' * (clients > 1)}"
        latency = rate = None
        for load, total in zip(loads, totals):
            bar = Bar(1.0) if load.label == RUST else None
            figure = self.made.samples(
                load.label + who,
                total,
                "baseline" if latency else "ours",
                [command_text(load, schedule)],
                latency,
                bar,
            )
            latency = latency or figure
        for load, total in zip(loads, totals):
            bar = Bar(1.0, 1.5, at_least=True) if load.label == RUST else None
            figure = self.made.number(
                load.label + who, total.rate, "/s", "baseline" if rate else "ours", (), rate, bar
            )
            rate = rate or figure


def compare_servers(run, made, loads):
    servers = []
    try:
        for label, line in sdk_lines(made, "http"):
            servers.append(Server(line))
            loads.add(label, servers[-1])
        loads.measure()
    finally:
        for server in servers:
            server.stop()


@row("ping", "MCP ping over HTTP at 1, 8 and 64 clients: latency and requests a second, beside the SDKs' servers")
def ping(run, made):
    server = run.server()
    loads = Loads(run, made, messages.message("ping", era="legacy"), '"id":%UNIQUE%\n"result":{', "ping")
    loads.add("prims", server, server.open_session())
    compare_servers(run, made, loads)


@row("echo", "a tool that returns its text, on our transport and on the SDKs', at 1, 8 and 64 clients")
def echo(run, made):
    body = messages.tool_call("echo", {"text": "hello %UNIQUE%"}, era="legacy")
    loads = Loads(run, made, body, '"id":%UNIQUE%\nhello %UNIQUE%', "echo")
    with Server(thirdparty.echo_server()) as server:
        loads.add("prims transport", server, server.open_session())
        compare_servers(run, made, loads)


@row(
    "stdio-start", "a stdio server from its start to the answer of tools/list: initialize, initialized, tools/list"
)
def stdio_start(run, made):
    lines = messages.lines_file(
        "start",
        [messages.initialize(), messages.INITIALIZED, messages.message("tools/list", era="legacy", request_id=2)],
    )

    def start(label, line, expect):
        return native.measurement(label, "probe", "start", lines=lines, expect=expect, program=line)

    ours = start("prims stdio", run.program.command("stdio"), '"run_code"')
    names = {RUST: "Rust SDK (rmcp)", GO: "Go SDK", TYPESCRIPT: "TypeScript SDK"}
    others = [start(names[label], line, '"echo"') for label, line in sdk_lines(made, "stdio")]
    counts = [run.count(100, 5)] * (1 + len(others))
    figure = run.alternate(made, [ours, *others], counts, warm_up=2)[0]
    made.check("  prims stdio in ms, in itself", figure.value * 1000, Bar(15, 8), f"{figure.value * 1000:.1f} ms")

"""The server without a sandbox: MCP ping and a plain echo tool."""

from harness import messages
from harness.bench import row


@row("ping", "MCP ping over HTTP: latency of one client, then requests a second of 1, 8 and 64 clients")
def ping(run, made):
    server = run.server()
    session = server.open_session()
    body = messages.message("ping", era="legacy")
    for clients in (1, 8, 64):
        load = run.http(f"prims, {clients} clients", server, body, '"id":%UNIQUE%\n"result":{}', "ping", clients, session)
        samples = load.run(seconds=run.count(5, 1), warm_up=100)
        made.samples(f"prims, {clients} client{'s' * (clients > 1)}", samples, "ours")
        made.number(f"prims, {clients} client{'s' * (clients > 1)}", samples.rate, "/s", "ours", samples=samples)

"""Drives the official Python packages: lists tools, runs code with progress, reports one line of JSON.

    client_python.py mcp|fastmcp URL
    client_python.py mcp|fastmcp -- COMMAND...

Each virtual environment has one of `mcp` 2.x, `fastmcp` and `fastmcp` 2.9.
"""

import asyncio
import json
import sys

CODE = "import sys, time\nprint('hello from', 6 * 7)\ntime.sleep(0.5)\nprint('second')\n"
FAILS = "1 / 0"


def report(tools, version, first, failed, progress):
    print(json.dumps({"tools": tools, "version": version, "result": first, "failed": failed, "progress": progress}))


async def with_mcp(target):
    import mcp
    server = target if isinstance(target, str) else mcp.StdioServerParameters(command=target[0], args=target[1:])
    progress = []

    async def on_progress(value, total, message):
        progress.append(value)

    async with mcp.Client(server) as client:
        tools = [tool.name for tool in (await client.list_tools()).tools]
        first = await client.call_tool("run_code", {"code": CODE}, progress_callback=on_progress)
        failed = await client.call_tool("run_code", {"code": FAILS})
        version = getattr(client, "protocol_version", None)
        report(tools, str(version), first.structured_content, failed.structured_content, progress)


async def with_fastmcp(target):
    import fastmcp
    from fastmcp.client.transports import StdioTransport
    server = target if isinstance(target, str) else StdioTransport(command=target[0], args=target[1:])
    progress = []

    async def on_progress(value, total, message):
        progress.append(value)

    async with fastmcp.Client(server) as client:
        tools = [tool.name for tool in await client.list_tools()]
        if fastmcp.__version__.startswith("2.9."):  # call_tool gives content blocks and raises for isError
            first = json.loads((await client.call_tool("run_code", {"code": CODE}, progress_handler=on_progress))[0].text)
            failed = json.loads((await client.call_tool("run_code", {"code": FAILS}))[0].text)
        else:
            first = (await client.call_tool("run_code", {"code": CODE}, progress_handler=on_progress)).structured_content
            failed = (await client.call_tool("run_code", {"code": FAILS})).structured_content
        report(tools, fastmcp.__version__, first, failed, progress)


if __name__ == "__main__":
    kind, *rest = sys.argv[1:]
    asyncio.run((with_mcp if kind == "mcp" else with_fastmcp)(rest[1:] if rest[0] == "--" else rest[0]))

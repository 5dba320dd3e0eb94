"""Requests as bytes, ready to be sent: written to files that the probe reads. %UNIQUE% becomes a number in every call."""

import json

from . import paths

LEGACY, MODERN = "2025-11-25", "2026-07-28"
META = "io.modelcontextprotocol/"
UNIQUE = "%UNIQUE%"
CLIENT = {"name": "prims-bench", "version": "1"}


def _file(name, text):
    folder = paths.BUILD / "requests"
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_bytes(text.encode())
    return path


def _json(message):
    """The id is a number of eight digits, so that a request has the same length in every call."""
    return json.dumps(message, separators=(",", ":")).replace(f'"id":"{UNIQUE}"', f'"id":{UNIQUE}')


def message(method, params=None, era="modern", request_id=UNIQUE):
    params = dict(params or {})
    if era == "modern":
        params["_meta"] = {
            META + "protocolVersion": MODERN,
            META + "clientCapabilities": {},
            META + "clientInfo": CLIENT,
            **params.get("_meta", {}),
        }
    out = {"jsonrpc": "2.0", "id": request_id, "method": method}
    if params:
        out["params"] = params
    return out


def initialize(request_id=1):
    return message(
        "initialize", {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": CLIENT}, "legacy", request_id
    )


INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def tool_call(name, arguments, era="modern", token=None):
    params = {"name": name, "arguments": arguments}
    if token is not None:
        params["_meta"] = {"progressToken": token}
    return message("tools/call", params, era)


def run_code(code, era="modern", **arguments):
    return tool_call("run_code", {"code": code, **arguments}, era)


def http_bytes(body, port, session=None, path="/mcp"):
    """A complete POST. The era shows in the message itself."""
    modern = META + "protocolVersion" in body.get("params", {}).get("_meta", {})
    text = _json(body)
    lines = [
        f"POST {path} HTTP/1.1",
        f"Host: 127.0.0.1:{port}",
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        f"Content-Length: {len(text.encode())}",
    ]
    if modern:
        lines += [f"MCP-Protocol-Version: {MODERN}", f"Mcp-Method: {body['method']}"]
        if body["method"] == "tools/call":
            lines.append(f"Mcp-Name: {body['params']['name']}")
    elif body["method"] != "initialize":
        lines.append(f"MCP-Protocol-Version: {LEGACY}")
    if session:
        lines.append(f"Mcp-Session-Id: {session}")
    return "\r\n".join(lines) + "\r\n\r\n" + text


def http_file(name, body, port, session=None):
    return _file(name + ".http", http_bytes(body, port, session))


def requests_file(name, texts):
    """Several complete requests in one file, with a zero byte between them: sent in turn."""
    return _file(name + ".requests", "\0".join(texts))


def line_file(name, body):
    return _file(name + ".line", _json(body) + "\n")


def lines_file(name, bodies):
    return _file(name + ".lines", "".join(_json(body) + "\n" for body in bodies))

"""Every message that a test sees is checked against the protocol revision it belongs to.

PRIMS_MCP_SCHEMA_DIR names a folder with the official JSON schemas (REVISION.schema.json). Without it the official types
package `mcp-types` does the same. One of the two is always there: the suite refuses to run without.
"""

import functools
import json
import os
import pathlib

MODERN = "2026-07-28"
# Which result type answers which method.
RESULTS = {
    "initialize": "InitializeResult", "server/discover": "DiscoverResult", "tools/list": "ListToolsResult",
    "tools/call": "CallToolResult", "ping": "EmptyResult",
}
NOTIFICATIONS = {"notifications/progress": "ProgressNotification", "notifications/message": "LoggingMessageNotification"}


class Fault(AssertionError):
    """A message that its revision's schema refuses."""


def folder():
    given = os.environ.get("PRIMS_MCP_SCHEMA_DIR")
    return pathlib.Path(given) if given and pathlib.Path(given).is_dir() else None


@functools.cache
def _document(revision):
    return json.loads((folder() / f"{revision}.schema.json").read_text(encoding="utf-8"))


@functools.cache
def _validator(revision, name):
    import jsonschema
    document = _document(revision)
    key = "$defs" if "$defs" in document else "definitions"
    if name not in document[key]:
        return None
    schema = {**document, "$ref": f"#/{key}/{name}"}
    return jsonschema.validators.validator_for(document)(schema)


def _check_with_schema(revision, name, value):
    validator = _validator(revision, name)
    if validator is None:
        return
    fault = next(validator.iter_errors(value), None)
    if fault is not None:
        raise Fault(f"{name} of {revision}: {fault.message} at {list(fault.absolute_path)}")


def _check_with_types(name, value):
    import mcp_types
    import pydantic
    model = getattr(mcp_types, name, None)
    if model is None:
        return
    try:
        pydantic.TypeAdapter(model).validate_python(value)
    except pydantic.ValidationError as error:
        raise Fault(f"{name}: {error}") from error


def check(revision, name, value):
    if folder():
        _check_with_schema(revision, name, value)
    else:
        _check_with_types(name, value)


def check_request(revision, message):
    if folder():
        _check_with_schema(revision, "JSONRPCRequest" if "id" in message else "JSONRPCNotification", message)


def check_message(revision, message, method):
    """One message from the server; `method` is that of the request it belongs to."""
    if message.get("jsonrpc") != "2.0":
        raise Fault(f"no JSON-RPC 2.0 message: {message}")
    if "method" in message:
        name = NOTIFICATIONS.get(message["method"])
        if name is None:
            raise Fault(f"a notification that nobody asked for: {message['method']}")
        check(revision, name, message)
    elif "error" in message:
        error = message["error"]
        if not isinstance(error.get("code"), int) or not isinstance(error.get("message"), str):
            raise Fault(f"no JSON-RPC error: {message}")
    else:
        result = message["result"]
        if revision == MODERN and result.get("resultType") != "complete":
            raise Fault(f"{method}: a {MODERN} result without resultType: {str(result)[:300]}")
        if revision != MODERN and "resultType" in result:
            raise Fault(f"{method}: resultType in a {revision} result")
        check(revision, RESULTS[method], result)


def source():
    """Where the truth comes from; raises when there is none."""
    if folder():
        import jsonschema
        return f"schemas in a folder, jsonschema {jsonschema.__version__}" if hasattr(jsonschema, "__version__") else "schemas"
    import mcp_types  # noqa: F401  (only whether it is there)
    return "mcp-types"

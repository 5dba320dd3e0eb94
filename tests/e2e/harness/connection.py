"""One MCP client: either era, over streamable HTTP or stdio. Every message is checked against its revision's schema.

    with connect(server, "http", "modern") as client:
        answer = client.call("print(1)")            # run_code
        call = client.start("...", token="t")       # does not wait
        call.progress.get(timeout=5); call.answer(timeout=10)
"""

import functools
import http.client
import itertools
import json
import queue
import socket
import subprocess
import threading
import time

from . import program, schema

LEGACY, MODERN = "2025-11-25", "2026-07-28"
META = "io.modelcontextprotocol/"
WAIT_S = 180  # for an answer; a test that cares about time names its own
CLIENT = {"name": "prims-e2e", "version": "1"}


def strict_loads(raw):
    """JSON as the strictest client reads it: no NaN, no lone surrogates, valid UTF-8."""

    def refuse(name):
        raise schema.Fault(f"bare {name} in JSON")

    text = raw.decode("utf-8")
    value = json.loads(text, parse_constant=refuse)
    json.dumps(value, ensure_ascii=False).encode("utf-8")  # raises for a lone surrogate
    return value


class Answer:
    """The response to one request."""

    def __init__(self, message, seconds, progress, status=200):
        self.message = message
        self.seconds = seconds
        self.progress = progress  # params of every progress notification, in order
        self.http_status = status
        self.error = message.get("error")
        self.result = message.get("result") or {}
        self.is_error = bool(self.result.get("isError"))
        self.data = self.result.get("structuredContent") or {}

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return self.data.get(name)

    def message_text(self):
        """The sentence that says what happened, in the result or the program's own error."""
        return self.data.get("message") or (self.data.get("error") or {}).get("message")

    @property
    def text(self):
        return "\n".join(block["text"] for block in self.result.get("content", []) if block.get("type") == "text")

    def __repr__(self):
        return json.dumps(self.data or self.message, ensure_ascii=False)[:1500]


class Call:
    """A request in flight. `progress` yields the params of progress notifications as they arrive."""

    def __init__(self, method, request_id):
        self.method = method
        self.id = request_id
        self.started = time.monotonic()
        self.progress = queue.Queue()
        self.seen = []
        self.late = []  # whatever came after the response
        self.sent = threading.Event()
        self.done = threading.Event()
        self.response = None
        self.seconds = None
        self.status = 200
        self.fault = None

    def take(self, revision, message):
        """One message for this call, from the reading thread."""
        if self.done.is_set():
            self.late.append(message)
            return
        try:
            schema.check_message(revision, message, self.method)
        except schema.Fault as fault:
            self.fault = self.fault or fault
        if message.get("method") == "notifications/progress":
            self.seen.append(message["params"])
            self.progress.put(message["params"])
        elif "id" in message:
            self.response = message
            self.seconds = time.monotonic() - self.started
            self.done.set()

    def broken(self, why):
        if not self.done.is_set():
            self.fault = self.fault or AssertionError(why)
            self.seconds = time.monotonic() - self.started
            self.done.set()

    def answer(self, timeout=WAIT_S):
        if not self.done.wait(timeout):
            raise AssertionError(f"no answer to {self.method} within {timeout} s; progress so far: {self.seen[-3:]}")
        if self.fault:
            raise self.fault
        return Answer(self.response, self.seconds, self.seen, self.status)


class Connection:
    """What both transports share. Subclasses send messages and feed calls."""

    def __init__(self, era):
        self.era = era
        self.revision = MODERN if era == "modern" else LEGACY
        self.ids = itertools.count(1)
        self.output_schema = None

    def message(self, method, params, token=None, request_id=None, notification=False):
        params = dict(params or {})
        meta = dict(params.get("_meta") or {})
        if token is not None:
            meta["progressToken"] = token
        if self.era == "modern" and not notification:
            meta[META + "protocolVersion"] = self.revision
            meta[META + "clientCapabilities"] = {}
            meta[META + "clientInfo"] = CLIENT
        if meta:
            params["_meta"] = meta
        message = {"jsonrpc": "2.0", "method": method}
        if not notification:
            message["id"] = next(self.ids) if request_id is None else request_id
        if params or method.startswith("tools/"):
            message["params"] = params
        return message

    def open(self):
        if self.era == "legacy":
            hello = self.request("initialize", {"protocolVersion": self.revision, "capabilities": {}, "clientInfo": CLIENT})
            assert hello.result["protocolVersion"] == self.revision, hello
            self.ready(hello)
            self.notify("notifications/initialized")
        else:
            hello = self.request("server/discover")
            assert self.revision in hello.result["supportedVersions"], hello
        self.hello = hello.result

    def ready(self, hello):
        """Called with the answer to initialize."""

    def request(self, method, params=None, timeout=WAIT_S, **options):
        return self.send(self.message(method, params, **options)).answer(timeout)

    def start(self, code=None, tool="run_code", token=None, request_id=None, **arguments):
        """Starts a tool call; null arguments are sent as given."""
        if code is not None:
            arguments["code"] = code
        message = self.message("tools/call", {"name": tool, "arguments": arguments}, token=token, request_id=request_id)
        return self.send(message)

    def call(self, code=None, tool="run_code", token=None, wait=WAIT_S, **arguments):
        answer = self.start(code, tool, token, **arguments).answer(wait)
        self.check_output(answer)
        return answer

    def tools(self):
        return self.request("tools/list").result["tools"]

    def check_output(self, answer):
        """structuredContent conforms to outputSchema and is what the first text block says."""
        if "structuredContent" not in answer.result:
            return
        if self.output_schema is None:
            self.output_schema = next(t for t in self.tools() if t["name"] == "run_code")["outputSchema"]
        import jsonschema
        jsonschema.Draft202012Validator(self.output_schema).validate(answer.data)
        first = answer.result["content"][0]
        assert first["type"] == "text" and json.loads(first["text"]) == answer.data, "text is not the structured result"

    def __enter__(self):
        self.open()
        return self

    def __exit__(self, *_):
        self.close()


class Http(Connection):
    def __init__(self, port, era):
        super().__init__(era)
        self.port = port
        self.session = None

    def headers(self, message):
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if self.era == "modern":
            headers["MCP-Protocol-Version"] = self.revision
            headers["Mcp-Method"] = message["method"]
            if message["method"] == "tools/call":
                headers["Mcp-Name"] = message["params"]["name"]
        elif self.session:
            headers["MCP-Protocol-Version"] = self.revision
            headers["Mcp-Session-Id"] = self.session
        return headers

    def ready(self, hello):
        self.session = self.last_session

    def send(self, message):
        schema.check_request(self.revision, message)
        call = Call(message["method"], message.get("id"))
        call.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        body = json.dumps(message).encode()  # ASCII, as most clients send it
        if message["method"] == "initialize":
            self._exchange(call, message, body)
        else:
            threading.Thread(target=self._exchange, args=(call, message, body), daemon=True).start()
        return call

    def _exchange(self, call, message, body):
        try:
            call.connection.request("POST", "/mcp", body, self.headers(message))
            call.socket = call.connection.sock
            call.sent.set()
            response = call.connection.getresponse()
            call.status = response.status
            self.last_session = response.headers.get("Mcp-Session-Id")
            if "text/event-stream" in response.headers.get("Content-Type", ""):
                self._read_events(call, response)
            else:
                raw = response.read()
                if raw:
                    call.take(self.revision, strict_loads(raw))
                elif response.status == 202:
                    call.response = {}
                    call.done.set()
            call.broken(f"HTTP {response.status} ended without an answer")
        except (OSError, ValueError, http.client.HTTPException, schema.Fault) as error:
            call.broken(f"{type(error).__name__}: {error}")
        finally:
            call.connection.close()

    def _read_events(self, call, response):
        data = []
        for line in iter(response.readline, b""):
            line = line.rstrip(b"\r\n")
            if line.startswith(b"data:"):
                data.append(line[5:].removeprefix(b" "))
            elif not line and any(data):
                call.take(self.revision, strict_loads(b"\n".join(data)))
            if not line:
                data = []

    def notify(self, method, params=None):
        message = self.message(method, params, notification=True)
        call = self.send(message)
        call.done.wait(10)

    def cancel(self, call):
        """As the era does it over HTTP: modern clients close the stream, legacy ones send a notification."""
        if self.era == "modern":
            self.drop(call)
        else:
            self.notify("notifications/cancelled", {"requestId": call.id, "reason": "test"})

    def drop(self, call):
        call.sent.wait(10)
        try:
            call.socket.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass  # the answer came first and the connection is closed

    def close(self):
        if self.session:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
            try:
                connection.request("DELETE", "/mcp", headers={"Mcp-Session-Id": self.session,
                                                              "MCP-Protocol-Version": self.revision})
                connection.getresponse().read()
            except OSError:
                pass
            finally:
                connection.close()


class Stdio(Connection):
    def __init__(self, era, *flags, state=None, env=None):
        super().__init__(era)
        self.process = program.start(program.command("stdio", *flags, state=state or program.shared_state()), env, cwd="/",
                                     stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.calls = {}
        self.lock = threading.Lock()
        self.log = bytearray()
        self.stray = []
        self.threads = [threading.Thread(target=work, daemon=True) for work in (self._read, self._read_log)]
        for thread in self.threads:
            thread.start()

    def _read(self):
        for line in self.process.stdout:
            message = strict_loads(line)
            call = self._target(message)
            if call is None:
                self.stray.append(message)
            else:
                call.take(self.revision, message)
        for call in list(self.calls.values()):
            call.broken(f"the server closed its output: {bytes(self.log[-500:]).decode('utf-8', 'replace')}")

    def _target(self, message):
        if "id" in message:
            return self.calls.get(message["id"])
        token = message.get("params", {}).get("progressToken")
        return next((c for c in self.calls.values() if token is not None and c.token == token
                     and type(c.token) is type(token)), None)

    def _read_log(self):
        for line in self.process.stderr:
            self.log += line

    def send(self, message):
        schema.check_request(self.revision, message)
        call = Call(message["method"], message.get("id"))
        call.token = message.get("params", {}).get("_meta", {}).get("progressToken")
        if "id" in message:
            self.calls[message["id"]] = call
        else:
            call.done.set()
        with self.lock:
            self.process.stdin.write(json.dumps(message).encode() + b"\n")
            self.process.stdin.flush()
        return call

    def notify(self, method, params=None):
        self.send(self.message(method, params, notification=True))

    def cancel(self, call):
        self.notify("notifications/cancelled", {"requestId": call.id, "reason": "test"})

    def close(self):
        """End of input, as a client leaves; the exit status."""
        try:
            self.process.stdin.close()
        except OSError:
            pass
        try:
            status = self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        for thread in self.threads:
            thread.join(5)
        self.process.stdout.close()
        self.process.stderr.close()
        return status


def connect(server, transport, era, **options):
    return Http(server.port, era) if transport == "http" else Stdio(era, **options)


ways = functools.partial(itertools.product, ("http", "stdio"), ("modern", "legacy"))

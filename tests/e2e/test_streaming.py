"""Output arrives while the program runs; calls can be cancelled; nothing comes after the result."""

import functools
import http.client
import json
import os
import pathlib
import secrets
import time
import unittest

from harness import connection, program

TICKS = "import time\nfor i in range({n}):\n    print('line', i)\n    time.sleep({step})\n"


# Prints a line and goes on only when a file appears in its working directory.
WAITS = """import os, time
open('{mark}', 'w').close()
print('first')
while not os.path.exists('go'):
    time.sleep(0.02)
print('second')
"""


def every_way(test):
    """Runs a test method with a client of each era over each transport."""

    @functools.wraps(test)
    def run(self):
        for transport, era in connection.ways():
            with self.subTest(f"{test.__name__} {transport} {era}"):
                with connection.connect(self.server, transport, era) as client:
                    test(self, client)

    return run


def workspace_with(mark):
    """The running program's working directory on the host: the one that holds the file `mark`."""
    for folder, folders, files in os.walk(program.shared_state()):
        folders[:] = [name for name in folders if name not in ("layers", "cache", "site-packages")]
        if mark in files:
            return pathlib.Path(folder)
    raise AssertionError("no workspace holds the mark")


class Streaming(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(program.Server())

    @every_way
    def test_a_line_arrives_before_the_program_goes_on(self, client):
        mark = "mark-" + secrets.token_hex(4)
        call = client.start(WAITS.format(mark=mark), token="t1", timeout=60)
        text = ""
        while "first" not in text:
            text += str(call.progress.get(timeout=20).get("message", ""))
        self.assertFalse(call.done.is_set())
        self.assertNotIn("second", text)
        (workspace_with(mark) / "go").touch()
        answer = call.answer(20)
        self.assertEqual((answer.status, answer.stdout), ("ok", "first\nsecond\n"), answer)

    @every_way
    def test_progress_follows_the_rules(self, client):
        for token in ("tok", 0, 7):
            call = client.start(TICKS.format(n=12, step=0.1), token=token)
            answer = call.answer()
            self.assertEqual(answer.status, "ok", answer)
            self.assertGreaterEqual(len(answer.progress), 3)
            numbers = [p["progress"] for p in answer.progress]
            self.assertTrue(all(a < b for a, b in zip(numbers, numbers[1:])), numbers)
            for p in answer.progress:
                self.assertEqual((type(p["progressToken"]), p["progressToken"]), (type(token), token))
            self.assertLessEqual(len(answer.progress), 5 * (answer.seconds + 2))
            client.call("print('after')")
            self.assertEqual(call.late, [])

    @every_way
    def test_no_progress_without_a_token(self, client):
        call = client.start(TICKS.format(n=5, step=0.1))
        self.assertEqual(call.answer().progress, [])
        self.assertEqual(getattr(client, "stray", []), [])

    def test_a_silent_program_gives_signs_of_life(self):
        with connection.connect(self.server, "http", "modern") as client:
            call = client.start("import time\ntime.sleep(25)\n", token="silent")
            first = time.monotonic()
            for _ in range(2):
                call.progress.get(timeout=13)
            self.assertLess(time.monotonic() - first, 25)
            self.assertEqual(call.answer().status, "ok")

    def test_the_stream_opens_early_and_a_quick_answer_is_plain(self):
        with connection.connect(self.server, "http", "modern") as client:
            client.call("print(1)")
            message = client.message("tools/call", {"name": "run_code", "arguments": {"code": "import time; time.sleep(3)"}})
            head = ResponseHead(client, message)
            self.assertLess(head.seconds, 1.5)  # 0.1 promised; slack for a busy machine
            self.assertIn("text/event-stream", head.type)
            message = client.message("tools/call", {"name": "no_such_tool", "arguments": {}})
            self.assertIn("application/json", ResponseHead(client, message).type)

    @every_way
    def test_cancel_ends_the_run_at_once(self, client):
        call = client.start("import subprocess, time\nsubprocess.Popen(['sleep', '300'])\nprint('on')\ntime.sleep(300)\n", token="c")
        call.progress.get(timeout=20)
        root = client.process.pid if hasattr(client, "process") else self.server.process.pid
        busy = program.at_rest(root)
        client.cancel(call)
        self.assertTrue(program.wait_for(lambda: len(program.descendants(root)) < busy, 5), "the run goes on")
        self.assertEqual(client.call("print('next')").stdout, "next\n")
        self.assertIsNone(call.response, "a cancelled request was answered")

    @every_way
    def test_cancelling_what_is_unknown_does_nothing(self, client):
        client.notify("notifications/cancelled", {"requestId": 987654, "reason": "unknown"})
        self.assertEqual(client.call("print(1)").stdout, "1\n")

    @every_way
    def test_a_cancel_that_races_the_answer(self, client):
        for n in range(5):
            call = client.start("print('quick')", token=f"r{n}")
            call.done.wait(0.02 * n)
            if not call.done.is_set() or client.era == "legacy":
                client.cancel(call)
        self.assertEqual(client.call("print('alive')").stdout, "alive\n")


class ResponseHead:
    """Sends one request and looks only at when the response begins and of which type it is; then hangs up."""

    def __init__(self, client, message):
        link = http.client.HTTPConnection("127.0.0.1", client.port, timeout=60)
        began = time.monotonic()
        link.request("POST", "/mcp", json.dumps(message), client.headers(message))
        response = link.getresponse()
        self.seconds = time.monotonic() - began
        self.type = response.headers["Content-Type"]
        link.close()


class ClientsThatGo(unittest.TestCase):
    def test_a_dropped_connection_ends_a_modern_run(self):
        with program.Server() as server, connection.connect(server, "http", "modern") as client:
            client.call("print(1)")
            rest = program.at_rest(server.process.pid)
            call = client.start("import time\nprint('on')\ntime.sleep(300)\n", token="d")
            call.progress.get(timeout=20)
            client.drop(call)
            self.assertTrue(program.wait_for(lambda: len(program.descendants(server.process.pid)) <= rest, 10))
            self.assertTrue(server.alive())

    def test_a_dropped_connection_does_not_end_a_legacy_run(self):
        with program.Server() as server, connection.connect(server, "http", "legacy") as client:
            client.call("print(1)")
            rest = program.at_rest(server.process.pid)
            call = client.start("import time\nprint('on')\ntime.sleep(6)\n", token="d")
            call.progress.get(timeout=20)
            client.drop(call)
            self.assertGreater(program.at_rest(server.process.pid, 3), rest, "it was ended")
            self.assertTrue(program.wait_for(lambda: len(program.descendants(server.process.pid)) <= rest, 20), "it never ended")
            self.assertEqual(client.call("print('still')").stdout, "still\n")

    def test_closed_stdin_ends_run_and_server(self):
        for era in ("modern", "legacy"):
            with self.subTest(era):
                client = connection.Stdio(era)
                client.open()
                call = client.start("import time\nprint('on')\ntime.sleep(300)\n", token="e")
                call.progress.get(timeout=20)
                below = program.descendants(client.process.pid)
                began = time.monotonic()
                client.close()
                self.assertLess(time.monotonic() - began, 3)
                self.assertTrue(program.wait_for(lambda: not any(pathlib.Path(f"/proc/{p}").exists() for p in below), 3))

    def test_a_client_that_reads_slowly_gets_everything(self):
        with program.Server() as server, connection.connect(server, "http", "modern") as client:
            answer = client.call("for i in range(3000): print('x' * 100)\n", token="slow")
            self.assertEqual(answer.status, "ok")


if __name__ == "__main__":
    unittest.main()

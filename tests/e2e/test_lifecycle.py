"""Start, drain and end of `serve` and `stdio`, and what they leave alone."""

import os
import signal
import socket
import subprocess
import time
import unittest

from harness import connection, program


class Stdio(unittest.TestCase):
    def test_nothing_is_created_before_the_first_call(self):
        for era in ("modern", "legacy"):
            with self.subTest(era):
                state = program.scratch() / "never"
                with connection.Stdio(era, state=state) as client:
                    client.tools()
                    self.assertFalse(state.exists(), list(state.rglob("*")) if state.exists() else "")
                    self.assertEqual(program.descendants(client.process.pid), set())

    def test_end_of_input_ends_it_cleanly(self):
        client = connection.Stdio("modern")
        client.open()
        self.assertEqual(client.close(), 0)

    def test_sigterm_ends_an_idle_server_at_once(self):
        client = connection.Stdio("modern")
        client.open()
        client.process.send_signal(signal.SIGTERM)
        began = time.monotonic()
        client.process.wait(5)
        self.assertLess(time.monotonic() - began, 2)
        client.close()

    def test_only_protocol_on_stdout(self):
        done = subprocess.run(program.command("stdio", state=program.scratch() / "s"), input=b"not json\n", timeout=20,
                              env=program.environment(), capture_output=True, check=False)
        for line in done.stdout.splitlines():
            self.assertEqual(connection.strict_loads(line)["error"]["code"], -32700)

    def test_two_clients_of_one_state_directory(self):
        with connection.Stdio("modern") as one, connection.Stdio("legacy") as two:
            self.assertEqual(one.call("print(1)").stdout + two.call("print(2)").stdout, "1\n2\n")


class Serve(unittest.TestCase):
    def test_sigterm_drains(self):
        with program.Server() as server, connection.connect(server, "http", "modern") as client:
            call = client.start("import time\nprint('begun')\ntime.sleep(3)\nprint('finished')\n", token="d")
            call.progress.get(timeout=20)
            server.process.send_signal(signal.SIGTERM)
            answer = call.answer(20)
            self.assertEqual((answer.status, answer.stdout), ("ok", "begun\nfinished\n"), answer)
            self.assertEqual(server.process.wait(10), 0)

    def test_a_second_sigterm_ends_at_once(self):
        with program.Server() as server, connection.connect(server, "http", "modern") as client:
            call = client.start("import time\nprint('begun')\ntime.sleep(300)\n", token="d")
            call.progress.get(timeout=20)
            below = program.descendants(server.process.pid)
            server.process.send_signal(signal.SIGTERM)
            time.sleep(0.3)
            self.assertTrue(server.alive(), "the first signal drains")
            server.process.send_signal(signal.SIGTERM)
            server.process.wait(5)
            self.assertTrue(program.wait_for(lambda: not any(os.path.exists(f"/proc/{p}") for p in below), 5))

    def test_kill_9_leaves_no_program_behind(self):
        with program.Server() as server, connection.connect(server, "http", "modern") as client:
            call = client.start("import time\nprint('begun')\ntime.sleep(300)\n", token="d")
            call.progress.get(timeout=20)
            below = program.descendants(server.process.pid)
            self.assertTrue(below)
            server.process.kill()
            self.assertTrue(program.wait_for(lambda: not any(os.path.exists(f"/proc/{p}") for p in below), 5))

    def test_both_addresses_both_paths_and_health(self):
        with program.Server() as server:
            for host in ("127.0.0.1", "::1"):
                if host == "::1" and not ipv6():
                    continue
                for path in ("/mcp", "/mcp/"):
                    status, _ = http(host, server.port, "POST", path, b"{}", {"Content-Type": "application/json"})
                    self.assertEqual(status, 400, (host, path))
                self.assertEqual(http(host, server.port, "GET", "/healthz")[0], 200)

    def test_a_taken_port_is_a_clear_error(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            done = program.prims("serve", "--port", taken.getsockname()[1], timeout=20)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(str(taken.getsockname()[1]), done.stderr)

    def test_beyond_loopback_needs_a_flag(self):
        done = program.prims("serve", "--host", "0.0.0.0", "--port", "0", timeout=20)
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, "(?i)authentication|unauthenticated")

    def test_strangers_are_refused(self):
        with program.Server() as server:
            port = server.port
            local = {"Content-Type": "application/json"}
            for headers in ({"Host": "evil.example.com"}, {"Origin": "http://evil.example.com"}, {"Origin": "null"}):
                status, _ = http("127.0.0.1", port, "POST", "/mcp", b"{}", {**local, **headers})
                self.assertEqual(status, 403, headers)
            self.assertEqual(http("127.0.0.1", port, "GET", "/nowhere")[0], 404)
            self.assertIn(http("127.0.0.1", port, "POST", "/mcp", b"not json", local)[0], (400,))

    def test_a_full_or_read_only_state_directory_is_said(self):
        done = program.prims("run", "-c", "print(1)", state="/proc/nowhere", timeout=60)
        self.assertEqual(done.returncode, 125, done.stderr)
        self.assertIn("/proc/nowhere", done.stderr)


def ipv6():
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


def http(host, port, method, path, body=None, headers=None):
    import http.client
    link = http.client.HTTPConnection(host, port, timeout=20)
    link.request(method, path, body, headers or {})
    response = link.getresponse()
    data = response.read()
    link.close()
    return response.status, data


if __name__ == "__main__":
    unittest.main()

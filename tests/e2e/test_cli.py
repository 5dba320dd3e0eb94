"""The command line: run, call, doctor, config, help, version."""

import json
import shutil
import signal
import subprocess
import unittest

from harness import connection, program

VERSION = (program.ROOT / "VERSION").read_text(encoding="utf-8").strip()


class Run(unittest.TestCase):
    def test_prints_as_the_program_does(self):
        done = program.prims("run", "-c", "import sys\nprint('out')\nprint('err', file=sys.stderr)\n40 + 2")
        self.assertEqual((done.returncode, done.stdout), (0, "out\n"), done.stderr)
        self.assertIn("err\n", done.stderr)

    def test_exit_statuses(self):
        for code, options, status in (
                ("pass", [], 0), ("raise SystemExit(3)", [], 3), ("1/0", [], 1), ("import sys; sys.exit('x')", [], 1),
                ("while True: pass", ["--timeout", "1"], 124), ("import os; os._exit(77)", [], 77),
                ("x = []\nwhile True: x.append(bytearray(b'x' * 10**7))", [], 137)):
            with self.subTest(code):
                done = program.prims("run", *options, "-c", code)
                self.assertEqual(done.returncode, status, done.stderr[-800:])

    def test_a_traceback_on_stderr(self):
        done = program.prims("run", "-c", "def f():\n    1/0\nf()")
        self.assertIn("ZeroDivisionError: division by zero", done.stderr)
        self.assertEqual(done.stdout, "")

    def test_a_file_a_dash_and_stdin(self):
        folder = program.scratch()
        (folder / "prog.py").write_text("print('file', __name__)\n")
        self.assertEqual(program.prims("run", folder / "prog.py").stdout, "file __main__\n")
        self.assertEqual(program.prims("run", "-", stdin="print('dash')\n").stdout, "dash\n")
        self.assertEqual(program.prims("run", folder / "prog.py", stdin="").stdout, "file __main__\n")

    def test_a_missing_file_is_named(self):
        done = program.prims("run", "/no/such/file.py")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("/no/such/file.py", done.stderr)

    def test_json_is_the_tool_result(self):
        done = program.prims("run", "--json", "-c", "print('x')\n1 + 1")
        result = json.loads(done.stdout)
        self.assertEqual((result["status"], result["stdout"], result["value"]["text"]), ("ok", "x\n", "2"))
        with program.Server() as server, connection.connect(server, "http", "modern") as client:
            self.assertEqual(set(client.call("print('x')\n1 + 1").data), set(result))

    def test_json_of_a_failure(self):
        done = program.prims("run", "--json", "--timeout", "1", "-c", "print('x')\nwhile True: pass")
        self.assertEqual((done.returncode, json.loads(done.stdout)["status"]), (124, "timeout"))

    def test_with_a_package(self):
        done = program.prims("run", "--with", "pyfiglet==1.0.2", "-c", "import pyfiglet; print(pyfiglet.__name__)")
        self.assertEqual((done.returncode, done.stdout), (0, "pyfiglet\n"), done.stderr[-800:])

    def test_a_closed_pipe_ends_it(self):
        done = subprocess.run(["sh", "-c", f'"{program.PRIMS}" run -c "while True: print(1)" | head -n 1'], timeout=60,
                              env=program.environment({"PRIMS_STATE_DIR": str(program.shared_state())}), capture_output=True, check=False)
        self.assertEqual(done.stdout, b"1\n")

    def test_interrupt(self):
        process = subprocess.Popen(program.command("run", "-c", "print('on')\nwhile True: pass", state=None),
                                   env=program.environment({"PRIMS_STATE_DIR": str(program.shared_state())}), stdout=subprocess.PIPE)
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(10), 130)
        process.stdout.close()


class Call(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(program.Server())

    def test_lists_and_calls_over_http(self):
        listed = program.prims("call", self.server.url)
        self.assertEqual(listed.returncode, 0, listed.stderr)
        self.assertIn("run_code", listed.stdout)
        done = program.prims("call", self.server.url, "run_code", json.dumps({"code": "print('via call')"}))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("via call", done.stdout)

    def test_over_stdio(self):
        line = program.command("stdio", state=program.shared_state())
        listed = program.prims("call", "--", *line)
        self.assertEqual(listed.returncode, 0, listed.stderr)
        self.assertIn("run_code", listed.stdout)

    def test_a_tool_error_is_an_exit_status(self):
        done = program.prims("call", self.server.url, "run_code", json.dumps({"code": "x", "nonsense": 1}))
        self.assertNotEqual(done.returncode, 0)
        self.assertNotEqual(program.prims("call", self.server.url, "no_such_tool", "{}").returncode, 0)
        self.assertNotEqual(program.prims("call", "http://127.0.0.1:1/mcp").returncode, 0)


class Settings(unittest.TestCase):
    def config(self, *arguments, **options):
        return program.prims("config", *arguments, **options)

    def test_the_order_of_sources(self):
        folder = program.scratch()
        (folder / "c.toml").write_text("port = 9107\ntimeout = 31\n")
        done = self.config("--config", folder / "c.toml", env={"PRIMS_TIMEOUT": "32"})
        self.assertEqual(done.returncode, 0, done.stderr)
        line = {text.split()[0]: text for text in done.stdout.splitlines() if text.strip()}
        self.assertIn("9107", line["port"])
        self.assertIn("c.toml", line["port"])
        self.assertIn("32", line["timeout"])
        self.assertIn("PRIMS_TIMEOUT", line["timeout"])

    def test_old_names_still_work(self):
        done = self.config(env={"PRIMCS_TIMEOUT": "41", "PORT": "9123"})
        self.assertIn("PRIMCS_TIMEOUT", done.stdout)
        self.assertIn("9123", done.stdout)

    def test_unknown_keys_and_bad_values_are_named(self):
        folder = program.scratch()
        (folder / "a.toml").write_text("timeout = 5\n\ntimeuot = 6\n")
        done = self.config("--config", folder / "a.toml")
        self.assertNotEqual(done.returncode, 0)
        for part in ("timeuot", "a.toml:3"):
            self.assertIn(part, done.stderr)
        (folder / "b.toml").write_text("timeout = \"soon\"\n")
        done = self.config("--config", folder / "b.toml")
        self.assertNotEqual(done.returncode, 0)
        for part in ("timeout", "b.toml:1"):
            self.assertIn(part, done.stderr)
        done = self.config(env={"PRIMS_PORT": "99999"})
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("PRIMS_PORT", done.stderr)

    def test_a_named_file_must_exist(self):
        done = self.config("--config", "/no/such.toml")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("/no/such.toml", done.stderr)


class Words(unittest.TestCase):
    def test_version(self):
        self.assertIn(VERSION, program.prims("--version").stdout)
        with program.Server() as server, connection.connect(server, "http", "legacy") as client:
            info = client.hello["serverInfo"]
            self.assertEqual((info["name"], info["version"], info["title"]),
                             ("prims", VERSION, "PRIMS - Python Runtime Interpreter MCP Server"))

    def test_help(self):
        done = program.prims("--help")
        self.assertEqual(done.returncode, 0)
        for word in ("serve", "stdio", "run", "call", "doctor", "config"):
            self.assertIn(word, done.stdout)
        self.assertEqual(program.prims("run", "--help").returncode, 0)
        self.assertEqual(program.prims("nonsense").returncode, 2)

    def test_doctor_tries_it(self):
        done = program.prims("doctor")
        self.assertIn(done.returncode, (0, 1), done.stderr + done.stdout)
        for word in ("namespaces", "seccomp"):
            self.assertIn(word, done.stdout.lower())

    def test_it_runs_with_almost_no_environment(self):
        done = subprocess.run([program.PRIMS, "run", "-c", "print('bare')"], env={"HOME": str(program.scratch()), "PATH": "/usr/bin:/bin"},
                              capture_output=True, text=True, timeout=120, cwd="/", check=False)
        self.assertEqual((done.returncode, done.stdout), (0, "bare\n"), done.stderr)

    def test_a_copied_program_runs(self):
        folder = program.scratch()
        shutil.copy(program.PRIMS, folder / "prims")
        done = subprocess.run([str(folder / "prims"), "run", "-c", "print('moved')"], cwd="/",
                              env=program.environment({"PRIMS_STATE_DIR": str(program.shared_state())}), capture_output=True, text=True, timeout=120, check=False)
        self.assertEqual(done.stdout, "moved\n", done.stderr)


if __name__ == "__main__":
    unittest.main()

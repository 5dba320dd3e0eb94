"""Without a package index the plain interpreter serves, and with built layers nothing changes."""

import shutil
import unittest

from harness import connection, program

CLOSED = "http://127.0.0.1:9/simple"  # nobody listens on the discard port


class NoIndex(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.state = program.scratch() / "state"
        cls.server = cls.enterClassContext(program.Server(state=cls.state, env={"PRIMS_INDEX_URL": CLOSED}))
        cls.addClassCleanup(shutil.rmtree, cls.state, True)

    def test_plain_python_runs_at_once(self):
        for transport, era in connection.ways():
            with self.subTest(f"{transport} {era}"):
                options = {"state": self.state, "env": {"PRIMS_INDEX_URL": CLOSED}} if transport == "stdio" else {}
                with connection.connect(self.server, transport, era, **options) as client:
                    answer = client.call("import json, sqlite3\nprint(json.dumps([1]))\n")
                    self.assertEqual((answer.status, answer.stdout), ("ok", "[1]\n"), answer)
                    self.assertLess(answer.seconds, 20)

    def test_a_base_package_is_missing_and_the_result_says_why(self):
        with connection.connect(self.server, "http", "modern") as client:
            answer = client.call("import pandas\n")
            self.assertIn(answer.status, ("error", "dependency_error"), answer)
            self.assertRegex(answer.text.lower(), "index|network|unreachable|reach")

    def test_a_requirement_is_a_dependency_error(self):
        with connection.connect(self.server, "http", "modern") as client:
            answer = client.call("print(1)", requirements=["pyfiglet==1.0.2"])
            self.assertEqual((answer.status, answer.is_error), ("dependency_error", True), answer)
            self.assertTrue(answer.message_text())


class IndexGone(unittest.TestCase):
    def test_a_built_layer_needs_no_index(self):
        wanted = {"requirements": ["pyfiglet==1.0.2"]}
        code = "import pyfiglet, numpy\nprint(numpy.__name__, pyfiglet.__name__)\n"
        with program.Server() as server, connection.connect(server, "http", "modern") as client:
            first = client.call(code, **wanted)
            self.assertEqual(first.status, "ok", first)
        with program.Server(env={"HTTPS_PROXY": "http://127.0.0.1:9", "HTTP_PROXY": "http://127.0.0.1:9"}) as server:
            with connection.connect(server, "http", "modern") as client:
                again = client.call(code, **wanted)
                self.assertEqual((again.status, again.environment["lock"]), ("ok", first.environment["lock"]), again)
                self.assertLess(again.seconds, 5)


if __name__ == "__main__":
    unittest.main()

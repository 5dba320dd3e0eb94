"""Every row of rows/ over modern HTTP and over legacy stdio; a few of each kind over the other two ways."""

import os
import unittest

from harness import connection, program, table
from rows import KINDS

WORD = os.environ.get("PRIMS_TEST_WORD", "")
NEED_INDEX = {"base-environment", "first-use-noise", "requirements", "requirement-names", "resolution", "requirement-forms"}


def chosen(rows, kind):
    return [row for row in rows if WORD in kind or WORD in row.name or not WORD]


class Rows(unittest.TestCase):
    by_row = True  # -k chooses rows here

    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(program.Server())

    def rows_over(self, transport, era, pick):
        for kind, rows in KINDS.items():
            picked = pick(chosen(rows, kind))
            if not picked:
                continue
            with connection.connect(self.server, transport, era) as client:
                for row in picked:
                    with self.subTest(f"{transport} {era} {kind}: {row.name}"):
                        row.run(client)

    def test_modern_http(self):
        self.rows_over("http", "modern", lambda rows: rows)

    def test_legacy_stdio(self):
        self.rows_over("stdio", "legacy", lambda rows: rows)

    def test_legacy_http(self):
        self.rows_over("http", "legacy", lambda rows: rows[:2])

    def test_modern_stdio(self):
        self.rows_over("stdio", "modern", lambda rows: rows[-2:])


class TheSameEverywhere(unittest.TestCase):
    """One program gives the same result whichever way it is sent, but for what belongs to the one run."""

    OWN = {"run_id", "timings", "usage", "isolation"}

    def test_all_four_ways(self):
        code = "import sys\nprint('out \u4e16')\nprint('err', file=sys.stderr)\nopen('output/f.txt', 'w').write('x')\n{'a': 2**70}\n"
        seen = []
        with program.Server() as server:
            for transport, era in connection.ways():
                with connection.connect(server, transport, era) as client:
                    answer = client.call("import os; os.makedirs('output', exist_ok=True)\n" + code)
                    seen.append({k: v for k, v in answer.data.items() if k not in self.OWN})
                    self.assertEqual(answer.status, "ok", answer)
        for other in seen[1:]:
            for artifact in other.get("artifacts", []) + seen[0].get("artifacts", []):
                artifact.pop("uri", None)
            self.assertEqual(seen[0], other)

    def test_the_five_fields_of_old(self):
        with program.Server() as server, connection.connect(server, "http", "legacy") as client:
            answer = client.call("with open('output/a.csv', 'w') as f:\n    f.write('x,y')\n")
            self.assertEqual((answer.stdout, answer.stderr), ("", ""))
            self.assertIn("print", answer.feedback or "")
            entry = answer.artifacts[0]
            self.assertEqual((entry["name"], entry["relative_path"], entry["size"], entry["mime"]), ("a.csv", "a.csv", 3, "text/csv"))

    def test_what_every_result_says(self):
        with program.Server() as server, connection.connect(server, "http", "modern") as client:
            answer = client.call("x = bytearray(50_000_000)\nprint(1)\n")
            for field in ("run_id", "timings", "usage", "isolation", "environment"):
                self.assertIn(field, answer.data)
            self.assertGreaterEqual(answer.timings["run"], 0)
            self.assertGreater(answer.usage["peak_memory_bytes"], 50_000_000)
            self.assertRegex(answer.environment["python"], r"^3\.\d+\.\d+")
            other = client.call("print(2)")
            self.assertNotEqual(answer.run_id, other.run_id)
            self.assertEqual(other.artifacts, [])


class NothingCarriesOver(unittest.TestCase):
    def test_a_call_without_a_session_starts_empty(self):
        with program.Server() as server, connection.connect(server, "http", "modern") as client:
            client.call("open('left.txt', 'w').write('x')\nopen('/tmp/left', 'w').write('x')\n"
                        "import os, builtins; builtins.left = 1; os.environ['LEFT'] = '1'\n")
            answer = client.call("import os, builtins\nprint(os.listdir('.'), os.path.exists('/tmp/left'), "
                                 "hasattr(builtins, 'left'), 'LEFT' in os.environ)\n")
            self.assertNotIn("left.txt", answer.stdout)
            self.assertTrue(answer.stdout.strip().endswith("False False False"), answer.stdout)


if __name__ == "__main__":
    unittest.main()

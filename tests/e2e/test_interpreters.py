"""The interpreters that are to be found on this machine, each with its own packages."""

import glob
import os
import shutil
import subprocess
import unittest

from harness import connection, program

CODE = '''import sys, ctypes, sqlite3, ssl, zlib, decimal, multiprocessing as mp
def f(x): return x + 1
if __name__ == '__main__':
    with mp.get_context('spawn').Pool(1) as pool:
        print('%d.%d' % sys.version_info[:2], pool.map(f, [1]))
40 + 2
'''


def interpreters():
    """Version to executable: Debian's, those of PATH, and those of version managers below HOME."""
    found = {}
    names = glob.glob(os.path.expanduser("~/.pyenv/versions/3.*/bin/python3")) + ["/usr/bin/python3"] + \
        [path for minor in range(9, 15) if (path := shutil.which(f"python3.{minor}")) and "shims" not in path]
    for path in names:
        done = subprocess.run([path, "-I", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"], capture_output=True,
                              text=True, check=False)
        version = done.stdout.strip()
        if done.returncode == 0 and version in {f"3.{minor}" for minor in range(9, 15)}:
            found.setdefault(version, path)
    return found


class Interpreters(unittest.TestCase):
    def test_each_one(self):
        found = interpreters()
        self.assertTrue(found)
        print("      interpreters:", " ".join(f"{v}={p}" for v, p in sorted(found.items())))
        for version, path in sorted(found.items()):
            with self.subTest(f"python {version}"), program.Server("--python", path) as server:
                with connection.connect(server, "http", "modern") as client:
                    answer = client.call(CODE)
                    self.assertEqual((answer.status, answer.stdout, answer.value), 
                                     ("ok", f"{version} [2]\n", {"text": "42", "type": "int"}), answer)
                    self.assertTrue(answer.environment["python"].startswith(version + "."))
                    error = client.call("def f():\n    return {}['k']\nprint('x')\nf()\n").data["error"]
                    self.assertEqual((error["type"], error["line"], [f["line"] for f in error["frames"]]), ("KeyError", 2, [4, 2]))
                    answer = client.call("import pyfiglet\nprint('there')", requirements=["pyfiglet==1.0.2"])
                    self.assertEqual(answer.stdout, "there\n", answer)

    def test_a_python_that_is_none_is_named(self):
        done = program.prims("run", "--python", "/no/such/python", "-c", "1", timeout=60)
        self.assertIn(done.returncode, (2, 125))
        self.assertIn("/no/such/python", done.stderr)


if __name__ == "__main__":
    unittest.main()

"""Package layers: many calls at once, several processes on one state directory, builds that are killed."""

import concurrent.futures
import os
import pathlib
import random
import shutil
import signal
import subprocess
import time
import unittest

from harness import connection, program

SETS = [["pyfiglet==1.0.2"], ["humanize"], ["tabulate"], ["networkx"], ["colorama", "tabulate"]]
FULL = bool(os.environ.get("PRIMS_TEST_FULL"))
KILLS = 200 if FULL else 12
# Small layers, so that many are built; the base packages proper are in the long version and in test_rows.
SMALL = {} if FULL else {"PRIMS_BASE_PACKAGES": "pyfiglet"}
TINY = {"PRIMS_BASE_PACKAGES": "pyfiglet"}
SEED = int(os.environ.get("PRIMS_TEST_SEED", "1"))


def layers(state):
    return [p for p in (state / "layers").glob("*") if p.is_dir()]


class ManyAtOnce(unittest.TestCase):
    def test_twenty_calls_with_five_sets(self):
        state = program.scratch() / "state"
        with program.Server(state=state, env=SMALL) as server, connection.connect(server, "http", "modern") as client:
            calls = []
            for n in range(20):
                names = [r.split("=")[0] for r in SETS[n % len(SETS)]]
                code = "".join(f"import {name}\n" for name in names) + f"print({n}, {names!r})\n"
                calls.append((n, names, client.start(code, requirements=SETS[n % len(SETS)])))
            for n, names, call in calls:
                answer = call.answer(300)
                self.assertEqual((answer.status, answer.stdout), ("ok", f"{n} {names!r}\n"), answer)
            locks = {client.call("print(1)", requirements=one).environment["lock"] for one in SETS}
            self.assertEqual(len(locks), len(SETS))
        shutil.rmtree(state, ignore_errors=True)

    def test_identical_requests_build_once(self):
        state = program.scratch() / "state"
        with program.Server(state=state, env=SMALL) as server, connection.connect(server, "http", "modern") as client:
            calls = [client.start("import pyfiglet\nprint(1)", requirements=["pyfiglet==1.0.2"]) for _ in range(8)]
            locks = {call.answer(300).environment["lock"] for call in calls}
            self.assertEqual(len(locks), 1)
            began = time.monotonic()
            answer = client.call("import pyfiglet\nprint(1)", requirements=["pyfiglet==1.0.2"])
            self.assertLess(time.monotonic() - began, 5)
            self.assertLess(answer.timings.get("install", 0), 1000)
        shutil.rmtree(state, ignore_errors=True)


class TwoProcesses(unittest.TestCase):
    def test_they_share_what_one_built(self):
        state = program.scratch() / "state"
        lines = [program.command("run", "--with", "pyfiglet==1.0.2", "-c", f"import pyfiglet; print({n})", state=state) for n in range(3)]
        started = [subprocess.Popen(line, env=program.environment(SMALL), stdout=subprocess.PIPE, stderr=subprocess.PIPE) for line in lines]
        for n, process in enumerate(started):
            out, err = process.communicate(timeout=300)
            self.assertEqual((process.returncode, out), (0, b"%d\n" % n), err[-800:])
        with program.Server(state=state, env=SMALL) as one, program.Server(state=state, env=SMALL) as two:
            with connection.connect(one, "http", "modern") as a, connection.connect(two, "http", "legacy") as b:
                self.assertEqual(a.call("import pyfiglet\nprint(1)", requirements=["pyfiglet==1.0.2"]).environment["lock"],
                                 b.call("import pyfiglet\nprint(1)", requirements=["pyfiglet==1.0.2"]).environment["lock"])
                with concurrent.futures.ThreadPoolExecutor(4) as pool:
                    for answer in pool.map(lambda n: (a if n % 2 else b).call(f"print({n})"), range(16)):
                        self.assertEqual(answer.status, "ok")
        shutil.rmtree(state, ignore_errors=True)

    def test_a_newer_state_directory_is_refused(self):
        state = program.scratch() / "state"
        program.prims("run", "-c", "print(1)", state=state, timeout=300)
        marks = [p for p in pathlib.Path(state).iterdir() if p.is_file() and "version" in p.name.lower()]
        if not marks:
            self.skipTest("the state directory's version is kept in another form")
        for mark in marks:
            mark.write_text("999\n")
        done = program.prims("run", "-c", "print(1)", state=state, timeout=60)
        self.assertEqual(done.returncode, 125, done.stdout)
        self.assertRegex(done.stderr, "999|newer")
        shutil.rmtree(state, ignore_errors=True)


class Killed(unittest.TestCase):
    def test_a_half_built_layer_is_never_used(self):
        """kill -9 at a random moment of a build; afterwards every layer that is offered is whole."""
        rng = random.Random(SEED)
        state = program.scratch() / "state"
        code = "import tabulate, pyfiglet, humanize\nprint(len(pyfiglet.figlet_format('x')) > 5, humanize.ordinal(2))"
        options = [x for name in ("tabulate", "pyfiglet==1.0.2", "humanize") for x in ("--with", name)]
        line = program.command("run", *options, "-c", code, state=state)
        began = time.monotonic()
        self.run_whole(line)
        whole = max(time.monotonic() - began, 0.5)
        for n in range(KILLS):
            for layer in layers(state):
                subprocess.run(["chmod", "-R", "u+w", str(layer)], check=False)
                shutil.rmtree(layer, ignore_errors=True)
            process = subprocess.Popen(line, env=program.environment(TINY), stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                       start_new_session=True)
            try:
                process.wait(rng.uniform(0.02, whole))
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGKILL)
            process.communicate(timeout=30)
            if n % 10 == 9 or n == KILLS - 1:
                with self.subTest(f"after {n + 1} kills"):
                    self.run_whole(line)
        shutil.rmtree(state, ignore_errors=True)

    def run_whole(self, line):
        done = subprocess.run(line, env=program.environment(TINY), capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual((done.returncode, done.stdout), (0, "True 2nd\n"), done.stderr[-1500:])


if __name__ == "__main__":
    unittest.main()

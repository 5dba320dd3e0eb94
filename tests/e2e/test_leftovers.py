"""Many calls leave nothing behind: no process, mount, temporary folder, cgroup or descriptor."""

import os
import pathlib
import unittest

from harness import connection, program

CALLS = 1000
KINDS = [  # how calls end, in turn
    "print({n})", "1 / 0", "import sys; sys.exit(3)", "import os; os._exit(4)",
    "import subprocess; subprocess.Popen(['sleep', '100']); print({n})", "open('/tmp/x', 'w').write('x' * 10000)",
    "open('output/a.txt', 'w').write('x')", "import os, time\nif os.fork() == 0: time.sleep(100)\nprint({n})",
]


WORKSPACE = 3  # directories of one that is new
# What waits for the next call has other names every time, but there is no more of it.
COUNTED = ("processes", "descriptors", "threads", "mounts", "cgroups", "state")


def cgroups(pid):
    """Those that the server of this pid made; its name is in theirs."""
    return {os.path.join(folder, name) for folder, names, _ in os.walk("/sys/fs/cgroup") for name in names
            if f"prims-{pid}-" in os.path.join(folder, name)}


def mounts():
    return len(pathlib.Path("/proc/self/mountinfo").read_text().splitlines())


def temporary():
    """Ours; prims-test- and prims-e2e- belong to tests, which may run at the same time."""
    return {name for folder in ("/tmp", "/dev/shm", "/var/tmp") for name in os.listdir(folder)
            if "prims" in name.lower() and not name.startswith(("prims-test-", "prims-e2e-"))}


def open_files(pid):
    """What each descriptor is, for a person to read."""
    for entry in os.scandir(f"/proc/{pid}/fd"):
        try:
            yield os.readlink(entry.path)
        except FileNotFoundError:
            pass


def snapshot(pid, state):
    """What a server could leave behind, as counts and names."""
    layers = state / "layers"
    return {
        "processes": len(program.descendants(pid)),
        "descriptors": len(os.listdir(f"/proc/{pid}/fd")),
        "open": sorted(open_files(pid)),
        "threads": len(os.listdir(f"/proc/{pid}/task")),
        "mounts": mounts(),
        "cgroups": len(cgroups(pid)),
        "temporary": sorted(temporary()),
        "state": sum(layers not in p.parents and p.is_dir() for p in state.rglob("*")),
    }


class Leftovers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        # The base packages are prepared in the background; when they are there, only calls make processes.
        with program.Server() as server, connection.connect(server, "http", "modern") as client:
            client.call("import pandas")

    def many(self, transport, era, calls):
        # Packages come from the shared state; the rest of it is compared, so one server alone works in it here.
        with program.Server() as server, connection.connect(server, transport, era) as client:
            pid = client.process.pid if transport == "stdio" else server.process.pid
            for n in range(20):
                client.call(KINDS[n % len(KINDS)].format(n=n), timeout=20)
            for each in {pid, server.process.pid}:
                program.at_rest(each)
            before = snapshot(pid, program.shared_state())
            for n in range(calls):
                answer = client.call(KINDS[n % len(KINDS)].format(n=n), timeout=20)
                self.assertIn(answer.status, ("ok", "error"), answer)
            after = {}

            # Workspaces that nothing was put into wait for other calls, a few more or less of them.
            before["state"] += WORKSPACE * program.POOL_SIZE

            def settled():
                after.update(snapshot(pid, program.shared_state()))
                return all(after[key] <= before[key] for key in COUNTED) and set(after["temporary"]) <= set(before["temporary"])

            program.wait_for(settled, 15, 0.5)
            for key in COUNTED:
                self.assertLessEqual(after[key], before[key], f"{key}: {before['open']} and then {after['open']}")
            self.assertEqual(set(after["temporary"]) - set(before["temporary"]), set())

    def test_a_thousand_calls_over_http(self):
        self.many("http", "modern", CALLS)

    def test_a_hundred_calls_over_legacy_stdio(self):
        self.many("stdio", "legacy", CALLS // 10)

    def test_timeouts_and_cancels(self):
        with program.Server() as server, connection.connect(server, "http", "modern") as client:
            client.call("print(1)")
            program.at_rest(server.process.pid)
            before = snapshot(server.process.pid, program.shared_state())
            for n in range(10):
                client.call("while True: pass", timeout=0.3)
                call = client.start("import time\nprint('x')\ntime.sleep(100)", token=f"t{n}")
                call.progress.get(timeout=20)
                client.cancel(call)
            done = program.wait_for(lambda: all(
                snapshot(server.process.pid, program.shared_state())[key] <= before[key]
                for key in ("processes", "descriptors", "mounts")), 15, 0.5)
            self.assertTrue(done, (before, snapshot(server.process.pid, program.shared_state())))

    def test_after_the_server_ended(self):
        state = program.scratch() / "state"
        was = (mounts(), temporary())
        with program.Server(state=state) as server, connection.connect(server, "http", "modern") as client:
            client.call("print(1)")
        self.assertEqual((cgroups(server.process.pid), mounts() - was[0], temporary() - was[1]), (set(), 0, set()))


if __name__ == "__main__":
    unittest.main()

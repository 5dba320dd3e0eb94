"""The server answers at once while it makes and ends sandboxes as fast as it can: nothing of that blocks its loop."""

import threading
import time
import unittest

from harness import connection, program

CALLERS = 6
SECONDS = 6
# Far beyond what a busy machine takes to give a thread its turn; a package build, the removal of a tree, or the end of a
# process that something waited for on the loop would show.
LONGEST = 0.5


class Responsive(unittest.TestCase):
    def test_pings_pass_calls(self):
        with program.Server() as server, connection.connect(server, "http", "modern") as pinger:
            ends, done, problems = time.monotonic() + SECONDS, [], []

            def calls(number):
                with connection.connect(server, "http", "modern") as client:
                    while time.monotonic() < ends:
                        answer = client.call(f"import os\nfor i in range(200): open(f'output/{{i}}', 'w').write('x')\nprint({number})")
                        done.append(answer.status)
                        if answer.status != "ok":
                            problems.append(answer)

            callers = [threading.Thread(target=calls, args=(number,)) for number in range(CALLERS)]
            for caller in callers:
                caller.start()
            slowest, pings = 0.0, 0
            while time.monotonic() < ends:
                begin = time.monotonic()
                pinger.request("server/discover")
                slowest, pings = max(slowest, time.monotonic() - begin), pings + 1
            for caller in callers:
                caller.join()
            print(f"longest wait for an answer {slowest * 1000:.0f} ms, {pings} answers beside {len(done)} calls")
            self.assertEqual(problems, [])
            self.assertGreater(len(done), CALLERS)
            self.assertLess(slowest, LONGEST)


if __name__ == "__main__":
    unittest.main()

"""The private descriptor: what is said on it, by whom, and that nothing else comes near it."""
import os
import struct
import subprocess
import time

from driver_harness import HELLO, LINE_SIGNAL, REFUSED, RESULT, RUN, Case, frame


class ProtocolTest(Case):
    def test_hello_comes_first_and_the_result_carries_the_id(self):
        ran = self.run_code("40 + 2")
        self.assertEqual([(kind, ident) for kind, ident, _ in ran.sent], [(HELLO, 0), (RESULT, 7)])
        self.assertEqual(ran.sent[0][2]["python"].rpartition(".")[0], "%d.%d" % self.version)

    def test_result_is_sent_before_the_interpreter_ends(self):
        with self.guest() as guest:
            guest.start(subprocess.PIPE)
            guest.call("import atexit, sys\natexit.register(sys.stdin.read)\n'early'")
            received = b""
            while b"early" not in received:
                received += guest.host.recv(1 << 16)
            self.assertIsNone(guest.process.poll())
            guest.end(b"")

    def refusal(self, data):
        with self.guest() as guest:
            guest.start()
            guest.host.sendall(data)
            ran = guest.end()
        self.assertEqual((ran.status, ran.out, ran.err), (1, "", ""))
        self.assertEqual(ran.sent[-1][0], REFUSED)
        return ran.sent[-1][2]["reason"]

    def test_newer_version_is_refused_with_the_reason(self):
        self.assertIn("protocol 1, the host 2", self.refusal(frame(RUN, {}, version=2)))

    def test_unexpected_frames_are_refused_with_the_reason(self):
        self.assertIn("type 9", self.refusal(frame(9, {})))
        self.assertIn("bytes", self.refusal(struct.pack("<IBBHQ", 1 << 31, 1, RUN, 0, 7)))

    def test_host_that_goes_away_before_the_call_ends_the_wait(self):
        for some in (b"", b"\x10\0", frame(RUN, {"file": "x"}, b"print(1)")[:-3]):
            with self.guest() as guest:
                guest.start()
                guest.host.sendall(some)
                guest.host.shutdown(1)
                ran = guest.end()
            self.assertEqual((ran.status, ran.out, ran.err, ran.results), (0, "", "", 0))

    def test_programs_find_the_descriptors_that_scripts_find(self):
        self.printed("print(open('/dev/null').fileno())", "3\n")
        self.printed("import subprocess, sys\n"
                     "subprocess.run([sys.executable, '-c', 'import os; print(os.listdir(\"/proc/self/fd\"))'])",
                     "['0', '1', '2', '3']\n")

    def test_nothing_is_written_to_a_file_that_took_the_number(self):
        ran = self.run_code("import os\nos.closerange(3, 2000)\n"
                            "f = open('own', 'w+')\nfor n in range(900, 1024): os.dup2(f.fileno(), n)\n"
                            "import atexit\natexit.register(lambda: print(os.path.getsize('own')))\n'value'")
        self.assertEqual((ran.out, ran.err, ran.status, ran.results), ("0\n", "", 0, 0))

    def test_forked_child_that_falls_off_the_end_stays_silent(self):
        code = "import os, sys\nprint('once')\nprint('half', end=' ')\npid = os.fork()\n"
        ran = self.run_code(code + "if pid: os.waitpid(pid, 0)\nprint('end')\npid and 'parent'")
        self.assertEqual((ran.out, ran.err, ran.results, ran.text), ("once\nhalf end\nend\n", "", 1, "'parent'"))
        ran = self.run_code(code + "if not pid: raise ValueError('child')\nprint(os.waitpid(pid, 0)[1] >> 8)\n'parent'")
        self.assertEqual((ran.out, ran.results, ran.text), ("once\nhalf 1\n", 1, "'parent'"))
        self.assertIn("ValueError: child", ran.err)

    def test_no_result_when_the_program_ends_the_process(self):
        for code, status in (("import os\nprint('x')\nos._exit(5)", 5), ("import os\nprint('x')\nos.abort()", -6)):
            ran = self.run_code(code)
            self.assertEqual((ran.out, ran.status, ran.results), ("x\n", status, 0))

    def test_programs_that_wipe_what_the_driver_needs_get_their_result(self):
        ran = self.run_code("import builtins, sys, os\njson = sys_ = str = list = dict = type = 0\n"
                            "for n in ('len open repr isinstance getattr str list dict type id min any all set print "
                            "compile eval BaseException OSError sorted range').split():\n    setattr(builtins, n, None)\n"
                            "os.write(1, b'still here\\n')\nos.write = os.read = os.getpid = None\n"
                            "sys.modules.clear()\n['last', 1]")
        self.assertEqual((ran.out, ran.text), ("still here\n", "['last', 1]"))
        ran = self.run_code("import builtins\ndrop = delattr\nfor n in list(vars(builtins)):\n"
                            "    if n[0] != '_': drop(builtins, n)\n1 / 0")
        self.assertEqual((ran.error["message"], ran.error["line"]), ("division by zero", 5))

    def test_a_signal_handler_that_raises_does_not_tear_the_result(self):
        ran = self.run_code("import signal\ndef ring(*a): raise RuntimeError('late')\nsignal.signal(signal.SIGALRM, ring)\n"
                            "signal.setitimer(signal.ITIMER_REAL, 0.02, 0.0002)\nimport time\ntry: time.sleep(5)\n"
                            "except RuntimeError: pass\n'x' * 60000")
        self.assertLessEqual(ran.results, 1)  # whole or not at all: frames() would have failed on half a frame

    def line_of(self, code, marker="go\n"):
        with self.guest() as guest:
            guest.start()
            guest.call(code)
            self.assertEqual(guest.process.stdout.readline().decode(), marker)
            time.sleep(0.1)  # into the call after the print; a wrong line would be told, not a hang
            guest.process.send_signal(LINE_SIGNAL)
            told = ""
            while not told.endswith("in <module>\n") or guest.driver not in told:
                told += os.read(guest.lines, 1 << 16).decode()
            guest.process.kill()
            guest.end()
        return [line.strip().partition(guest.file + '", ')[2] for line in told.splitlines() if guest.file in line]

    def test_the_running_line_can_be_asked_for(self):
        self.assertEqual(self.line_of("import time\n\nprint('go')\ntime.sleep(60)")[0], 'line 4 in <module>')
        self.assertEqual(self.line_of("def f():\n    print('go')\n    while True:\n        pass\nf()\n")[-1],
                         'line 5 in <module>')

    def test_the_running_line_is_told_inside_native_code(self):
        self.assertEqual(self.line_of("print('go')\nn = 10 ** 400000\ns = 1\nx = n ** 3000\n")[0][:5], "line ")

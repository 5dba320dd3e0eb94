"""Every way in which a program can end gives one clear result."""

from harness.table import Row

FRAMES = '''def load(path):
    return parse(path)

def parse(text):
    raise LookupError('no ' + text)

print('go')
load(
    'table',
)
'''

DAEMON = '''import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        time.sleep(600)
    os._exit(0)
os.wait()
print('left a daemon')
'''


KINDS = {
    "exit-paths": [
        Row("sys.exit with a number", "import sys\nprint('out')\nsys.exit(3)\n", status="error", exit_code=3, stdout="out\n"),
        Row("sys.exit without one", "import sys\nprint('out')\nsys.exit()\n", stdout="out\n"),
        Row("sys.exit(0) is success", "raise SystemExit(0)\n"),
        Row("sys.exit with a message", "import sys\nsys.exit('because')\n", status="error", exit_code=1, stderr_has="because"),
        Row("exit and quit exist", "print('x')\nexit(4)\n", status="error", exit_code=4, stdout="x\n"),
        Row("os._exit", "import os\nprint('x')\nos._exit(5)\n", status="error", exit_code=5, stdout="x\n"),
        Row("a finally block runs before the exit", "import sys\ntry:\n    sys.exit(2)\nfinally:\n    print('cleaned')\n",
            status="error", exit_code=2, stdout="cleaned\n"),
        Row("sys.exit in a thread ends the thread", "import sys, threading\nt = threading.Thread(target=sys.exit, args=(9,))\n"
            "t.start(); t.join()\nprint('on')\n", stdout="on\n"),
        Row("sys.exit in an atexit handler", "import atexit, sys\natexit.register(lambda: print('bye'))\nsys.exit(6)\n",
            status="error", exit_code=6, stdout="bye\n"),
        Row("killed by its own signal", "import os, signal\nprint('x')\nos.kill(os.getpid(), signal.SIGKILL)\n",
            either=[{"status": "killed", "stdout": "x\n", "signal": "SIGKILL", "is_error": True},
                    {"status": "error", "stdout": "x\n", "signal": "SIGKILL"}]),
        Row("abort", "import os\nos.abort()\n", either=[{"status": "error", "signal": "SIGABRT"},
                                                       {"status": "killed", "signal": "SIGABRT", "is_error": True}]),
        Row("a segfault", "import ctypes\nctypes.string_at(0)\n",
            either=[{"status": "error", "signal": "SIGSEGV"}, {"status": "killed", "signal": "SIGSEGV", "is_error": True}]),
        Row("KeyboardInterrupt raised by the program", "raise KeyboardInterrupt\n",
            either=[{"status": "error", "exit_code": 130}, {"status": "error", "exit_code": 1},
                    {"status": "error", "signal": "SIGINT"}]),
    ],
    "traceback": [
        Row("user frames, outermost first", FRAMES, status="error", stdout="go\n",
            error={"type": "LookupError", "message": "no table", "line": 5},
            frames=[(8, "<module>"), (2, "load"), (5, "parse")], traceback_has="raise LookupError",
            traceback_lacks=["exec(", "runpy", "driver"]),
        Row("a syntax error", "print('never')\nx = (1,\n", status="error", stdout="",
            error={"type": "SyntaxError", "line": 2}),
        Row("an indentation error", "if True:\nprint(1)\n", status="error", error={"type": "IndentationError", "line": 2}),
        Row("below top-level await", "import asyncio\nasync def f():\n    await asyncio.sleep(0)\n    {}['k']\nawait f()\n",
            status="error", error={"type": "KeyError", "line": 4}, frames=[(5, "<module>"), (4, "f")]),
        Row("inside a library", "import json\njson.loads('{')\n", status="error", error={"type": "JSONDecodeError", "line": 2},
            check=lambda a: None if a.data["error"]["frames"][0]["line"] == 2 else a.data["error"]["frames"]),
        Row("chained", "try:\n    1 / 0\nexcept ZeroDivisionError as e:\n    raise RuntimeError('outer') from e\n",
            status="error", error={"type": "RuntimeError", "message": "outer", "line": 4}, traceback_has="ZeroDivisionError"),
        Row("an exception class of the program", "class Odd(Exception):\n    pass\nraise Odd('x', 1)\n", status="error",
            error={"type": "Odd", "message": "('x', 1)", "line": 3}),
        Row("a message that cannot be made", "class Bad(Exception):\n    def __str__(self): raise TypeError\nraise Bad\n",
            status="error", error={"type": "Bad"}),
        Row("deep recursion", "def f(n): return f(n + 1)\nf(0)\n", status="error", error={"type": "RecursionError"},
            check=lambda a: None if len(a.text) < 100_000 else "too long"),
        Row("in a thread the program goes on", "import threading\nt = threading.Thread(target=lambda: 1 / 0)\nt.start(); t.join()\n"
            "print('on')\n", stdout="on\n", stderr_has="ZeroDivisionError"),
    ],
    "limits": [
        Row("wall clock", "while True: pass\n", {"timeout": 1}, status="timeout", within=1.5, evidence=["limit"], last_line=1),
        Row("a timeout below a second", "import time\ntime.sleep(30)\n", {"timeout": 0.4}, status="timeout", within=0.9),
        Row("signals ignored", "import signal, time\nfor s in (signal.SIGTERM, signal.SIGINT, signal.SIGALRM):\n"
            "    signal.signal(s, signal.SIG_IGN)\nwhile True: time.sleep(1)\n", {"timeout": 1}, status="timeout", within=1.5),
        Row("children that ignore the end", "import subprocess\nfor _ in range(5):\n"
            "    subprocess.Popen(['sh', '-c', 'trap \"\" TERM; sleep 100'])\nwhile True: pass\n", {"timeout": 1},
            status="timeout", within=1.5),
        Row("the program ends although a daemon keeps its pipes", DAEMON, stdout="left a daemon\n", within=5),
        Row("memory, in one go", "x = bytearray(6 << 30)\n",
            either=[{"status": "memory_limit", "is_error": True, "evidence": ["limit"]},
                    {"status": "error", "error": {"type": "MemoryError"}}], within=30),
        Row("memory, bit by bit", "print('go')\nkeep = []\nwhile True:\n    keep.append(bytearray(b'x' * 10_000_000))\n",
            either=[{"status": "memory_limit", "is_error": True, "evidence": ["limit"], "stdout": "go\n"},
                    {"status": "error", "error": {"type": "MemoryError"}, "stdout": "go\n"}], within=60),
        Row("processes", "import os, time\nn = 0\ntry:\n    while n < 2000:\n        if os.fork() == 0:\n            time.sleep(60)\n"
            "            os._exit(0)\n        n += 1\nexcept OSError as e:\n    print('refused', n < 2000)\n",
            either=[{"status": "ok", "stdout_has": "refused True"}, {"status": "process_limit", "is_error": True}], within=60),
        Row("a full /tmp is an ordinary error", "f = open('/tmp/x', 'wb')\nfor _ in range(2000):\n    f.write(b'x' * 1_000_000)\n",
            either=[{"status": "error", "error": {"type": "OSError"}}, {"status": "disk_limit", "is_error": True},
                    {"status": "memory_limit", "is_error": True}], within=60),
    ],
    "interactive": [
        Row("input without stdin", "print('ask')\ninput('name? ')\n", status="error", stdout_has="ask\n",
            error={"type": "EOFError"}, within=5),
        Row("input from stdin", "a = input()\nb = input('more ')\nprint(a + b)\n", {"stdin": "1\n2\n"}, stdout_has="12\n"),
        Row("stdin to its end", "import sys\nprint(len(sys.stdin.read().split()))\n", {"stdin": "a b\nc\n"}, stdout="3\n"),
        Row("stdin without a newline, in UTF-8", "print(input()[::-1])\n", {"stdin": "\u00e4\u4e16"}, stdout="\u4e16\u00e4\n"),
        Row("a program that ignores a large stdin", "print('done')\n", {"stdin": "x" * 1_000_000}, stdout="done\n"),
        Row("empty stdin", "import sys\nprint(repr(sys.stdin.read()))\n", {"stdin": ""}, stdout="''\n"),
    ],
}

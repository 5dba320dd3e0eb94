"""What a program prints arrives as it printed it."""

from harness.table import Row

KINDS = {
    "stream-order": [
        Row("python, child, python", "import subprocess\nprint('a')\nsubprocess.run(['sh', '-c', 'echo b'])\nprint('c')\n",
            stdout="a\nb\nc\n"),
        Row("no newline before a child", "import os\nprint('1', end=' ')\nos.system('printf \"2 \"')\nprint('3')\n",
            stdout="1 2 3\n"),
        Row("raw writes between prints", "import os\nfor i in range(3):\n    print('p', i)\n    os.write(1, b'r\\n')\n",
            stdout="p 0\nr\np 1\nr\np 2\nr\n"),
        Row("stderr joined into stdout keeps the order", "import os, sys\nos.dup2(1, 2)\nprint('out 1')\n"
            "print('err 1', file=sys.stderr)\nprint('out 2')\n", stdout="out 1\nerr 1\nout 2\n"),
        Row("forked children", "import os\nprint('p1')\nfor i in range(2):\n    if os.fork() == 0:\n        print('c', i)\n"
            "        os._exit(0)\n    os.wait()\nprint('p2')\n", stdout="p1\nc 0\nc 1\np2\n"),
    ],
    "partial-output": [
        Row("half a line survives a timeout", "import time\nprint('whole')\nprint('half', end='')\nwhile True:\n    time.sleep(1)\n",
            {"timeout": 1}, status="timeout", stdout="whole\nhalf", within=1.5, evidence=["limit"], last_line=5),
        Row("both streams", "import sys\nprint('to out')\nprint('to err', file=sys.stderr)\nwhile True: pass\n", {"timeout": 1},
            status="timeout", stdout="to out\n", stderr_has="to err", within=1.5, last_line=4),
        Row("output of a child survives", "import subprocess\nsubprocess.run(['sh', '-c', 'echo child; sleep 60'])\n",
            {"timeout": 1}, status="timeout", stdout="child\n", within=1.5, last_line=2),
        Row("os._exit keeps what was printed", "import os\nprint('kept', end='')\nos._exit(0)\n", stdout="kept"),
        Row("a segfault keeps what was printed", "import ctypes\nprint('kept')\nctypes.string_at(0)\n", 
            either=[{"status": "error", "stdout": "kept\n", "signal": "SIGSEGV"},
                    {"status": "killed", "stdout": "kept\n", "signal": "SIGSEGV", "is_error": True}]),
        Row("an exception keeps what was printed", "print('kept')\n1 / 0\n", status="error", stdout="kept\n",
            error={"type": "ZeroDivisionError", "message": "division by zero", "line": 2}),
    ],
    "stderr-is-not-failure": [
        Row("a warning", "import warnings\nwarnings.warn('mind the gap')\nprint('fine')\n", stdout="fine\n",
            stderr_has="mind the gap", text_has="mind the gap"),
        Row("only stderr", "import sys\nsys.stderr.write('note\\n')\n", stdout="", stderr="note\n"),
        Row("a child that fails", "import subprocess\nprint(subprocess.run(['ls', '/none']).returncode)\n", stdout="2\n",
            stderr_has="/none"),
        Row("a traceback that the program printed itself", "import traceback\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n"
            "    traceback.print_exc()\nprint('on')\n", stdout="on\n", stderr_has="ZeroDivisionError"),
    ],
    "encodings": [
        Row("scripts of the world", "print('\u0416\u4e16\u0e44 \U0001f9ea e\u0301')\n", stdout="\u0416\u4e16\u0e44 \U0001f9ea e\u0301\n"),
        Row("the streams are UTF-8", "import sys, locale\nprint(sys.stdout.encoding, sys.stderr.encoding, sys.stdin.encoding, "
            "locale.getpreferredencoding(False).lower(), sys.getfilesystemencoding())\n",
            stdout="utf-8 utf-8 utf-8 utf-8 utf-8\n"),
        Row("bytes that are no text", "import sys\nsys.stdout.buffer.write(b'a\\xff\\xfe\\x00b\\n')\n", stdout="a\ufffd\ufffd\x00b\n"),
        Row("a character cut in two by the end", "import sys\nsys.stdout.buffer.write('\u20ac'.encode()[:2])\n",
            stdout_re="^\ufffd+$"),
        Row("a character written in two pieces", "import sys, time\nb = '\U0001f680'.encode()\nfor part in (b[:1], b[1:3], b[3:]):\n"
            "    sys.stdout.buffer.write(part)\n    sys.stdout.flush()\n    time.sleep(0.05)\n", stdout="\U0001f680"),
        Row("a lone surrogate fails as it does in Python", "print('\\ud800')\n", status="error",
            error={"type": "UnicodeEncodeError"}),
        Row("on stderr it is escaped", "import sys\nprint('\\ud800', file=sys.stderr)\n", stderr="\\ud800\n"),
        Row("file names and files", "open('\u00fc.txt', 'w').write('\u00df')\nimport os\nprint(os.listdir('.').count('\u00fc.txt'), "
            "open('\u00fc.txt').read())\n", stdout="1 \u00df\n"),
    ],
    "text-rendering": [
        Row("fences inside", "print('```\\ncode\\n```')\n", stdout="```\ncode\n```\n"),
        Row("an open fence", "print('~~~ and ```` open')\n", stdout="~~~ and ```` open\n"),
        Row("JSON on stdout is text", "print('{\"status\": \"error\"}')\n", stdout='{"status": "error"}\n'),
        Row("what looks like a protocol message", "print('{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}')\n",
            stdout='{"jsonrpc":"2.0","id":1,"result":{}}\n'),
        Row("server-sent events on stdout", "print('data: x\\n\\nevent: end\\n')\n", stdout="data: x\n\nevent: end\n\n"),
    ],
    "structured-result": [
        Row("numbers that JSON does not have", "[float('nan'), float('inf'), -float('inf')]\n", value="[nan, inf, -inf]"),
        Row("a very long integer", "3 ** 200\n", value=str(3 ** 200)),
        Row("an integer beyond 2**53 printed and returned", "n = 2 ** 53 + 1\nprint(n)\nn\n", stdout=f"{2 ** 53 + 1}\n",
            value=str(2 ** 53 + 1)),
        Row("a lone surrogate in a value", "'\\udc80'\n", value="'\\udc80'"),
        Row("a repr that raises", "class A:\n    def __repr__(self): raise RuntimeError('no')\nA()\n",
            check=lambda a: None if a.status in ("ok", "error") else "status"),
        Row("control characters", "'\\x00\\x1b[31m'\n", value="'\\x00\\x1b[31m'"),
    ],
    "value-display": [
        Row("the last expression", "x = 20\nx + 1\n", value="21", stdout=""),
        Row("none for None", "None\n", no_value=True),
        Row("none for a statement", "x = 1\n", no_value=True),
        Row("a print is no value", "print(1)\n", no_value=True, stdout="1\n"),
        Row("text is shown as Python writes it", "'a\\n' + \"b'\"\n", value='"a\\nb\'"'),
        Row("after a semicolon", "a = 1; a + 1\n", value="2"),
        Row("the value of an expression that ends with a comment", "[1,\n 2]  # list\n", value="[1, 2]"),
        Row("an expression inside if is none", "if True:\n    5\n", no_value=True),
        Row("the program's displayhook is its own", "1\n2\n", value="2"),
        Row("a huge value is cut", "'x' * 10_000_000\n", check=lambda a: None if len(a.text) < 400_000 else "not cut"),
    ],
    "long-output": [
        Row("head and tail of many lines", "for i in range(100_000): print('line', i)\n", stdout_has=["line 0\n", "line 99999\n"],
            check=lambda a: None if a.data["truncated"]["stdout"]["total_bytes"] == 1088890
            and a.data["truncated"]["stdout"]["shown_bytes"] <= 66000 and len(a.stdout) < 70_000 else a.data.get("truncated")),
        Row("one endless line", "print('y' * 1_000_000)\n",
            check=lambda a: None if a.data["truncated"]["stdout"]["total_bytes"] == 1_000_001 else a.data.get("truncated")),
        Row("a hundred megabytes", "import sys\nfor _ in range(100): sys.stdout.write('z' * 1_000_000)\n",
            status="output_limit", stdout_has="zzz", within=30, evidence=["limit"]),
        Row("just what is shown", "print('a' * 1000)\n", stdout="a" * 1000 + "\n",
            check=lambda a: "truncated" if a.data.get("truncated") else None),
        Row("nothing at all", "pass\n", stdout="", stderr=""),
    ],
}

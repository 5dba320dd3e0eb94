"""The code is a script: its bytes reach the compiler unchanged and it looks like a file that Python was started with."""

from harness.table import Row

QUOTES = '''a = "it's \\"quoted\\" and $(not) `run` %d {0} \\\\n"
b = \'\'\'first
\tsecond "line"
    third\'\'\'
print(a)
print(b)
'''

KINDS = {
    "source-as-sent": [
        Row("quotes, dollars, backticks and tabs", QUOTES,
            stdout='it\'s "quoted" and $(not) `run` %d {0} \\n\nfirst\n\tsecond "line"\n    third\n'),
        Row("a byte order mark, then a docstring", '\ufeff"""Doc."""\nprint(__doc__)\n', stdout="Doc.\n"),
        Row("carriage returns inside a string are line ends of the file", "s = '''x\r\ny'''\r\nprint(len(s), repr(s))\r\n",
            stdout="3 'x\\ny'\n"),
        Row("a form feed between functions", "def a():\n    return 1\n\x0c\ndef b():\n    return 2\nprint(a() + b())\n",
            stdout="3\n"),
        Row("no newline at the end, then a comment", "print('x')  # end", stdout="x\n"),
        Row("leading blank lines keep their numbers", "\n\n\nimport inspect\nprint(inspect.currentframe().f_lineno)\n",
            stdout="5\n"),
        Row("indentation of a multi-line string is kept", "text = '''\n    a\n      b\n'''\nprint(repr(text))\n",
            stdout="'\\n    a\\n      b\\n'\n"),
        Row("an encoding line", "# -*- coding: utf-8 -*-\nprint('\u00e4', len('\u00e4'))\n", stdout="\u00e4 1\n"),
        Row("identifiers beyond ASCII", "gr\u00f6\u00dfe = 3\n\u03c0 = 2\nprint(gr\u00f6\u00dfe * \u03c0)\n", stdout="6\n"),
        Row("an empty program", "", stdout="", stderr=""),
        Row("only a comment", "# nothing to do\n", stdout="", stderr="", no_value=True),
        Row("a long line", "x = '" + "a" * 9000 + "'\nprint(len(x))\n", stdout="9000\n"),
    ],
    "script-identity": [
        Row("the main guard runs", "if __name__ == '__main__':\n    print('main')\n", stdout="main\n"),
        Row("sys.argv is one name", "import sys\nprint(len(sys.argv), sys.argv[1:])\n", stdout="1 []\n"),
        Row("a command line parser with defaults",
            "import argparse\np = argparse.ArgumentParser()\np.add_argument('--rate', type=float, default=0.5)\n"
            "p.add_argument('names', nargs='*')\na = p.parse_args()\nprint(a.rate, a.names)\n", stdout="0.5 []\n"),
        Row("__file__ can be read and holds the program", "print(open(__file__).read().count('open'))\n", stdout="2\n"),
        Row("__main__ is the program's own module",
            "import sys\nmark = 41\nimport __main__\nprint(__main__.mark, sys.modules['__main__'] is __main__)\n",
            stdout="41 True\n"),
        Row("classes pickle by their name in __main__",
            "import pickle\nclass P:\n    def __init__(self, v):\n        self.v = v\n"
            "print(pickle.loads(pickle.dumps(P(7))).v, P.__module__)\n", stdout="7 __main__\n"),
        Row("functions pickle too", "import pickle\ndef f():\n    return 'f'\nprint(pickle.loads(pickle.dumps(f))())\n",
            stdout="f\n"),
        Row("no names of ours in globals",
            "print(sorted(n for n in globals() if not (n.startswith('__') and n.endswith('__'))))\n", stdout="[]\n"),
        Row("the root logger has no handlers and writes warnings",
            "import logging\nprint(logging.getLogger().handlers, logging.getLogger().level)\nlogging.warning('careful')\n",
            stdout="[] 30\n", stderr_has="WARNING:root:careful"),
        Row("basicConfig takes effect", "import logging, sys\nlogging.basicConfig(level='INFO', stream=sys.stdout)\n"
            "logging.info('hello')\n", stdout="INFO:root:hello\n"),
        Row("the working directory is the import root",
            "open('helper_mod.py', 'w').write('value = 5')\nimport helper_mod\nprint(helper_mod.value)\n", stdout="5\n"),
        Row("HOME exists, is writable and is not the workspace",
            "import os, pathlib\nhome = pathlib.Path.home()\n(home / 'x').write_text('1')\n"
            "print(str(home) == os.environ['HOME'], home.samefile('.'), os.path.expanduser('~/x') == str(home / 'x'))\n",
            stdout="True False True\n", artifacts=[]),
    ],
    "future-imports": [
        Row("annotations stay text", "from __future__ import annotations\ndef f(a: Missing): ...\n"
            "print(f.__annotations__)\n", stdout="{'a': 'Missing'}\n"),
        Row("after comments and a docstring", "# first\n'''Doc.'''\n# second\nfrom __future__ import annotations\n"
            "x: Undefined = 1\nprint(x, __annotations__['x'])\n", stdout="1 Undefined\n"),
        Row("with top-level await", "from __future__ import annotations\nimport asyncio\nx: Unknown = 2\n"
            "await asyncio.sleep(0)\nprint(x)\n", stdout="2\n"),
        Row("not at the top is the program's own error", "x = 1\nfrom __future__ import annotations\n", status="error",
            error={"type": "SyntaxError", "line": 2}),
        Row("the program's future does not leak into ours", "from __future__ import annotations\n1 + 1\n", value="2"),
    ],
    "source-inspection": [
        Row("a function", "import inspect\ndef f(x):\n    # why\n    return x\nprint(inspect.getsource(f), end='')\n",
            stdout="def f(x):\n    # why\n    return x\n"),
        Row("a class and its method", "import inspect\nclass A:\n    def m(self):\n        return 1\n"
            "print(inspect.getsource(A.m), end='')\n", stdout="    def m(self):\n        return 1\n"),
        Row("a lambda's line", "import inspect\nf = lambda x: x + 1\nprint(inspect.getsourcelines(f)[1])\n", stdout="2\n"),
        Row("the source file of a class", "import inspect\nclass A: pass\nprint(inspect.getsourcefile(A) == __file__)\n",
            stdout="True\n"),
        Row("linecache has the program", "import linecache\nprint(linecache.getline(__file__, 1), end='')\n",
            stdout="import linecache\n"),
        Row("dataclasses and typing hints", "import dataclasses, typing\n@dataclasses.dataclass\nclass D:\n    n: int = 3\n"
            "print(D(), typing.get_type_hints(D))\n", stdout="D(n=3) {'n': <class 'int'>}\n"),
    ],
    "module-shadowing": [
        Row("standard modules have their own names",
            "import code, runpy, types, driver_missing_name_probe as x\n", status="error",
            error={"type": "ModuleNotFoundError", "message": "No module named 'driver_missing_name_probe'"}),
        Row("nothing of ours can be imported by a plain name",
            "import importlib.util as u\nprint([n for n in ('driver', 'guest', 'prims', 'main', 'script', 'runner') "
            "if u.find_spec(n)])\n", stdout="[]\n"),
        Row("a json.py of the program is the program's business only",
            "open('json.py', 'w').write('dumps = None')\nimport json\nprint(json.dumps is None)\n1 + 1\n", stdout="True\n",
            value="2"),
        Row("a traceback.py of the program does not reach the driver",
            "open('traceback.py', 'w').write('raise SystemExit(9)')\nopen('linecache.py', 'w').write('x = 1 / 0')\n"
            "{}['k']\n", status="error", error={"type": "KeyError", "line": 3}),
        Row("wiped builtins", "import builtins\nkeep, drop = print, delattr\nfor n in [n for n in dir(builtins) if n.islower()]:\n"
            "    if n not in ('print', 'list'): drop(builtins, n)\nkeep('gone')\n", stdout="gone\n"),
        Row("sys.modules emptied", "import sys\nprint('before')\nfor n in list(sys.modules):\n"
            "    if n not in ('sys', 'builtins', '__main__'): sys.modules.pop(n)\n", stdout="before\n"),
        Row("sys.stdout replaced", "import sys, io\nprint('seen')\nsys.stdout = io.StringIO()\nprint('swallowed')\n",
            stdout="seen\n"),
        Row("a sitecustomize.py in the workspace does nothing",
            "open('sitecustomize.py', 'w').write('print(\"site\")')\nimport subprocess, sys\n"
            "print(subprocess.run([sys.executable, '-c', 'print(1)'], capture_output=True, text=True).stdout, end='')\n",
            stdout="1\n"),
    ],
    "module-cache": [
        Row("a helper rewritten within the same second is the new one",
            "import importlib\nfor n in range(3):\n    open('hm.py', 'w').write(f'value = {n}\\n')\n"
            "    import hm\n    importlib.reload(hm)\n    print(hm.value)\n", stdout="0\n1\n2\n"),
        Row("seen from a second interpreter too",
            "import subprocess, sys\nfor n in (1, 2):\n    open('hn.py', 'w').write(f'print({n})\\n')\n"
            "    subprocess.run([sys.executable, '-c', 'import hn'])\n", stdout="1\n2\n"),
        Row("a fresh import after removal from sys.modules",
            "import sys\nfor n in (3, 4):\n    open('hp.py', 'w').write(f'v = {n}\\n')\n    sys.modules.pop('hp', None)\n"
            "    import hp\n    print(hp.v)\n", stdout="3\n4\n"),
    ],
}

"""What programs find and how they end: as a script under plain Python."""
import os
import shutil
import signal
import subprocess
import time

from driver_harness import Case


class SourceTest(Case):
    def test_bytes_reach_the_compiler_unchanged(self):
        for code in (b"\xef\xbb\xbftext = '''one\r\ntwo'''\r\nif True:\r\n    print(repr(text))\r\n\r\nprint('end')\r\n",
                     b"# -*- coding: latin-1 -*-\nprint(ascii('\xe9\xe8'))\n", b"print('no line end')",
                     "print('Καλημέρα 你好 \U0001f378')\n".encode(), b"x = 1\r\rprint(x)\r", b"print(1)\n\x0c\nprint(2)\n",
                     b"\n\n", b"", b"# only a comment", b"print('a\\\nb')\n", b"if 1:\n\tprint('tab')\n",
                     b"'''Doc.'''\nfrom __future__ import annotations\ndef f(x: Undefined): pass\n"
                     b"print(f.__annotations__, __doc__)"):
            self.same(code)

    def test_programs_that_do_not_compile_do_not_begin(self):
        for code, line in (("print('before')\nfor x in range(3):", 2), ("print(1)\nx = (", 2), ("x = 1 +\nprint('b')", 1),
                           ("print(1)\nreturn 5", 2), ("x = 1\n  y = 2\n", 2), ("def f():\n\tif 1:\n        x\n", 3),
                           ("print(1)\ndef f():\n    await x\n", 3), ("nonlocal x", 1), ("'\\udc80' = 1", 1)):
            ran = self.run_code(code)
            self.assertEqual((ran.out, ran.status), ("", 1))
            self.assertEqual((ran.error["line"], ran.error["frames"]), (line, []), code)
            self.assertIn(ran.error["type"], ("SyntaxError", "IndentationError", "TabError"))

    def test_null_bytes_and_bad_encodings_are_syntax_errors(self):
        for code in (b"print(1)\nx = '\0'\n", b"print('\xff')\n", b"# coding: nonsense\nprint(1)\n"):
            ran = self.run_code(code)
            self.assertEqual((ran.out, ran.status, ran.error["type"]), ("", 1, "SyntaxError"))

    def test_very_deep_expressions_compile_as_far_as_the_compiler_goes(self):
        self.same("x = " + "+".join(["1"] * 900) + "\nprint(x)")

    def test_nothing_of_the_future_leaks_in(self):
        self.same("def f(x: int): pass\nprint(f.__annotations__)\nexec('def g(y: int): pass\\nprint(g.__annotations__)')")
        self.same("from __future__ import annotations\nexec('def g(y: int): pass\\nprint(g.__annotations__)')")

    def test_compile_time_warnings_come_once(self):
        self.same("x = 1\nif x is 1: print('one')\nprint('\\d')\nx")


class IdentityTest(Case):
    def test_main_is_a_real_module(self):
        self.same("import sys\ndef main(): pass\nprint(__name__, __file__ == sys.argv[0], __spec__, __package__)\n"
                  "print(sys.modules['__main__'].main is main, type(__loader__).__name__, __cached__)\n"
                  "from __main__ import main as again\nprint(again is main)\nimport __main__\nprint(__main__)")
        self.same("print(sorted(globals()))")
        self.same("print(type(__builtins__), __doc__)")

    def test_modules_are_those_of_a_fresh_script(self):
        self.same("import sys\nprint(sorted(sys.modules))")

    def test_modules_that_the_driver_used_can_be_imported_again(self):
        self.same("import _ast, ast, faulthandler, signal, _signal, sys, os\nprint(ast.dump(ast.parse('x = 1')))\n"
                  "print(isinstance(ast.parse('1').body[0], ast.Expr), signal.SIGINT, faulthandler.is_enabled())\n"
                  "faulthandler.register(signal.SIGUSR1)\nfaulthandler.enable()\nprint(faulthandler.is_enabled())")

    def test_nothing_of_ours_is_importable(self):
        self.printed("import importlib.util\nnames = ('driver', 'channel', 'report', 'surroundings', 'main', 'script')\n"
                     "print([n for n in names if importlib.util.find_spec(n)])", "[]\n")

    def test_arguments_and_paths(self):
        with self.guest() as guest:
            ran = guest.run("import sys, os\nprint(sys.argv[1:], sys.path[0] == os.getcwd(), sys.argv[0] == __file__)\n"
                            "print(getattr(sys, 'orig_argv', sys.argv)[-3:] == sys.argv, any('prims' in p for p in sys.path))",
                            ["a b", "–x"])
        self.assertEqual((ran.out, ran.err), ("['a b', '–x'] True True\nTrue False\n", ""))
        self.same("import argparse\np = argparse.ArgumentParser()\np.add_argument('--n', type=int, default=3)\n"
                  "print(p.parse_args().n)")
        self.same("import argparse\np = argparse.ArgumentParser()\np.add_argument('n')\nprint(p.parse_args().n)")

    def test_source_pickles_and_frames(self):
        self.same("import inspect, pickle\n\ndef area(r):\n    # circle\n    return 3 * r * r\n\nclass Box:\n    side = 2\n\n"
                  "print(inspect.getsource(area), inspect.getsource(Box), inspect.currentframe().f_lineno)\n"
                  "print(pickle.loads(pickle.dumps(Box())).side, pickle.loads(pickle.dumps(area)) is area)")
        self.same("import doctest\ndef f():\n    '''\n    >>> f()\n    1\n    '''\n    return 1\nprint(doctest.testmod())")

    def test_workspace_modules_shadow_as_for_a_script_but_not_the_driver(self):
        shadows = {name: "raise SystemExit('reached %s')" % name for name in
                   ("site", "sitecustomize", "usercustomize", "codecs", "os", "io", "ast", "_json", "traceback", "linecache")}
        ran = self.run_code("print('fine')\n1 / 0", **shadows)
        self.assertEqual((ran.out, ran.error["type"], ran.error["line"]), ("fine\n", "ZeroDivisionError", 2))
        self.printed("import json\nprint(json.mine)\n", "True\n", json="mine = True")
        ran = self.run_code("import asyncio\nawait asyncio.sleep(0)\n'awaited'", **shadows)
        self.assertEqual((ran.text, ran.error), ("'awaited'", {}))

    def test_threads_signals_logging_and_locale_are_untouched(self):
        self.same("import threading, signal, logging, locale, sys, warnings\nprint(threading.current_thread().name)\n"
                  "print(threading.active_count(), threading.current_thread() is threading.main_thread())\n"
                  "print(signal.getsignal(signal.SIGINT) is signal.default_int_handler, signal.getsignal(signal.SIGPIPE))\n"
                  "print(logging.getLogger().handlers, logging.getLogger().level, sys.getrecursionlimit())\n"
                  "print(locale.setlocale(locale.LC_ALL), sys.getfilesystemencoding(), warnings.filters)\n"
                  "print(sys.excepthook is sys.__excepthook__, sys.displayhook is sys.__displayhook__, sys.gettrace())")


class StreamTest(Case):
    def test_order_between_writers_holds(self):
        self.printed("import os, subprocess, sys\nprint('1 python')\nos.system('echo 2 shell')\nprint('3', end=' ')\n"
                     "subprocess.run(['echo', '4 child'])\nos.write(1, b'5 raw\\n')\nsys.stdout.buffer.write(b'6 bytes\\n')\n"
                     "subprocess.run([sys.executable, '-c', 'print(7)'])\nprint('8')",
                     "1 python\n2 shell\n3 4 child\n5 raw\n6 bytes\n7\n8\n")

    def test_half_a_line_survives_a_kill(self):
        ran = self.run_code("import os, signal, sys\nprint('done')\nprint('half', end='')\nprint('err', end='', file=sys.stderr)\n"
                            "os.kill(os.getpid(), signal.SIGKILL)")
        self.assertEqual((ran.out, ran.err, ran.status), ("done\nhalf", "err", -9))

    def test_streams_look_and_behave_like_those_of_a_script(self):
        self.same("import sys\nprint(sys.stdout, sys.stderr, sys.stdin, type(sys.stdout), sys.stdout is sys.__stdout__)\n"
                  "print(sys.stdout.errors, sys.stderr.errors, sys.stdin.errors, sys.stdout.newlines, sys.stdout.isatty())\n"
                  "print(sys.stdout.fileno(), sys.stderr.fileno(), type(sys.stdout.buffer).__module__)")
        self.same("import sys\nprint('\\udc80')\nsys.stdout.buffer.write(b'\\x81\\n')\nprint('\\ud800', file=sys.stderr)")
        self.same("print('before')\nprint('\\ud800')")
        self.same("import sys, io\nsys.stdout = io.TextIOWrapper(sys.stdout.buffer, 'utf-16')\nprint('x')")
        self.same("import sys\nsys.stdout.reconfigure(encoding='latin-1', errors='replace')\nprint('\\u20ac\\xe9')")
        self.same("import sys, contextlib, io\nwith contextlib.redirect_stdout(io.StringIO()) as f:\n    print('in')\n"
                  "print(repr(f.getvalue()))\nsys.stdout.close()\nsys.stderr.write('after')")
        self.same("import sys\nsys.stdout = None\nprint('lost')\nsys.stderr = None\n1 / 0")

    def test_input(self):
        self.same("a = input('name? ')\nprint(int(input()) + 1, a)\nimport sys\nprint(repr(sys.stdin.read()))",
                  stdin="Ada\n36\nž\n\n".encode())
        ran = self.same("input('more? ')")
        self.assertEqual(ran.error["type"], "EOFError")

    def test_a_breakpoint_without_input_ends_the_program(self):
        ran = self.run_code("x = 41\nbreakpoint()\nprint('after')\n")
        self.assertIn("(Pdb)", ran.out)
        self.assertEqual((ran.error["type"].rpartition(".")[2], ran.status), ("BdbQuit", 1))

    def test_lines_of_threads_stay_whole(self):
        ran = self.run_code("import threading\ndef work(c):\n    for i in range(300): print(c * 20)\n"
                            "threads = [threading.Thread(target=work, args=(c,)) for c in 'abcd']\n"
                            "for t in threads: t.start()\nfor t in threads: t.join()")
        lines = ran.out.split("\n")
        self.assertEqual((len(lines), {len(line) for line in lines[:-1]}, {len(set(line)) for line in lines[:-1]}),
                         (1201, {20}, {1}))

    def test_large_pieces_are_written_whole(self):
        ran = self.run_code("import signal\nsignal.signal(signal.SIGALRM, lambda *a: None)\n"
                            "signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)\nprint('x' * 5_000_000)")
        self.assertEqual((len(ran.out), ran.err), (5_000_001, ""))


class EndingTest(Case):
    def test_exit_codes_are_those_of_the_interpreter(self):
        for code in ("import sys\nsys.exit()", "import sys\nsys.exit(3)", "import sys\nsys.exit('no partner')", "exit(0)",
                     "raise SystemExit(None)", "import sys\nsys.exit(True)", "import sys\nsys.exit(256 + 7)", "quit()",
                     "import sys\nsys.exit((1, 2))", "import sys\nprint('partial', end='')\nsys.exit(-1)", "raise ValueError",
                     "import sys\nsys.exit(['a', 'ž'])", "import os, signal\nos.kill(os.getpid(), signal.SIGTERM)",
                     "import atexit, sys\natexit.register(print, 'bye')\nsys.exit(4)"):
            self.same(code)

    def test_exit_is_told_without_a_traceback(self):
        ran = self.run_code("import sys\ndef stop():\n    sys.exit('no partner e-mail')\nstop()")
        self.assertEqual((ran.status, ran.err), (1, "no partner e-mail\n"))
        self.assertEqual((ran.error["type"], ran.error["message"], ran.error["line"]), ("SystemExit", "no partner e-mail", 3))
        self.assertNotIn("traceback", ran.error)
        for code in ("import sys\nsys.exit()", "raise SystemExit(0)"):
            self.assertEqual(self.run_code(code).error, {})

    def test_keyboard_interrupt(self):
        for code in ("raise KeyboardInterrupt", "import os, signal\nos.kill(os.getpid(), signal.SIGINT)\nprint('x')"):
            ran = self.run_code(code)
            self.assertEqual((ran.status, ran.error["type"]), (130, "KeyboardInterrupt"))
            self.assertIn("KeyboardInterrupt", ran.err)

    def test_threads_and_exit_handlers_finish(self):
        self.same("import atexit, threading, time\natexit.register(print, 'first registered')\n"
                  "atexit.register(lambda: print('handler'))\ndef work():\n    time.sleep(0.1)\n    print('thread')\n"
                  "threading.Thread(target=work).start()\nprint('main')\n")
        self.same("import threading, time\nthreading.Thread(target=lambda: (time.sleep(0.1), print('t'))).start()\n1 / 0")
        self.same("import threading\ndef f(): raise ValueError('in thread')\nt = threading.Thread(target=f, name='T')\n"
                  "t.start(); t.join()")
        self.same("import atexit\n@atexit.register\ndef f(): print('handler'); raise ValueError('late')")

    def test_objects_are_finalised(self):
        self.same("class A:\n    def __del__(self): print('gone')\na = A()\nprint('end')")
        self.same("open('left', 'w').write('kept')\nf = open('left2', 'w')\nf.write('flushed')\nimport atexit, os\n"
                  "@atexit.register\ndef f2(): print(os.path.getsize('left'))")

    def test_daemon_threads_that_print_do_not_break_the_end(self):
        for _ in range(3):
            ran = self.run_code("import threading, time\ndef work():\n    while True: print('tick')\n"
                                "threading.Thread(target=work, daemon=True).start()\ntime.sleep(0.05)\n'end'")
            self.assertEqual((ran.status, ran.err, ran.text), (0, "", "'end'"))

    def test_interrupted_alarms_reach_the_program(self):
        self.printed("import signal, time\ndef on(*a): raise TimeoutError('own alarm')\nsignal.signal(signal.SIGALRM, on)\n"
                     "signal.setitimer(signal.ITIMER_REAL, 0.05)\ntry:\n    time.sleep(5)\n"
                     "except TimeoutError as e:\n    print('caught', e)", "caught own alarm\n")


class ProcessTest(Case):
    def test_pools_by_every_start_method(self):
        for method in ("fork", "spawn", "forkserver"):
            self.printed("import multiprocessing as mp\nfrom concurrent.futures import ProcessPoolExecutor\n"
                         "def square(x):\n    return x * x\nif __name__ == '__main__':\n"
                         "    context = mp.get_context('%s')\n    with context.Pool(2) as pool:\n"
                         "        print(pool.map(square, [1, 2, 3]))\n"
                         "    with ProcessPoolExecutor(2, mp_context=context) as ex:\n"
                         "        print(list(ex.map(square, [4, 5])))" % method, "[1, 4, 9]\n[16, 25]\n")

    def test_children_of_multiprocessing_print_and_fail_like_under_plain_python(self):
        self.same("import multiprocessing as mp\ndef f():\n    print('child')\nif __name__ == '__main__':\n"
                  "    p = mp.Process(target=f); p.start(); p.join(); print(p.exitcode)\n"
                  "    p = mp.get_context('spawn').Process(target=f); p.start(); p.join(); print(p.exitcode)")

    def test_python_children_find_the_workspace(self):
        self.printed("import subprocess, sys\n"
                     "subprocess.run([sys.executable, '-c', 'import helper; print(helper.x, __name__)'])\n"
                     "subprocess.run([sys.executable, 'helper.py'])", "5 __main__\n5\n".replace("5\n", "", 0),
                     helper="x = 5\nif __name__ == '__main__': print(x)")


class ModuleTest(Case):
    REWRITE = "open('helper.py', 'w').write('def f():\\n    return %d\\n')\n"

    def test_a_module_rewritten_within_the_second_is_the_new_one(self):
        with self.guest() as guest:
            for number in range(3):
                code = self.REWRITE % number + "import helper\nprint(helper.f())"
                self.assertEqual(guest.run(code).out, "%d\n" % number)
            code = self.REWRITE % 7 + "import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'import helper; print(helper.f())'])"
            self.assertEqual(guest.run(code).out, "7\n")
            self.assertEqual(sorted(os.listdir(guest.workspace)), ["helper.py"])

    def test_bytecode_that_lies_in_the_workspace_is_not_trusted(self):
        with self.guest() as guest:
            guest.write("helper.py", "x = 1\n")
            subprocess.run([self.python, "-m", "compileall", "-q", guest.workspace], check=True)
            stamp = os.stat(os.path.join(guest.workspace, "helper.py"))
            guest.write("helper.py", "x = 2\n")
            os.utime(os.path.join(guest.workspace, "helper.py"), ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
            self.assertEqual(guest.run("import helper\nprint(helper.x, helper.__file__[-9:])").out, "2 helper.py\n")

    def test_packages_and_reloads_of_the_workspace(self):
        with self.guest() as guest:
            os.mkdir(os.path.join(guest.workspace, "pack"))
            guest.write("pack/__init__.py", "from . import part\n")
            guest.write("pack/part.py", "value = 1\n")
            ran = guest.run("import importlib, pkgutil, pack\nprint(pack.part.value, [m.name for m in pkgutil.iter_modules(pack.__path__)])\n"
                            "open('pack/part.py', 'w').write('value = 2\\n')\nprint(importlib.reload(pack.part).value)\n"
                            "print(type(pack.__loader__).__name__)")
        self.assertEqual((ran.out, ran.err), ("1 ['part']\n2\nSourceFileLoader\n", ""))


class AsyncTest(Case):
    def test_asyncio_run_and_loops_by_hand(self):
        self.same("import asyncio\nasync def f():\n    await asyncio.sleep(0.01)\n    return 'run'\nprint(asyncio.run(f()))\n"
                  "loop = asyncio.new_event_loop()\nprint(loop.run_until_complete(asyncio.sleep(0.01, 'hand')))\nloop.close()")

    def test_await_at_top_level(self):
        ran = self.printed("import asyncio\nasync def f(x):\n    await asyncio.sleep(0.01)\n    return x\nprint(await f('top'))\n"
                           "print(await asyncio.gather(f(1), f(2)))\nt = asyncio.create_task(f(3))\n"
                           "async with asyncio.Lock():\n    print('with')\n"
                           "async def g():\n    yield 1\nasync for i in g():\n    print(i)\n"
                           "print([i async for i in g()])\nawait t", "top\n[1, 2]\nwith\n1\n[1]\n")
        self.assertEqual(ran.text, "3")
        self.assertEqual(self.run_code("import asyncio\nx = await asyncio.sleep(0, 5)\nx + 1").text, "6")
        self.assertEqual(self.run_code("import asyncio, sys\nawait asyncio.sleep(0)\nsys.exit(3)").status, 3)

    def test_globals_of_awaiting_programs_are_those_of_main(self):
        self.printed("import asyncio, __main__\nx = await asyncio.sleep(0, 5)\ndef f(): return x\n"
                     "print(f(), __main__.x, __name__, 'x' in globals())", "5 5 __main__ True\n")


class FontTest(Case):
    def test_the_layer_s_font_list_is_linked_into_a_writable_cache(self):
        with self.guest() as guest:
            shared = os.path.join(os.path.dirname(os.path.dirname(self.python)), "share", "prims", "matplotlib")
            os.makedirs(shared, exist_ok=True)
            self.addCleanup(shutil.rmtree, shared)
            with open(os.path.join(shared, "fontlist-v390.json"), "w") as file:
                file.write("{}")
            ran = guest.run("import os\nd = os.path.expanduser('~/.cache/matplotlib')\n"
                            "print(os.access(d, os.W_OK), open(d + '/fontlist-v390.json').read())")
        self.assertEqual((ran.out, ran.err), ("True {}\n", ""))

"""Values and errors, as the host is told them."""
from driver_harness import Case, tidy


class ValueTest(Case):
    def test_the_last_expression_is_the_value(self):
        for code, text, kind in (("1 + 1", "2", "int"), ("x = 20\ny = 22\nx + y", "42", "int"), ("'last'", "'last'", "str"),
                                 ("x = [1]\nx;", "[1]", "list"), ("'doc'", "'doc'", "str"), ("(1,)", "(1,)", "tuple"),
                                 ("{1: [], 'a': (1, {2})}", "{1: [], 'a': (1, {2})}", "dict"), ("set()", "set()", "set"),
                                 ("frozenset([1])", "frozenset({1})", "frozenset"), ("b'\\0'", "b'\\x00'", "bytes"),
                                 ("[float('nan'), -float('inf'), 2 ** 70]", "[nan, -inf, 1180591620717411303424]", "list"),
                                 ("a = []\na.append(a)\na", "[[...]]", "list"), ("()", "()", "tuple"),
                                 ("class A:\n    def __repr__(self): return 'an A'\nA()", "an A", "A"),
                                 ("import collections\ncollections.OrderedDict(a=1)", None, "collections.OrderedDict"),
                                 ("lambda: 0", None, "function"), ("x = 1\n'\\ud800'", "'\\ud800'", "str"),
                                 ("# first\n(1 +\n 2)  # comment\n\n", "3", "int"), ("if 1: pass\n5", "5", "int")):
            ran = self.run_code(code)
            self.assertEqual((ran.out, ran.err, ran.error, ran.value.get("type")), ("", "", {}, kind), code)
            if text is not None:
                self.assertEqual(ran.text, text)

    def test_none_and_statements_have_no_value(self):
        for code in ("print('hi')", "x = 5", "None", "", "if 1:\n    5", "def f():\n    '''doc'''", "5\nx = 1"):
            self.assertEqual(self.run_code(code).value, {}, code)

    def test_a_docstring_alone_is_both(self):
        ran = self.run_code("import atexit\n__doc__")
        self.assertEqual(ran.value, {})
        ran = self.run_code("'only this'")
        self.assertEqual(ran.text, "'only this'")

    def test_a_repr_that_fails_is_told(self):
        for raised in ("RuntimeError('no picture today')", "SystemExit('no picture today')", "KeyboardInterrupt('no picture today')"):
            ran = self.run_code("class Broken:\n    def __repr__(self):\n        raise %s\nprint('work done')\nBroken()" % raised)
            self.assertEqual((ran.out, ran.status, ran.error), ("work done\n", 0, {}))
            self.assertIn("no picture today", ran.text)
        ran = self.run_code("class Odd:\n    def __repr__(self): return 5\n[Odd()]")
        self.assertIn("TypeError", ran.text)

    def test_large_values_are_cut_and_cost_nothing(self):
        ran = self.run_code("[list(range(100)) for _ in range(3)] + [0] * 30_000_000")
        self.assertTrue(ran.text.startswith("[[0, 1, 2"))
        self.assertIn("30000003 in all", ran.text)
        self.assertLess(len(ran.text), 70_000)
        for code in ("'x' * 10_000_000", "{i: str(i) for i in range(1_000_000)}", "['y' * 10_000_000] * 5",
                     "class A:\n    def __repr__(self): return 'z' * 10_000_000\nA()", "10 ** 100_000",
                     "x = 1\nfor _ in range(500): x = [x]\nx", "'\\x01' * 10_000_000"):
            self.assertLess(len(self.run_code(code).text), 70_000)

    def test_values_may_be_anything(self):
        for code in ("class M(type):\n    def __getattribute__(c, n): return 1 / 0\nclass A(metaclass=M): pass\nA()",
                     "class A:\n    __class__ = property(lambda s: 1 / 0)\nA()", "class A: __slots__ = ()\nA.__module__ = 5\nA()"):
            self.assertTrue(self.run_code(code).value)

    def test_text_that_no_json_can_hold_is_shown_as_repr_would(self):
        ran = self.run_code("class A:\n    def __repr__(self): return 'a\\ud800b'\nA()")
        self.assertEqual(ran.text, "a\\ud800b")
        ran = self.run_code("raise ValueError('x\\udfff')")
        self.assertEqual((ran.error["type"], ran.error["message"]), ("ValueError", "x\\udfff"))

    def test_user_names_and_builtins_stay_the_user_s(self):
        self.same("print = len = list = 5\n_ = 7\nimport sys\nsys.stdout.write(str(_))\n")


class ErrorTest(Case):
    def error(self, code, **files):
        ran = self.same(code, **files)
        self.assertEqual(ran.status, 1)
        return ran.error

    def test_an_error_names_the_user_s_lines(self):
        error = self.error("def boom(*a):\n    raise ValueError('uh oh')\n\nprint('start')\nboom(\n    1,\n    2,\n)\n")
        self.assertEqual((error["type"], error["message"], error["line"]), ("ValueError", "uh oh", 2))
        self.assertEqual(error["frames"], [{"line": 5, "name": "<module>", "file": "main.py"},
                                           {"line": 2, "name": "boom", "file": "main.py"}])
        self.assertEqual(error["traceback"], 'Traceback (most recent call last):\n  File "main.py", line 5, in <module>\n'
                         '    boom(\n  File "main.py", line 2, in boom\n    raise ValueError(\'uh oh\')\nValueError: uh oh')

    def test_lines_inside_long_statements_and_last_expressions(self):
        self.assertEqual(self.error("data = {'a': 1}\nx = (data['a'] +\n     data['b'])\n")["frames"][0]["line"], 3)
        self.assertEqual(self.error("data = {'a': 1}\n(data['a'] +\n     data['b'])\n")["line"], 3)
        self.assertEqual(self.error("data = {'a': 1}\n(data['a'] +\n     data['b'])\n")["message"], "'b'")

    def test_library_frames_are_left_out(self):
        error = self.error("import json\njson.loads('{')")
        self.assertEqual(error["type"], "json.decoder.JSONDecodeError")
        self.assertEqual(error["frames"], [{"line": 2, "name": "<module>", "file": "main.py"}])
        self.assertNotIn("decoder.py", error["traceback"])
        error = self.error("import helper\nhelper.f()", helper="def f():\n    return [][1]\n")
        self.assertEqual([(f["file"], f["line"]) for f in error["frames"]], [("main.py", 2), ("helper.py", 2)])
        self.assertEqual(error["line"], 2)
        self.assertIn("return [][1]", error["traceback"])

    def test_errors_below_await_show_no_event_loop(self):
        ran = self.run_code("import asyncio\n\nasync def boom(*a):\n    raise ValueError('uh oh')\n\nprint('start')\nawait boom(\n"
                            "    1,\n    2,\n)\n")
        self.assertEqual([(f["line"], f["name"]) for f in ran.error["frames"]], [(7, "<module>"), (4, "boom")])
        for hidden in ("asyncio", "driver", "exec(", "compile(", "runpy"):
            self.assertNotIn(hidden, ran.error["traceback"] + ran.err.replace("import asyncio", ""))
        self.assertEqual((ran.out, ran.status, ran.error["line"]), ("start\n", 1, 4))

    def test_causes_contexts_and_notes(self):
        error = self.error("try:\n    {}['k']\nexcept KeyError as e:\n    raise RuntimeError('worse') from e\n")
        self.assertIn("KeyError: 'k'\n\nThe above exception was the direct cause", error["traceback"])
        error = self.error("try:\n    {}['k']\nexcept KeyError:\n    1 / 0\n")
        self.assertIn("During handling of the above exception", error["traceback"])
        error = self.error("try:\n    {}['k']\nexcept KeyError:\n    raise ValueError('plain') from None\n")
        self.assertNotIn("KeyError: ", error["traceback"])
        if self.version >= (3, 11):
            error = self.error("e = ValueError('x')\ne.add_note('look at row 5')\nraise e")
            self.assertTrue(error["traceback"].endswith("ValueError: x\nlook at row 5"))
            error = self.error("raise ExceptionGroup('both', [ValueError('one'), TypeError('two')])")
            self.assertIn("ValueError: one", error["traceback"])
            self.assertIn("TypeError: two", error["traceback"])

    def test_deep_recursion_is_short(self):
        ran = self.run_code("def f(n):\n    return f(n + 1)\nf(0)")
        self.assertEqual((ran.error["type"], ran.error["line"], ran.status), ("RecursionError", 2, 1))
        self.assertLess(len(ran.error["traceback"]), 3000)
        self.assertLess(len(ran.error["frames"]), 40)
        self.assertIn("left out", ran.error["traceback"])

    def test_errors_may_be_anything(self):
        for code in ("class E(Exception):\n    def __str__(self): return 1 / 0\nraise E", "raise Exception('\\ud800\\0')",
                     "class E(Exception):\n    __notes__ = property(lambda s: 1 / 0)\nraise E('x')",
                     "class E(Exception):\n    __cause__ = property(lambda s: 1 / 0)\nraise E('x')",
                     "class E(BaseException): pass\nraise E(b'\\xff')", "raise OSError(2, 'No such file', 'f.txt')",
                     "e = ValueError('loop')\ne.__cause__ = e\nraise e", "raise SyntaxError('own')",
                     "raise SyntaxError('own', ('f.py', 3, 4, 'x y', 3, 5))", "compile('1 +', 'x', 'exec')", "exec('1/0')",
                     "raise Exception('x' * 1_000_000)", "raise GeneratorExit", "raise MemoryError"):
            ran = self.run_code(code)
            self.assertEqual((ran.status, ran.results), (1, 1), code)
            self.assertTrue(ran.error["type"])
            self.assertLess(len(str(ran.error)), 100_000)

    def test_the_program_s_excepthook_is_honoured(self):
        self.error("import sys\nsys.excepthook = lambda kind, error, trace: print('mine', kind.__name__, error)\n1 / 0")
        self.error("import sys\nsys.excepthook = lambda *a: [][1]\n1 / 0")
        ran = self.same("import sys\nsys.excepthook = lambda *a: sys.exit(9)\n1 / 0")
        self.assertEqual((ran.status, ran.error["type"]), (9, "ZeroDivisionError"))
        self.error("import sys, atexit\natexit.register(lambda: print(sys.last_type, sys.last_value))\n1 / 0")

    def test_syntax_errors_of_workspace_modules_point_to_the_import(self):
        error = self.error("x = 1\nimport helper", helper="def f(:\n    pass\n")
        self.assertEqual((error["type"], error["line"], len(error["frames"])), ("SyntaxError", 2, 1))
        self.assertIn('File "helper.py", line 1', error["traceback"])

    def test_a_syntax_error_shows_where(self):
        ran = self.run_code("x = 1\ny = 1 +* 2\n")
        self.assertIn('File "main.py", line 2\n    y = 1 +* 2\n', ran.error["traceback"])
        self.assertNotIn("main.py", ran.error["message"])

"""Forks of a template: each as fresh as a new interpreter, and nothing of what was imported ahead to be seen."""
import os
import textwrap

from driver_harness import Case, Guest, Template, tidy

LIBRARY = {
    "heavy/__init__.py": """
        import atexit, decimal, os, sys, warnings
        from . import core
        warnings.filterwarnings("ignore", message="heavy")
        warnings.warn("heavy is old", UserWarning, stacklevel=2)
        warnings.warn("whoever imports heavy sees this", DeprecationWarning, stacklevel=2)
        atexit.register(print, "heavy ends")
        os.environ["HEAVY"] = "set"
        class Finder:
            @staticmethod
            def find_spec(name, path=None, target=None):
                return None
        sys.meta_path.append(Finder)
        """,
    "heavy/core.py": "import json\nclass Part: pass\nshared = []\n",
    "heavy/extra.py": "import csv\nfrom heavy.core import shared\n",
    "loud.py": "print('loud')\n",
    "broken.py": "import heavy_helper\nraise SystemExit('broken')\n",
    "heavy_helper.py": "state = []\n",
    "threaded.py": """
        import threading
        stop = threading.Event()
        thread = threading.Thread(target=stop.wait, daemon=True)
        thread.start()
        """,
    "plain_use.py": "import random, heavy.core\nvalue = heavy.core.shared\n",
}
IMPORTS = ("no_such_library", "heavy.extra", "loud", "broken", "threaded", "plain_use", "numpy", "pandas", "matplotlib.pyplot")


def install_library(python):
    """Puts the libraries of these tests into the environment of this interpreter, and those of PRIMS_TEST_LIBRARIES: a folder,
    with {version} for "3.11"."""
    lib = os.path.join(os.path.dirname(os.path.dirname(python)), "lib")
    version = os.listdir(lib)[0]
    packages = os.path.join(lib, version, "site-packages")
    with open(os.path.join(packages, "more.pth"), "w") as file:
        file.write(os.environ.get("PRIMS_TEST_LIBRARIES", "").replace("{version}", version[len("python"):]) + "\n")
    for name, text in LIBRARY.items():
        path = os.path.join(packages, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(textwrap.dedent(text))


class TemplateCase(Case):
    """`template` is there in these; each program is compared with its run under a plainly started driver."""

    def same_as_plain(self, code, **files):
        runs = []
        for template in (self.template, None):
            with Guest(self.python, template) as guest:
                for name, text in files.items():
                    guest.write(name + ".py", text)
                ran = guest.run(code)
                runs.append((tidy(ran.out), tidy(ran.err), ran.status, tidy(str(ran.value)), tidy(str(ran.error))))
        self.assertEqual(runs[0], runs[1])
        return runs[0]

    def needs(self, library):
        if self.run_code("import " + library).status:
            self.skipTest("no %s in this environment" % library)


class LateWorkspaceTest(TemplateCase):
    """What becomes of the workspace while a fork waits for its call."""

    CODE = "import json, os, sys\nprint(json.__file__ == os.getcwd() + '/json.py', sorted(os.listdir()), sys.argv)"

    def waiting(self, guest):
        guest.start()
        self.assertTrue(guest.host.recv(4096))
        return guest

    def test_a_file_that_comes_late_goes_before_a_library(self):
        with Guest(self.python, self.template) as guest:
            self.waiting(guest).write("json.py", "")
            guest.call(self.CODE, ["one"])
            self.assertEqual(guest.end().out, "True ['json.py'] %r\n" % [guest.file, "one"])

    def test_another_directory_at_its_place_is_the_workspace(self):
        with Guest(self.python, self.template) as guest:
            self.waiting(guest)
            os.rename(guest.workspace, guest.workspace + ".old")
            os.mkdir(guest.workspace)
            guest.write("own.py", "word = 'own'\n")
            guest.call("import os, own, sys\nprint(own.word, os.listdir(), len(sys.path_hooks))")
            self.assertEqual(guest.end().out, "own ['own.py'] 3\n")

    def test_a_workspace_elsewhere_is_followed(self):
        with Guest(self.python, self.template) as guest:
            self.waiting(guest)
            guest.workspace += ".else"
            os.mkdir(guest.workspace)
            guest.write("own.py", "word = 'own'\n")
            guest.call("import os, own, sys\nprint(own.word, os.getcwd(), sys.path[0])")
            self.assertEqual(guest.end().out, "own %s %s\n" % (guest.workspace, guest.workspace))


class FreshnessTest(TemplateCase):
    def draw(self, code):
        """What two forks draw, and a third in between does not disturb."""
        drawn = [self.run_code(code) for _ in range(3)]
        for ran in drawn:
            self.assertEqual((ran.err, ran.status), ("", 0), code)
        self.assertEqual(len({ran.out for ran in drawn}), 3, code)

    def test_two_forks_share_no_random_stream(self):
        for code in ("import random\nprint(random.random())", "import uuid\nprint(uuid.uuid4())",
                     "import uuid\nu = uuid.uuid1()\nprint(u.clock_seq, u.node)", "import secrets\nprint(secrets.token_hex())",
                     "import os\nprint(os.urandom(8))", "import ssl\nprint(ssl.RAND_bytes(8))",
                     "import tempfile\nprint(next(tempfile._get_candidate_names()))",
                     "import multiprocessing\nprint(bytes(multiprocessing.current_process().authkey))",
                     "import random\nprint(random.SystemRandom().random(), random.Random().random())"):
            self.draw(code)

    def test_two_forks_share_no_random_stream_of_numpy(self):
        self.needs("numpy")
        for code in ("import numpy\nprint(numpy.random.rand())", "import numpy\nprint(numpy.random.default_rng().random())",
                     "import numpy\nprint(numpy.random.RandomState().rand())",
                     "from numpy.random import mtrand\nprint(mtrand.rand())"):
            self.draw(code)

    def test_seeds_hold(self):
        self.same_as_plain("import random\nrandom.seed(3)\nprint(random.random())")

    def test_threads_and_processes_are_those_of_a_new_process(self):
        self.same_as_plain("import threading, os\nmain = threading.main_thread()\n"
                           "print(main.native_id == threading.get_native_id() == os.getpid(), main.ident == threading.get_ident())\n"
                           "print(threading.enumerate(), len(os.listdir('/proc/self/task')))".replace("threading.enumerate()", "len(threading.enumerate())"))
        self.same_as_plain("import multiprocessing\nprint(multiprocessing.current_process().name, multiprocessing.active_children())")

    def test_linear_algebra_has_its_threads(self):
        self.needs("numpy")
        ran = self.run_code("import numpy, os\na = numpy.ones((600, 600))\nprint((a @ a)[0, 0], len(os.listdir('/proc/self/task')))")
        value, threads = ran.out.split()
        self.assertEqual((value, ran.err), ("600.0", ""))
        self.assertTrue(int(threads) > 1 or os.cpu_count() == 1)


class HiddenTest(TemplateCase):
    def test_modules_appear_only_when_they_are_imported(self):
        self.same_as_plain("import sys\nprint(list(sys.modules))")
        for name in ("json", "heavy", "heavy.core", "heavy.extra", "plain_use", "asyncio", "concurrent.futures", "xml.etree.ElementTree",
                     "collections.abc", "urllib.request", "logging", "math", "decimal", "importlib.util", "unittest"):
            self.same_as_plain("import sys\nimport %s\nprint(sorted(sys.modules))" % name)
        for name in ("numpy", "pandas", "matplotlib", "matplotlib.pyplot"):
            self.same_as_plain("import sys\ntry:\n    import %s\nexcept ImportError: pass\nprint(sorted(sys.modules))" % name)

    def test_packages_have_the_modules_that_were_imported(self):
        self.same_as_plain("import heavy\nprint(hasattr(heavy, 'core'), hasattr(heavy, 'extra'))\n"
                           "import heavy.extra\nprint(heavy.extra.shared is heavy.core.shared)")
        self.same_as_plain("import xml\nxml.etree")
        self.same_as_plain("import importlib.util, sys\nspec = importlib.util.find_spec('heavy.core')\n"
                           "print('heavy' in sys.modules, 'heavy.core' in sys.modules, spec.name, spec.origin, spec.has_location)")

    def test_modules_are_what_an_import_makes(self):
        self.same_as_plain("import heavy, json, math, heavy.core as c\nfor m in (heavy, json, math, c):\n"
                           "    print(m, m.__spec__, m.__loader__ is m.__spec__.loader, m.__spec__._initializing)")
        self.same_as_plain("import pickle, heavy.core\nprint(type(pickle.loads(pickle.dumps(heavy.core.Part()))) is heavy.core.Part)")
        self.same_as_plain("import importlib, sys, json\nold = json\njson.mark = 1\nprint(importlib.reload(json) is old, json.mark)\n"
                           "del sys.modules['json']\nimport json\nprint(json is old, hasattr(json, 'mark'))")
        for name in ("heavy", "heavy.core"):
            self.same_as_plain("import sys\nsys.modules['%s'] = None\ntry: import heavy.extra\nexcept ImportError as e: print(e)" % name)

    def test_imports_have_their_effects_when_they_happen(self):
        self.same_as_plain("import os, sys\nfilters = 'import warnings; print([str(f) for f in warnings.filters])'\nexec(filters)\n"
                           "print(os.environ.get('HEAVY'), len(os.environ))\nimport heavy\nexec(filters)\n"
                           "print(os.environ.get('HEAVY'), sys.meta_path[-1].__name__)\nos.system('echo $HEAVY')")
        self.same_as_plain("import warnings\nwarnings.simplefilter('ignore')\nimport heavy")
        self.same_as_plain("import atexit\natexit.register(print, 'mine')\nprint(atexit.unregister)".replace("print(atexit.unregister)", "import heavy"))
        self.same_as_plain("import loud")
        self.same_as_plain("import broken")
        self.same_as_plain("import threaded\nprint(threaded.thread.is_alive())")

    def test_files_of_the_workspace_go_first(self):
        for name in ("json", "heavy", "random", "heavy_helper", "numpy", "csv", "math", "decimal"):
            self.same_as_plain("import %s\nprint(%s.__file__.rpartition('/')[2], %s.x)" % (name, name, name), **{name: "x = 1"})
        self.same_as_plain("import plain_use\nprint(plain_use.random.x)", random="x = 1")
        self.same_as_plain("open('json.py', 'w').write('x = 1')\nimport json\nprint(json.x)")
        self.same_as_plain("import os, sys\nos.mkdir('lib')\nopen('lib/csv.py', 'w').write('x = 1')\nsys.path.insert(0, 'lib')\n"
                           "import csv\nprint(csv.x)")
        self.same_as_plain("import os\nos.mkdir('json')\nimport json\nprint(json.dumps([1]))")

    def test_a_program_with_files_of_such_names_gets_its_call_whole(self):
        with Guest(self.python, self.template) as guest:
            guest.write("json.py", "x = 1\n")
            ran = guest.run("import json, sys\nprint(json.x, sys.argv[1:], input())\nsys.exit(4)", ["a", "ž"], b"line\n")
        self.assertEqual((ran.out, ran.err, ran.status, ran.results), ("1 ['a', 'ž'] line\n", "", 4, 1))

    def test_settings_of_matplotlib_in_the_workspace_count(self):
        self.needs("matplotlib")
        with Guest(self.python, self.template) as guest:
            with open(os.path.join(guest.workspace, "matplotlibrc"), "w") as file:
                file.write("lines.linewidth: 7\n")
            self.assertEqual(guest.run("import matplotlib\nprint(matplotlib.rcParams['lines.linewidth'])").out, "7.0\n")

    def test_matplotlib_starts_as_after_its_import(self):
        self.needs("matplotlib")
        self.same_as_plain("import matplotlib\nprint(hasattr(matplotlib, 'pyplot'), matplotlib.get_backend())\nmatplotlib.use('pdf')\n"
                           "import matplotlib.pyplot as plt\nprint(plt.get_backend(), plt.get_fignums(), matplotlib.is_interactive())")
        self.same_as_plain("import matplotlib.pyplot as plt, os\nplt.plot([1, 2])\nplt.savefig('a.png')\nprint(os.listdir())")

    def test_pandas_works(self):
        self.needs("pandas")
        self.same_as_plain("import pandas as pd\nprint(pd.DataFrame({'a': [1, 1, 2], 'b': [3, 4, 5]}).groupby('a').sum())")


class ForkEndingTest(TemplateCase):
    def test_endings_are_those_of_the_interpreter(self):
        for code in ("class A:\n    def __del__(self): print('gone', x)\nx = 5\na = A()\nb = [a]\nb.append(b)",
                     "class A:\n    def __del__(self):\n        try: import json\n        except ImportError as e: print(e)\na = A()",
                     "import atexit\nclass A:\n    def __del__(self): print('gone')\na = A()\natexit.register(lambda: print('exit', a))",
                     "import atexit\ndef f(): print('once')\natexit.register(f)\natexit.register(f)",
                     "import atexit\nprint('x')\natexit._clear()", "f = open('kept', 'w')\nf.write('x' * 10)\nf2 = f\n",
                     "import sys\nsys.exit(7)", "import sys\nsys.exit('message')", "import sys\nsys.exit(-1)", "raise SystemExit(2 ** 70)",
                     "1 / 0", "async def f(): pass\nc = f()", "import helper\nhelper.a = helper.A()\n",
                     "import os\nif not os.fork():\n    raise SystemExit(3)\nprint(os.wait()[1] >> 8)",
                     "import sys, io\nclass S(io.StringIO):\n    def flush(self): raise OSError('full')\nsys.stdout = S()",
                     "import threading\nclass A:\n    def __del__(self): print('gone')\na = A()\nthreading.Thread(target=lambda: print('t')).start()",
                     "import sys\nsys.stdout.close()", "import ctypes\nctypes.CDLL(None).printf(b'from C\\n')"):
            self.same_as_plain(code, helper="class A:\n    def __del__(self): print('helper gone')\n")

    def test_what_was_written_is_there(self):
        with Guest(self.python, self.template) as guest:
            guest.run("f = open('kept', 'w')\nf.write('x' * 10)\nimport csv\nw = csv.writer(f)\nw.writerow([1])")
            with open(os.path.join(guest.workspace, "kept")) as file:
                self.assertEqual(file.read(), "x" * 10 + "1\n")


def templates_for(python):
    install_library(python)
    return {"template": Template(python, IMPORTS), "expecting template": Template(python, IMPORTS, expecting=True)}

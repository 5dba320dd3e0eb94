"""It is CPython: the whole language, asynchronous programs, threads, processes."""

from harness.table import Row

POOLS = '''import multiprocessing as mp
from concurrent.futures import ProcessPoolExecutor
def cube(x):
    return x ** 3
if __name__ == '__main__':
    for method in ('fork', 'spawn'):
        with mp.get_context(method).Pool(2) as pool:
            print(method, pool.map(cube, range(4)))
    with ProcessPoolExecutor(2, mp_context=mp.get_context('spawn')) as ex:
        print(sum(ex.map(cube, range(4))))
'''

QUEUE = '''import multiprocessing as mp
def work(q, lock, total):
    with lock:
        total.value += 5
    q.put(mp.current_process().name != 'MainProcess')
if __name__ == '__main__':
    ctx = mp.get_context('spawn')
    q, lock, total = ctx.Queue(), ctx.Lock(), ctx.Value('i', 0)
    ps = [ctx.Process(target=work, args=(q, lock, total)) for _ in range(2)]
    [p.start() for p in ps]
    print([q.get() for _ in ps])
    [p.join() for p in ps]
    print(total.value, [p.exitcode for p in ps])
'''

SHARED = '''from multiprocessing import shared_memory, Process
def fill(name):
    m = shared_memory.SharedMemory(name)
    m.buf[0] = 42
    m.close()
m = shared_memory.SharedMemory(create=True, size=16)
p = Process(target=fill, args=(m.name,))
p.start(); p.join()
print(m.buf[0])
m.close(); m.unlink()
'''

LOOPBACK = '''import http.server, threading, urllib.request
class H(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(b'hi ' + self.path.encode())
    def log_message(self, *a): pass
s = http.server.HTTPServer(('127.0.0.1', 0), H)
threading.Thread(target=s.serve_forever, daemon=True).start()
print(urllib.request.urlopen(f'http://127.0.0.1:{s.server_port}/x').read().decode())
s.shutdown()
'''

ALARM = '''import signal, time
class Late(Exception): pass
def on(n, f): raise Late(n == signal.SIGALRM)
signal.signal(signal.SIGALRM, on)
signal.alarm(1)
try:
    while True: time.sleep(0.01)
except Late as e:
    print('late', e)
'''

KINDS = {
    "language-semantics": [
        Row("names of the top level are seen everywhere",
            "rate = 3\nclass A:\n    table = {k: rate * k for k in range(3)}\nprint([rate * i for i in (1, 2)], A.table, "
            "(lambda: rate)())\n", stdout="[3, 6] {0: 0, 1: 3, 2: 6} 3\n"),
        Row("recursion, closures, nonlocal", "def outer():\n    n = 0\n    def inc():\n        nonlocal n\n        n += 1\n"
            "        return n if n >= 3 else inc()\n    return inc()\nprint(outer())\n", stdout="3\n"),
        Row("match, walrus, f-strings", "point = {'x': 1, 'y': [2, 3]}\nmatch point:\n    case {'x': x, 'y': [a, *rest]} if "
            "(s := x + a) > 2:\n        print(f'{s=} {rest!r:>5}')\n", stdout="s=3   [3]\n"),
        Row("metaclasses, descriptors, decorators with state",
            "class M(type):\n    def __new__(m, n, b, d):\n        d['tag'] = n.lower()\n        return super().__new__(m, n, b, d)\n"
            "class D:\n    def __get__(self, o, t): return t.tag\nclass Thing(metaclass=M):\n    d = D()\nprint(Thing().d)\n",
            stdout="thing\n"),
        Row("generators and exceptions groups", "def g():\n    try:\n        yield 1\n    finally:\n        print('closed')\n"
            "it = g(); next(it); it.close()\n", stdout="closed\n"),
        Row("exec and eval use the same names", "x = 1\nexec('x += 1')\nprint(eval('x'), globals() is locals())\n",
            stdout="2 True\n"),
        Row("weak references, garbage collection and __del__", "import gc\nclass A:\n    def __del__(self): print('del')\n"
            "a = A(); a.me = a\ndel a\ngc.collect()\nprint('end')\n", stdout="del\nend\n"),
    ],
    "async": [
        Row("asyncio.run", "import asyncio\nasync def main():\n    await asyncio.sleep(0)\n    return 5\nprint(asyncio.run(main()))\n",
            stdout="5\n"),
        Row("top-level await, for and with", "import asyncio, contextlib\n@contextlib.asynccontextmanager\nasync def c():\n"
            "    yield 'c'\nasync def g():\n    for i in range(2):\n        yield i\nasync with c() as x:\n    print(x)\n"
            "async for i in g():\n    print(i)\nprint(await asyncio.wait_for(asyncio.sleep(0, 'w'), 5))\n",
            stdout="c\n0\n1\nw\n"),
        Row("the value of an awaited last expression", "import asyncio\nawait asyncio.sleep(0, result='v')\n", value="'v'"),
        Row("asyncio.run after top-level code that made no loop", "import asyncio\nprint(asyncio.run(asyncio.sleep(0, 1)))\n"
            "print(asyncio.run(asyncio.sleep(0, 2)))\n", stdout="1\n2\n"),
        Row("a runner", "import asyncio\nloop = asyncio.new_event_loop()\nprint(loop.run_until_complete(asyncio.sleep(0, 3)))\n"
            "loop.close()\n", stdout="3\n"),
        Row("subprocesses in a loop", "import asyncio\nasync def main():\n    p = await asyncio.create_subprocess_exec('echo', "
            "'sub', stdout=asyncio.subprocess.PIPE)\n    print((await p.communicate())[0])\nasyncio.run(main())\n",
            stdout="b'sub\\n'\n"),
        Row("threads beside awaits", "import asyncio\nprint(await asyncio.to_thread(lambda: 'thread'))\n", stdout="thread\n"),
    ],
    "main-thread": [
        Row("the program runs in the main thread", "import threading\nt = threading.current_thread()\n"
            "print(t is threading.main_thread(), t.name, threading.active_count())\n", stdout="True MainThread 1\n"),
        Row("an alarm interrupts a loop", ALARM, stdout="late True\n"),
        Row("the default handlers are Python's", "import signal\nprint(signal.getsignal(signal.SIGINT) is "
            "signal.default_int_handler, signal.getsignal(signal.SIGTERM) is signal.SIG_DFL, "
            "signal.getsignal(signal.SIGPIPE) is signal.SIG_IGN)\n", stdout="True True True\n"),
        Row("no signal is blocked", "import signal\nprint(signal.pthread_sigmask(signal.SIG_BLOCK, []))\n", stdout="set()\n"),
        Row("raise_signal reaches the program's handler", "import signal\nsignal.signal(signal.SIGUSR1, lambda *a: "
            "print('usr1'))\nsignal.raise_signal(signal.SIGUSR1)\n", stdout="usr1\n"),
        Row("non-daemon threads finish", "import threading, time\ndef f():\n    time.sleep(0.3)\n    print('thread end')\n"
            "threading.Thread(target=f).start()\nprint('main end')\n", stdout="main end\nthread end\n"),
        Row("atexit handlers run last, in reverse", "import atexit\natexit.register(print, 'a')\natexit.register(print, 'b')\n"
            "print('end')\n", stdout="end\nb\na\n"),
    ],
    "multiprocessing": [
        Row("pools by fork and spawn, and an executor", POOLS, within=20,
            stdout="fork [0, 1, 8, 27]\nspawn [0, 1, 8, 27]\n36\n"),
        Row("queue, lock and value under spawn", QUEUE, within=20, stdout="[True, True]\n10 [0, 0]\n"),
        Row("shared memory", SHARED, within=20, stdout="42\n", stderr=""),
        Row("semaphores", "import multiprocessing as mp\ns = mp.Semaphore(2)\nprint(s.acquire(), s.acquire(), "
            "s.acquire(block=False))\n", stdout="True True False\n"),
        Row("a fork that falls off the end sends no second result",
            "import os\nprint('before')\npid = os.fork()\nif pid:\n    os.waitpid(pid, 0)\n    print('parent')\n",
            stdout="before\nparent\n"),
        Row("a forked child that raises", "import os, sys\nif os.fork() == 0:\n    raise ValueError('child')\n"
            "print(os.waitstatus_to_exitcode(os.wait()[1]))\n", stdout="1\n", stderr_has="ValueError: child"),
        Row("buffered text of the parent is not written twice", "import os, sys\nsys.stdout.write('once ')\n"
            "pid = os.fork()\nif pid == 0:\n    os._exit(0)\nos.wait()\nprint('end')\n", stdout="once end\n"),
        Row("a loopback server", LOOPBACK, stdout="hi /x\n"),
    ],
    "thread-limits": [
        Row("a hundred threads", "import threading, time\nts = [threading.Thread(target=time.sleep, args=(0.05,)) for _ in "
            "range(100)]\n[t.start() for t in ts]\n[t.join() for t in ts]\nprint(len(ts))\n", stdout="100\n", stderr=""),
        Row("numpy with all its threads", "import numpy as np\na = np.arange(10000.0).reshape(100, 100)\n"
            "print((a @ a.T).shape, int(np.linalg.norm(np.eye(9)) ** 2 + 0.5))\n", stdout="(100, 100) 9\n", stderr=""),
        Row("a pool as wide as the machine", "import os\nfrom concurrent.futures import ThreadPoolExecutor as E\n"
            "with E((os.cpu_count() or 1) + 40) as e:\n    print(len(list(e.map(str, range(500)))))\n", stdout="500\n",
            stderr=""),
    ],
}

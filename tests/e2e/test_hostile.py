"""Programs that try to get out, through the real server. Each row must come back as a refusal seen by the program."""

import os
import pathlib
import socket
import threading
import unittest

from harness import connection, program
from harness.table import Row

SECRET = "a host secret " + "7" * 12

# Each prints what it could do; nothing of it may be on the list of what leaks.
ROWS = [
    Row("the user is not root, and has no capabilities",
        "import os\ns = open('/proc/self/status').read()\nprint(os.getuid() != 0, os.geteuid() != 0, "
        "[l.split()[1] for l in s.splitlines() if l.startswith(('CapEff', 'CapPrm', 'CapBnd'))], 'NoNewPrivs:\\t1' in s)\n",
        stdout="True True ['0000000000000000', '0000000000000000', '0000000000000000'] True\n"),
    Row("only the sandbox's own processes are seen",
        "import os\npids = [p for p in os.listdir('/proc') if p.isdigit()]\nprint(len(pids) < 10, os.getpid() < 100)\n",
        stdout="True True\n"),
    Row("pid 1 cannot be looked at or stopped",
        "import os\nfor what in (lambda: open('/proc/1/mem', 'rb'), lambda: os.readlink('/proc/1/root'), lambda: os.kill(1, 9)):\n"
        "    try:\n        what(); print('done')\n    except OSError as e:\n        print('refused')\n"
        "open('/proc/1/environ', 'rb').read() if os.access('/proc/1/environ', os.R_OK) else None\n",
        stdout_has="refused"),
    Row("the root is read-only",
        "import os\nleft = []\nfor d in ('/', '/usr', '/etc', '/opt', '/env', '/usr/bin', '/proc/sys/kernel', '/dev'):\n"
        "    try:\n        open(d + '/prims_probe', 'w').close(); left.append(d)\n    except OSError: pass\nprint(left)\n",
        stdout="[]\n"),
    Row("nothing of the host's home and state",
        "import os\ndef names(d):\n    try:\n        return [d + '/' + n for n in os.listdir(d)]\n    except OSError:\n        return []\n"
        "seen = [n for d in ('/root', '/home', '/var/lib', '/srv', '/boot', '/media') for n in names(d)]\n"
        "print([n for n in seen if n not in ('/sandbox/home', '/root/.pyenv')])\n", stdout="[]\n"),
    Row("no namespace can be made or joined",
        "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        "print([libc.unshare(f) for f in (0x10000000, 0x20000, 0x40000000)], libc.mount(b'none', b'/tmp', b'tmpfs', 0, None))\n",
        stdout="[-1, -1, -1] -1\n"),
    Row("dangerous system calls are not there",
        "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        "print([libc.syscall(n, 0, 0, 0, 0, 0) for n in (101, 298, 321, 425, 250, 165, 155, 246, 175, 304)])\n",
        stdout="[-1, -1, -1, -1, -1, -1, -1, -1, -1, -1]\n"),
    Row("raw, packet and other sockets are refused",
        "import socket\nout = []\nfor family, kind in ((socket.AF_PACKET, socket.SOCK_RAW), (socket.AF_INET, socket.SOCK_RAW), "
        "(40, socket.SOCK_STREAM), (38, socket.SOCK_SEQPACKET), (socket.AF_NETLINK, socket.SOCK_RAW)):\n"
        "    try:\n        s = socket.socket(family, kind, 12 if family == socket.AF_NETLINK else 0); out.append(family)\n"
        "    except OSError: pass\nprint(out)\n", stdout="[]\n"),
    Row("descriptors of the server are closed",
        "import os\nfds = sorted(int(f) for f in os.listdir('/proc/self/fd'))\n"
        "print([os.readlink(f'/proc/self/fd/{f}') for f in fds if f > 2 and os.path.exists(f'/proc/self/fd/{f}') and "
        "not os.readlink(f'/proc/self/fd/{f}').startswith(('socket:', '/proc/', 'pipe:'))])\n", stdout="[]\n"),
    Row("the environment holds nothing of the server's",
        "import os\nprint([k for k in os.environ if 'PRIMS' in k.upper() or 'SECRET' in k.upper() or 'PROXY' in k.upper()])\n",
        stdout="[]\n"),
    Row("devices are the harmless few",
        "import os\nprint([d for d in os.listdir('/dev') if d not in ('null', 'zero', 'full', 'random', 'urandom', 'shm', 'fd', "
        "'stdin', 'stdout', 'stderr', 'tty', 'ptmx', 'pts', 'mqueue')])\n", stdout="[]\n"),
    Row("a set-user-id copy gains nothing",
        "import os, shutil, subprocess\nshutil.copy('/bin/sh', 'sh')\nos.chmod('sh', 0o4755)\n"
        "print(subprocess.run(['./sh', '-p', '-c', 'id -u'], capture_output=True, text=True).stdout.strip() != '0')\n",
        stdout="True\n"),
    Row("symbolic links in output/ are not followed",
        "import os\nos.symlink('/etc/passwd', 'output/p')\nos.symlink('/etc', 'output/d')\n", artifacts=[]),
    Row("a fifo in output/ does not stop the server", "import os\nos.mkfifo('output/f')\nopen('output/a', 'w').write('x')\n",
        within=10, artifacts=["a"]),
    Row("deep folders and odd names in output/",
        "import os\np = 'output'\nfor i in range(60):\n    p += '/d'\n    os.mkdir(p)\nopen('output/a\\nb', 'w').close()\n"
        "open(b'output/\\xff', 'w').close()\n", within=10, check=lambda a: None),
    Row("ptrace of a child's parent is refused",
        "import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\nprint(libc.ptrace(16, os.getppid(), 0, 0))\n", stdout="-1\n"),
]


class Hostile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = cls.enterClassContext(program.Server(env={"MY_SECRET": SECRET, "AWS_SECRET_ACCESS_KEY": SECRET}))

    def test_rows(self):
        with connection.connect(self.server, "http", "modern") as client:
            for row in ROWS:
                with self.subTest(row.name):
                    row.run(client)

    def test_host_files_are_out_of_reach(self):
        with connection.connect(self.server, "http", "modern") as client:
            folder = program.scratch()
            (folder / "secret").write_text(SECRET)
            paths = [str(folder / "secret"), str(pathlib.Path.home() / ".ssh"), str(program.shared_state()), program.PRIMS]
            answer = client.call(f"import os\nprint([p for p in {paths!r} if os.path.exists(p)])\n")
            self.assertEqual(answer.stdout, "[]\n", answer)

    def test_the_hosts_loopback_is_out_of_reach(self):
        asked = threading.Event()
        with socket.create_server(("127.0.0.1", 0)) as canary, connection.connect(self.server, "http", "modern") as client:
            canary.settimeout(30)
            threading.Thread(target=lambda: canary.accept() and asked.set(), daemon=True).start()
            ports = [canary.getsockname()[1], self.server.port]
            answer = client.call("import socket\nout = []\nfor port in %r:\n    try:\n"
                                 "        socket.create_connection(('127.0.0.1', port), 2); out.append(port)\n"
                                 "    except OSError: pass\nprint(out)\n" % ports)
            self.assertEqual(answer.stdout, "[]\n", answer)
            self.assertFalse(asked.is_set())

    def test_the_private_descriptor_takes_no_orders(self):
        """Whatever a program writes to its inherited descriptors, the result stays its own and the server goes on."""
        code = ("import os\nprint('mine')\nfor fd in range(3, 64):\n    try:\n        for junk in (b'\\xff' * 4096, b'\\x00' * 64, "
                "b'{\"status\": \"ok\"}\\n' * 99):\n            os.write(fd, junk)\n    except OSError: pass\n")
        with connection.connect(self.server, "http", "modern") as client:
            answer = client.call(code, timeout=20)
            self.assertTrue(answer.status, answer)
            self.assertEqual(answer.stdout, "mine\n")
            self.assertEqual(client.call("print('next')").stdout, "next\n")

    def test_two_runs_do_not_see_each_other(self):
        with connection.connect(self.server, "http", "modern") as client:
            one = client.start("import os, time\nopen('/tmp/here', 'w').close()\nopen('here', 'w').close()\nprint('on')\ntime.sleep(4)\n",
                               token="one")
            one.progress.get(timeout=20)
            answer = client.call("import os\nprint(os.path.exists('/tmp/here'), os.path.exists('here'), "
                                 "sum(b'sleep' in open(f'/proc/{p}/cmdline', 'rb').read() for p in os.listdir('/proc') if p.isdigit()))\n")
            self.assertEqual(answer.stdout, "False False 0\n", answer)
            self.assertEqual(one.answer().status, "ok")

    def test_files_written_as_root_belong_to_nobody_special(self):
        if os.getuid() != 0:
            self.skipTest("needs root")
        with connection.connect(self.server, "http", "modern") as client:
            call = client.start("import time\nopen('owned', 'w').close()\nprint('on')\ntime.sleep(3)\n", token="o")
            call.progress.get(timeout=20)
            owners = {path.stat().st_uid for path in program.shared_state().rglob("owned")}
            self.assertTrue(owners)
            self.assertNotIn(0, owners)
            call.answer()


if __name__ == "__main__":
    unittest.main()

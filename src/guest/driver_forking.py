"""Stands in for the native module `forking` in tests: forks on request, without a sandbox.

A request is one message with the five descriptors of the fork. The messages back are "waiting" once, when it begins to wait, and
"forked PID" and "ended PID STATUS" for each fork.
"""
import os
import select
from _socket import CMSG_LEN, SCM_RIGHTS, SOL_SOCKET, socket

FDS = 5


def become_fork(host, fds):
    far = [os.dup(fd) for fd in fds]  # above all the numbers that they go to
    host.close()
    for number, fd in enumerate(far):
        os.dup2(fd, number)
    os.closerange(FDS, 200)


def received_fds(ancillary):
    data = ancillary[0][2]
    return [int.from_bytes(data[at:at + 4], "little") for at in range(0, 4 * FDS, 4)]


def rest():
    pass


def wait(socket_fd, spec_fd):
    host, ended = socket(fileno=socket_fd), {}
    host.send(b"waiting")
    while True:
        for ready in select.select([host] + list(ended), [], [])[0]:
            if ready is not host:
                status = os.waitpid(ended[ready], 0)[1]
                host.send(b"ended %d %d\n" % (ended.pop(ready), status))
                os.close(ready)
                continue
            message, ancillary = host.recvmsg(64, CMSG_LEN(4 * FDS))[:2]
            if not message:
                os._exit(0)
            fds = received_fds(ancillary)
            pid = os.fork()
            if not pid:
                return become_fork(host, fds)
            for fd in fds:
                os.close(fd)
            ended[os.pidfd_open(pid)] = pid
            host.send(b"forked %d\n" % pid)

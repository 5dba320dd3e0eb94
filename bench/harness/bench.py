"""One run of the benchmarks: what rows ask for."""

import time

from . import messages, native, paths
from .program import Program
from .results import Row

REGISTRY = {}
WARM_S = 10


def row(name, title):
    """Declares a row: a function of the run and the row that it fills."""

    def declare(function):
        REGISTRY[name] = (title, function)
        return function

    return declare


def machine_use(seconds=0.5):
    """Which part of the cores is busy while this program waits."""

    def read():
        with open("/proc/stat", encoding="ascii") as file:
            fields = [int(field) for field in file.readline().split()[1:9]]
        return sum(fields), fields[3] + fields[4]

    total, idle = read()
    time.sleep(seconds)
    total_now, idle_now = read()
    return 1 - (idle_now - idle) / max(1, total_now - total)


class Run:
    def __init__(self, prims, flags, quick, table):
        self.program = Program(prims, flags)
        self.quick = quick
        self.table = table
        self.rows = []
        self._server = None

    def count(self, full, quick):
        return quick if self.quick else full

    def execute(self, name):
        title, function = REGISTRY[name]
        made = Row(name, title, self.table)
        self.rows.append(made)
        others = machine_use()
        if others > 0.1:
            made.note(
                f"this machine is busy ({others:.0%} of its cores before the row began): the figures say little"
            )
        try:
            function(self, made)
        except native.Unavailable as missing:
            made.note(f"skipped: {missing}")
        except native.Failed as failure:
            made.note(f"FAILED: {failure}")

    def server(self):
        """The server that rows share; warm."""
        if self._server is None:
            self._server = self.own_server()
        return self._server

    def own_server(self, *flags):
        """Another one, with flags of its own; the caller ends it."""
        server = self.program.serve(*flags)
        self.warm(server, "print('warm')")
        return server

    @staticmethod
    def warm(server, code, **arguments):
        """Calls until they no longer get quicker: what is made in the background after the first use is there then."""
        code = code.replace(messages.UNIQUE, "10000000")
        taken = []
        end = time.monotonic() + WARM_S
        while time.monotonic() < end:
            began = time.monotonic()
            server.run(code, **arguments)
            taken.append(time.monotonic() - began)
            steady = len(taken) > 5 and max(taken[-5:]) < 1.5 * min(taken)
            if steady and (min(taken) < taken[0] / 3 or time.monotonic() > end - WARM_S / 2):
                return
            time.sleep(0.05)

    def close(self):
        if self._server is not None:
            self._server.stop()

    # Measurements of ours.

    def http(self, label, server, body, expect, name, clients=1, session=None):
        request = messages.http_file(name, body, server.port, session)
        options = {"port": server.port, "request": request, "expect": expect, "clients": clients}
        return native.measurement(label, "probe", "http", **options)

    @staticmethod
    def in_workspaces(server, code, count, name):
        """A file of requests, each in a session of its own."""
        bodies = messages.run_code(code, era="legacy")
        texts = [messages.http_bytes(bodies, server.port, server.open_session()) for _ in range(count)]
        return messages.requests_file(name, texts)

    def stdio(self, label, program, body, expect, name):
        lines = messages.lines_file("discover", [messages.message("server/discover", request_id=1)])
        request = messages.line_file(name, body)
        options = {"lines": lines, "request": request, "expect": expect}
        return native.measurement(label, "probe", "stdio", program=program, **options)

    # Filling rows.

    def paced(self, row, measurements, bars=None, count=None, rate=20, warm_up=None, ready=native.READY_S):
        """Figures of measurements that alternate at a fixed rate; the first is ours."""
        count = count or self.count(400, 20)
        warm_up = warm_up or self.count(20, 3)
        taken = native.paced(measurements, count, rate, warm_up, ready)
        schedule = {"count": count, "rate": rate, "warm_up": warm_up}
        return self.show(row, measurements, taken, [schedule] * len(measurements), bars)

    def alternate(self, row, measurements, counts, bars=None, warm_up=None, blocks=None):
        """The same back to back, in turns. `counts` are samples in all, for each measurement."""
        warm_up = self.count(5, 1) if warm_up is None else warm_up
        blocks = blocks or self.count(5, 1)
        taken = native.alternate(measurements, counts, warm_up, blocks)
        schedules = [{"count": max(1, count // blocks), "warm_up": warm_up} for count in counts]
        return self.show(row, measurements, taken, schedules, bars)

    @staticmethod
    def show(row, measurements, taken, schedules, bars=None):
        """The first figure is ours; the others are compared with it."""
        ours, figures = None, []
        for each, samples, schedule in zip(measurements, taken, schedules):
            role = "baseline" if ours else "ours"
            bar = (bars or {}).get(each.label)
            figure = row.samples(each.label, samples, role, [command_text(each, schedule)], ours, bar)
            ours = ours or figure
            figures.append(figure)
        return figures


def command_text(measurement, schedule):
    return paths.command_text(measurement.command(**schedule))

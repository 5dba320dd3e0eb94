#!/usr/bin/env python3
"""Runs the end-to-end tests against the program that PRIMS names.

    PRIMS=build/release/prims tests/e2e/run.py                    everything but the official clients
    tests/e2e/run.py test_clients                                 some modules
    tests/e2e/run.py -k "stream-order" test_rows                  tests and rows whose name holds a word
    tests/e2e/run.py --full                                       the long versions
    tests/e2e/run.py --templates off                              every program starts an interpreter of its own

Needs Python 3.11 with the packages of tests/clients/requirements-mcp.txt. Rows of a table count as tests of their own.
"""

import argparse
import os
import pathlib
import shutil
import signal
import sys
import tempfile
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
for name in ("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"):  # set, they hide faults
    os.environ.pop(name, None)
sys.dont_write_bytecode = True


class Result(unittest.TestResult):
    """Counts subtests like tests and prints each failure when it happens."""

    def __init__(self):
        super().__init__()
        self.passed = self.failed = 0
        self.subtests = self.verbose = False
        self.began = time.monotonic()

    def startTest(self, test):
        super().startTest(test)
        self.subtests = False
        self.began = time.monotonic()

    def _say(self, word, test, text=""):
        print(f"{word:5} {time.monotonic() - self.began:7.2f}s  {test}", flush=True)
        for line in text.splitlines()[-25:]:
            print(f"        {line[:1500]}", flush=True)

    def _fail(self, test, error):
        self.failed += 1
        self._say("FAIL", test, self._exc_info_to_string(error, test))

    def addSubTest(self, test, subtest, error):
        self.subtests = True
        if error is None:
            self.passed += 1
            if self.verbose:
                self._say("ok", subtest)
        else:
            self._fail(subtest, error)

    def addSuccess(self, test):
        if not self.subtests:
            self.passed += 1
        self._say("ok", test)

    def addFailure(self, test, error):
        self._fail(test, error)

    def addError(self, test, error):
        self._fail(test, error)

    def addSkip(self, test, reason):
        super().addSkip(test, reason)
        self._say("skip", test, reason)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("-k", dest="word", default="", help="only tests or rows whose name holds this")
    options.add_argument("--full", action="store_true", help="the long versions of some tests")
    options.add_argument("--templates", choices=("on", "off"), default="on", help="whether servers fork from templates")
    options.add_argument("-v", dest="verbose", action="store_true", help="a line for each row too")
    options.add_argument("modules", nargs="*")
    args = options.parse_args()
    os.environ["PRIMS_TEST_WORD"] = args.word
    os.environ["PRIMS_TEST_TEMPLATES"] = args.templates
    if args.full:
        os.environ["PRIMS_TEST_FULL"] = "1"
    scratch = tempfile.mkdtemp(prefix="prims-e2e-")
    os.environ["PRIMS_TEST_SCRATCH"] = scratch

    from harness import program, schema
    if not os.access(program.PRIMS, os.X_OK):
        sys.exit(f"no program at {program.PRIMS}: build it, or name another with PRIMS=")
    print(f"e2e: {program.PRIMS}, uid {os.getuid()}, templates {args.templates}, messages checked by {schema.source()}", flush=True)
    modules = args.modules or sorted(p.stem for p in HERE.glob("test_*.py") if p.stem != "test_clients")
    result = Result()
    result.verbose = args.verbose
    signal.signal(signal.SIGTERM, lambda *_: (program.end_all(), os._exit(143)))
    loader = unittest.TestLoader()
    try:
        for module in modules:
            suite = loader.loadTestsFromName(module)
            if args.word:
                suite = unittest.TestSuite(t for t in flat(suite) if args.word in t.id() or getattr(t, "by_row", False))
            suite.run(result)
    finally:
        program.end_all()
        shutil.rmtree(scratch, ignore_errors=True)
    skipped = f", {len(result.skipped)} skipped" if result.skipped else ""
    print(f"e2e: {result.passed} passed, {result.failed} failed{skipped}", flush=True)
    return 1 if result.failed or not result.passed else 0


def flat(suite):
    for test in suite:
        if isinstance(test, unittest.TestSuite):
            yield from flat(test)
        else:
            yield test


if __name__ == "__main__":
    sys.exit(main())

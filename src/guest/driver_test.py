"""Runs every test of the driver under the interpreters that are found: 3.9, 3.11, 3.13, and 3.14 where there is one.

PRIMS_TEST_PYTHONS (paths separated by colons) names others. Each is tested through a fresh virtual environment, as
it is used inside a sandbox. Arguments: names of tests, as unittest takes them ("ProtocolTest.test_hello"), or nothing.
"""
import glob
import os
import re
import subprocess
import sys
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor

import driver_harness
import driver_program_test
import driver_protocol_test
import driver_report_test
import driver_template_test

WANTED = ("3.9", "3.11", "3.13")
WELCOME = ("3.14",)


def installed():
    places = (os.path.expanduser("~/.pyenv/versions/3.*/bin/python3"), "/usr/bin/python3.*", "/usr/local/bin/python3.*")
    found = [path for place in places for path in sorted(glob.glob(place))]
    return [path for path in found if re.search(r"/python3(\.\d+)?$", path)]


def version_of(executable):
    asked = subprocess.run([executable, "-Ic", "import sys; print('%d.%d' % sys.version_info[:2])"],
                           stdout=subprocess.PIPE, text=True)
    return asked.stdout.strip()


def interpreters(executables):
    """{"3.11": executable}, one for each version that is supported."""
    versions = {}
    for executable in executables:
        version = version_of(executable)
        if version and tuple(map(int, version.split("."))) >= (3, 9):
            versions.setdefault(version, executable)
    return versions


def suite_for(version, python, templates, names):
    """Every test under a plainly started driver, in a fork of a template, and in one that expects its workspace."""
    suite = unittest.TestSuite()
    every = (("plain", None),) + tuple(templates.items())
    for module, ways in ((driver_protocol_test, every), (driver_program_test, every), (driver_report_test, every),
                         (driver_template_test, every[1:])):
        for name, case in sorted(vars(module).items()):
            if not isinstance(case, type) or not issubclass(case, driver_harness.Case) or not name.endswith("Test"):
                continue
            for way, forked in ways:
                bound = type("%s[%s %s]" % (name, version, way), (case,),
                             {"python": python, "version": tuple(map(int, version.split("."))), "template": forked})
                for test in unittest.defaultTestLoader.loadTestsFromTestCase(bound):
                    if not names or name in names or "%s.%s" % (name, test.id().rpartition(".")[2]) in names:
                        suite.addTest(test)
    return suite


def test_one(executable, names):
    """Under this one interpreter, in this process."""
    with tempfile.TemporaryDirectory(prefix="python-") as top:
        subprocess.run([executable, "-Im", "venv", "--without-pip", top], check=True)
        python = os.path.join(top, "bin", "python")
        templates = driver_template_test.templates_for(python)
        suite = suite_for(version_of(executable), python, templates, names)
        ran = unittest.TextTestRunner(verbosity=1).run(suite)
        for template in templates.values():
            template.close()
        return 0 if ran.wasSuccessful() and ran.testsRun else 1


def test_all(executables, names):
    """Each interpreter in a process of its own, two at a time."""
    def run(executable):
        environment = dict(os.environ, PRIMS_TEST_PYTHONS=executable)
        return subprocess.run([sys.executable, "-B", __file__] + names, env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, text=True)

    failed = False
    with ThreadPoolExecutor(2) as pool:
        for executable, done in zip(executables, pool.map(run, executables)):
            print("driver under Python %s (%s): %s" % (version_of(executable), executable, done.stdout.strip()))
            failed |= done.returncode != 0
    return 1 if failed else 0


def main():
    # Set, some of these would hide faults: what the driver needs it is given by name.
    for name in [n for n in os.environ if n.startswith("PYTHON")]:
        del os.environ[name]
    named = os.environ.get("PRIMS_TEST_PYTHONS")
    if named and ":" not in named:
        return test_one(named, sys.argv[1:])
    versions = interpreters(named.split(":") if named else installed())
    if not named:
        for wanted in WANTED:
            if wanted not in versions:
                print("SKIPPED: no Python %s on this machine" % wanted)
        versions = {version: path for version, path in versions.items() if version in WANTED + WELCOME}
    return test_all(list(versions.values()), sys.argv[1:]) if versions else 1


if __name__ == "__main__":
    sys.exit(main())

"""Table-driven tests: one row is one program and what its result must be.

    Row("a name", "print(1)", stdout="1\\n")

Rows expect status "ok" with exit code 0 and a plain result unless they say otherwise. With `either`, one of the alternatives
holds, and beside it `within`, `text_*`, `artifacts` and `check`.
"""

import os
import re

# Wall time as a client sees it, on a machine that does other things too; the server's own measure is taken as it is.
SLACK = float(os.environ.get("PRIMS_TEST_SLACK", "3"))


class Row:
    """Arguments of one run_code call and expectations. Unknown keys are a mistake of the test and raise."""

    KEYS = {"status", "stdout", "stdout_has", "stdout_lacks", "stdout_re", "stderr", "stderr_has", "stderr_lacks", "value",
            "value_has", "no_value", "exit_code", "signal", "is_error", "error", "frames", "traceback_has",
            "traceback_lacks", "text_has", "text_lacks", "within", "last_line", "evidence", "artifacts", "check", "either"}

    def __init__(self, name, code, arguments=None, **expect):
        unknown = set(expect) - self.KEYS
        if unknown:
            raise TypeError(f"{name}: unknown expectations {unknown}")
        self.name = name
        self.arguments = {"code": code} if code is not None else {}
        self.arguments.update(arguments or {})
        self.expect = expect

    def run(self, client):
        answer = client.call(**self.arguments)
        faults = list(self.faults(answer))
        if faults:
            raise AssertionError("; ".join(faults) + f"\n  arguments: {str(self.arguments)[:600]}\n  answer: {answer!r}")
        return answer

    def faults(self, answer):
        expect = self.expect
        if "either" in expect:
            wanted = [Row(self.name, "", **one) for one in expect["either"]]
            if not any(not list(row.faults(answer)) for row in wanted):
                yield "none of the alternatives holds"
            yield from self._rest(answer)
            return
        status = expect.get("status", "ok")
        if answer.status != status:
            yield f"status {answer.status!r}, expected {status!r}"
        yield from self._streams(answer)
        yield from self._ending(answer, status)
        yield from self._value(answer)
        yield from self._error(answer)
        yield from self._rest(answer)

    def _streams(self, answer):
        for stream in ("stdout", "stderr"):
            text = answer.data.get(stream)
            if not isinstance(text, str):
                yield f"{stream} is missing"
                continue
            if stream in self.expect and text != self.expect[stream]:
                yield f"{stream} is {text[:400]!r}, expected {self.expect[stream]!r}"
            for part in _listed(self.expect.get(stream + "_has")):
                if part not in text:
                    yield f"{stream} lacks {part!r}"
            for part in _listed(self.expect.get(stream + "_lacks")):
                if part in text:
                    yield f"{stream} has {part!r}"
            pattern = self.expect.get(stream + "_re")
            if pattern and not re.search(pattern, text, re.DOTALL):
                yield f"{stream} {text[:400]!r} does not match {pattern!r}"

    def _ending(self, answer, status):
        own_end = status in ("ok", "error")
        if own_end and "signal" not in self.expect:
            wanted = self.expect.get("exit_code", 0 if status == "ok" else 1)
            if answer.exit_code != wanted:
                yield f"exit_code {answer.exit_code!r}, expected {wanted!r}"
        if "signal" in self.expect and answer.signal != self.expect["signal"]:
            yield f"signal {answer.signal!r}, expected {self.expect['signal']!r}"
        if answer.is_error != self.expect.get("is_error", not own_end):
            yield f"isError is {answer.is_error}"
        if status != "ok" and not answer.message_text():
            yield "no message"

    def _value(self, answer):
        value = (answer.value or {}).get("text") if isinstance(answer.value, dict) else answer.value
        if "value" in self.expect and value != self.expect["value"]:
            yield f"value {value!r}, expected {self.expect['value']!r}"
        for part in _listed(self.expect.get("value_has")):
            if part not in (value or ""):
                yield f"value {value!r} lacks {part!r}"
        if self.expect.get("no_value") and value is not None:
            yield f"a value {value!r} where none is expected"

    def _error(self, answer):
        error = answer.data.get("error") or {}
        for key, wanted in (self.expect.get("error") or {}).items():
            seen = error.get(key)
            if key == "type" and seen:
                seen = seen.rpartition(".")[2]
            if seen != wanted:
                yield f"error.{key} is {error.get(key)!r}, expected {wanted!r}"
        if "frames" in self.expect:
            frames = [(frame["line"], frame["name"]) for frame in error.get("frames", [])]
            if frames != self.expect["frames"]:
                yield f"frames {frames}, expected {self.expect['frames']}"
        for part in _listed(self.expect.get("traceback_has")):
            if part not in error.get("traceback", ""):
                yield f"the traceback lacks {part!r}"
        for part in _listed(self.expect.get("traceback_lacks")):
            if part in error.get("traceback", ""):
                yield f"the traceback has {part!r}"

    def _rest(self, answer):
        for part in _listed(self.expect.get("text_has")):
            if part.lower() not in answer.text.lower():
                yield f"the text lacks {part!r}"
        for part in _listed(self.expect.get("text_lacks")):
            if part.lower() in answer.text.lower():
                yield f"the text has {part!r}"
        if "within" in self.expect:
            within = self.expect["within"]
            if answer.seconds > within * SLACK:
                yield f"took {answer.seconds:.2f} s, expected at most {within} with a slack of {SLACK}"
            if answer.status == "timeout" and answer.timings["run"] > within * 1000:
                yield f"ran for {answer.timings['run']} ms, expected at most {within} s"
        evidence = answer.evidence or {}
        if "last_line" in self.expect:
            line = evidence.get("last_line")
            line = line.get("line") if isinstance(line, dict) else line
            if line != self.expect["last_line"]:
                yield f"last_line {line!r}, expected {self.expect['last_line']!r}"
        for key in _listed(self.expect.get("evidence")):
            if key not in evidence:
                yield f"evidence lacks {key!r}: {evidence}"
        if "artifacts" in self.expect:
            names = sorted(artifact["relative_path"] for artifact in answer.artifacts or [])
            if names != sorted(self.expect["artifacts"]):
                yield f"artifacts {names}, expected {self.expect['artifacts']}"
        if "check" in self.expect:
            fault = self.expect["check"](answer)
            if fault:
                yield str(fault)


def _listed(value):
    return [] if value is None else [value] if isinstance(value, str) else value


def run_rows(test, rows, client):
    """Runs rows as subtests of a unittest.TestCase over one connection."""
    for row in rows:
        with test.subTest(row.name):
            row.run(client)

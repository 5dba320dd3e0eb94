"""Arguments are read as they were meant, or refused by name. Nothing is dropped."""

from harness.table import Row

REFUSED = {"status": "invalid_argument", "is_error": True, "stdout": ""}

KINDS = {
    "argument-forms": [
        Row("nulls are absent", "print(1)\n", {"requirements": None, "timeout": None, "stdin": None, "files": None, "session_id": None},
            stdout="1\n"),
        Row("empty lists are absent", "print(1)\n", {"requirements": [], "files": []}, stdout="1\n"),
        Row("a list as JSON text", "print(1)\n", {"requirements": "[]"}, stdout="1\n"),
        Row("a number as text", "print(1)\n", {"timeout": "20"}, stdout="1\n"),
        Row("a fraction as text", "print(1)\n", {"timeout": "2.5"}, stdout="1\n"),
        Row("zero seconds", "print(1)\n", {"timeout": 0}, **REFUSED, text_has="timeout"),
        Row("negative seconds", "print(1)\n", {"timeout": -3}, **REFUSED, text_has="timeout"),
        Row("a unit", "print(1)\n", {"timeout": "30s"}, **REFUSED, text_has=["timeout", "30s"]),
        Row("a boolean", "print(1)\n", {"timeout": True}, **REFUSED, text_has="timeout"),
        Row("more than the most", "print(1)\n", {"timeout": 10_000_000}, **REFUSED, text_has="timeout"),
        Row("broken JSON", "print(1)\n", {"requirements": "[\"a\""}, **REFUSED, text_has="requirements"),
        Row("a list with a number", "print(1)\n", {"requirements": [1]}, **REFUSED, text_has="requirements"),
        Row("an object", "print(1)\n", {"requirements": {"a": 1}}, **REFUSED, text_has="requirements"),
        Row("an unknown argument", "print(1)\n", {"langauge": "python"}, **REFUSED, text_has="langauge"),
        Row("an unknown argument that is null", "print(1)\n", {"nonsense": None},
            either=[REFUSED, {"status": "ok", "stdout": "1\n"}]),
        Row("files are not yet taken", "print(1)\n", {"files": [{"url": "http://example.com/a", "mountPath": "a"}]}, **REFUSED,
            text_has="files"),
        Row("sessions are not yet taken", "print(1)\n", {"session_id": "s_123"}, **REFUSED, text_has="session_id"),
        Row("code that is no text", None, {"code": 5}, **REFUSED, text_has="code"),
        Row("code that is missing", None, {"code": None}, **REFUSED, text_has="code"),
        Row("code that is too long", "x = '" + "a" * 20_100 + "'\n", **REFUSED, text_has=["20", "code"]),
        Row("just as long as allowed", "#" + "\u00e4" * 19_999, stdout=""),
        Row("stdin that is no text", "print(1)\n", {"stdin": 5},
            either=[REFUSED, {"status": "ok", "stdout": "1\n"}]),
    ],
}

"""Packages: the base environment, requirements, what happens when they cannot be had. These rows need the package index."""

from harness.table import Row

BLOCK = '''# /// script
# dependencies = ["pyfiglet==1.0.2"]
# ///
import pyfiglet
print(pyfiglet.__version__ if hasattr(pyfiglet, "__version__") else "there")
'''

MODEL = '''from sklearn.datasets import load_iris
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import train_test_split
x, y = load_iris(return_X_y=True)
a, b, c, d = train_test_split(x, y, random_state=0)
model = RandomForestClassifier(20, random_state=0, n_jobs=2).fit(a, c)
print(model.score(b, d) > 0.9)
'''

JOBLIB = '''from joblib import Parallel, delayed
def sq(x):
    return x * x
print(Parallel(n_jobs=2)(delayed(sq)(i) for i in range(5)))
'''

PLOT = '''import os
import matplotlib.pyplot as plt
os.makedirs('output', exist_ok=True)
plt.plot([1, 3, 2])
plt.savefig('output/line.png')
print(os.path.getsize('output/line.png') > 1000)
'''

KINDS = {
    "base-environment": [
        Row("pandas", "import pandas as pd\nprint(pd.DataFrame({'g': list('aab'), 'v': [1, 2, 3]}).groupby('g').v.sum().to_dict())\n",
            stdout="{'a': 3, 'b': 3}\n", stderr=""),
        Row("numpy", "import numpy as np\nprint(np.arange(6).reshape(2, 3).sum(axis=0).tolist())\n", stdout="[3, 5, 7]\n", stderr=""),
        Row("openpyxl through pandas", "import pandas as pd\npd.DataFrame({'a': [1]}).to_excel('t.xlsx', index=False)\n"
            "print(pd.read_excel('t.xlsx').a.tolist())\n", stdout="[1]\n", stderr=""),
        Row("a plot becomes an artifact", PLOT, stdout="True\n", stderr="", artifacts=["line.png"]),
        Row("requests is there, the network is not", "import requests\ntry:\n    requests.get('http://192.0.2.1/', timeout=5)\n"
            "except requests.RequestException as e:\n    print('closed')\n", stdout="closed\n", within=10),
    ],
    "first-use-noise": [
        Row("plotting says nothing of caches", "import matplotlib.pyplot as plt\nplt.figure()\n", stderr="", artifacts=[]),
        Row("files below HOME are no artifacts", "import pathlib\np = pathlib.Path.home() / '.config' / 'x'\np.mkdir(parents=True)\n"
            "(p / 'y').write_text('z')\n", stderr="", artifacts=[]),
        Row("numpy and pandas write nothing to stderr", "import numpy, pandas\nprint('ok')\n", stdout="ok\n", stderr="", artifacts=[]),
    ],
    "requirements": [
        Row("a pinned release", "import pyfiglet, importlib.metadata as m\nprint(m.version('pyfiglet'))\n",
            {"requirements": ["pyfiglet==1.0.2"]}, stdout="1.0.2\n"),
        Row("a script block in the code", BLOCK, stdout_has="\n"),
        Row("scikit-learn trains a model", MODEL, {"requirements": ["scikit-learn"]}, stdout="True\n"),
        Row("joblib with its processes", JOBLIB, {"requirements": ["joblib"]}, stdout="[0, 1, 4, 9, 16]\n"),
        Row("extras and markers", "import importlib.metadata as m\nprint(m.version('colorama') > '0')\n",
            {"requirements": ["colorama>=0.4 ; python_version >= '3.8'"]}, stdout="True\n"),
        Row("a version the user asks for wins over the base's", "import importlib.metadata as m\nprint(m.version('requests'))\n",
            {"requirements": ["requests==2.31.0"]}, stdout="2.31.0\n"),
        Row("spelling does not matter", "import pyfiglet\nprint('ok')\n", {"requirements": ["  PyFiglet == 1.0.2 "]}, stdout="ok\n"),
        Row("a C extension built from its sdist", "import importlib.metadata as m\nimport ed25519\nprint('built')\n",
            {"requirements": ["ed25519==1.5"]}, either=[{"status": "ok", "stdout": "built\n"}]),
    ],
    "requirement-names": [
        Row("standard modules are not looked for", "import re\nprint(re.escape('a'))\n", {"requirements": ["re", "pathlib"]},
            text_has="standard library", stdout="a\n"),
        Row("one standard module among real packages", "import asyncio, pyfiglet\nprint('ok')\n",
            {"requirements": ["asyncio", "pyfiglet==1.0.2"]}, text_has="asyncio", stdout="ok\n"),
        Row("a builtin module", "print(1)\n", {"requirements": ["sys"]}, text_has="standard library", stdout="1\n"),
    ],
    "preflight-restraint": [
        Row("an optional import falls back", "try:\n    import a_package_nobody_made as x\nexcept ImportError:\n    x = None\nprint(x)\n",
            stdout="None\n", stderr="", within=5),
        Row("a name in a comment and in a string", "# import torch\ntext = 'import tensorflow'\nprint(text)\n",
            stdout="import tensorflow\n", within=5),
        Row("an import that is never reached", "if False:\n    import another_package_nobody_made\nprint('ran')\n", stdout="ran\n", within=5),
    ],
    "resolution": [
        Row("a package that does not exist", "print('never')\n", {"requirements": ["prims-no-such-package-0001"]},
            status="dependency_error", text_has=["prims-no-such-package-0001"], stdout="", within=60),
        Row("a version that does not exist", "print('never')\n", {"requirements": ["pyfiglet==99.0"]}, status="dependency_error",
            text_has=["pyfiglet", "99.0"], stdout="", within=60),
        Row("two that exclude each other", "print('never')\n", {"requirements": ["pyfiglet==1.0.2", "pyfiglet==1.0.1"]},
            status="dependency_error", text_has="pyfiglet", stdout="", within=60),
    ],
    "requirement-forms": [
        Row("a repository", "print('never')\n", {"requirements": ["git+https://example.com/x.git"]}, status="dependency_error",
            text_has="git+https", within=15),
        Row("a file of the host", "print('never')\n", {"requirements": ["x @ file:///etc/passwd"]}, within=15,
            either=[{"status": "dependency_error", "is_error": True, "stdout": ""},
                    {"status": "invalid_argument", "is_error": True, "stdout": ""}]),
        Row("an option of the installer", "print('never')\n", {"requirements": ["--index-url=http://127.0.0.1:9/"]}, within=15,
            either=[{"status": "dependency_error", "is_error": True, "stdout": ""},
                    {"status": "invalid_argument", "is_error": True, "stdout": ""}]),
        Row("a path", "print('never')\n", {"requirements": ["/etc"]}, within=15,
            either=[{"status": "dependency_error", "is_error": True, "stdout": ""},
                    {"status": "invalid_argument", "is_error": True, "stdout": ""}]),
    ],
    "time-zones": [
        Row("named zones", "from zoneinfo import ZoneInfo\nfrom datetime import datetime\n"
            "print(datetime(2026, 1, 15, 9, tzinfo=ZoneInfo('Asia/Tokyo')).astimezone(ZoneInfo('Europe/London')).isoformat())\n",
            stdout="2026-01-15T00:00:00+00:00\n"),
        Row("a daylight saving change", "from zoneinfo import ZoneInfo\nfrom datetime import datetime, timedelta\n"
            "z = ZoneInfo('Europe/Berlin')\nprint([datetime(2026, m, 1, tzinfo=z).utcoffset().seconds // 3600 for m in (1, 7)])\n",
            stdout="[1, 2]\n"),
        Row("local time is UTC", "import time, datetime\nprint(time.tzname[0], time.timezone, datetime.datetime.now().astimezone()"
            ".utcoffset())\n", stdout="UTC 0 0:00:00\n"),
        Row("TZ set by the program", "import os, time\nos.environ['TZ'] = 'America/New_York'\ntime.tzset()\nprint(time.tzname)\n",
            stdout="('EST', 'EDT')\n"),
    ],
}

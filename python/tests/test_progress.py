import io

import numpy as np
import pytest

import serrate
from serrate import _progress

SLOW = "SELECT count(*) AS n FROM t AS a JOIN t AS b ON (a.x * 7 + b.x * 3) % 1009 < 500"


def slow(session, rows=6000):
    session.register("t", {"x": np.arange(rows)})
    return session.sql(SLOW).to_dict()["n"][0]


def test_the_function_receives_seconds_and_rows():
    told = []
    session = serrate.connect(progress=lambda *seen: told.append(seen), threads=1)
    rows = 3000
    while not told and rows < 100_000:
        rows *= 2
        slow(session, rows)
    seconds, read, total = told[-1]
    assert seconds >= 1 and 0 <= read <= 2 * rows and total in (None, 2 * rows)
    assert [s for s, _, _ in told] == sorted(s for s, _, _ in told)


def test_errors_of_the_function_stop_the_statement():
    def stop(seconds, rows, total):
        raise KeyboardInterrupt

    session = serrate.connect(progress=stop, threads=1)
    with pytest.raises(KeyboardInterrupt):
        slow(session, 200_000)


def test_short_statements_report_no_progress():
    told = []
    serrate.connect(progress=lambda *seen: told.append(seen)).sql("SELECT 1").to_dict()
    assert not told
    with pytest.raises(TypeError):
        serrate.connect(progress=3)


def test_a_terminal_shows_a_line_and_deletes_it(monkeypatch):
    class Screen(io.StringIO):
        def isatty(self):
            return True

    screen = Screen()
    monkeypatch.setattr("sys.stderr", screen)
    monkeypatch.delenv("SERRATE_PROGRESS", raising=False)
    bar = _progress.shown()
    bar.update(1.5, 10, 40)
    bar.close()
    assert screen.getvalue() == "\r\x1b[2K1.5 s, 10 of 40 rows read (25 %)\r\x1b[2K"
    monkeypatch.setenv("SERRATE_PROGRESS", "0")
    assert _progress.shown() is None
    monkeypatch.delenv("SERRATE_PROGRESS")
    monkeypatch.setattr("sys.stderr", io.StringIO())
    assert _progress.shown() is None


def test_a_notebook_shows_a_progress_bar(monkeypatch):
    import sys
    import types

    shown = []

    class Handle:
        def update(self, data, raw):
            shown.append(data)

    def display(data, raw, display_id):
        return Handle()

    module = types.ModuleType("IPython")
    module.get_ipython = lambda: types.SimpleNamespace(kernel=object())
    part = types.ModuleType("IPython.display")
    part.display = display
    monkeypatch.setitem(sys.modules, "IPython", module)
    monkeypatch.setitem(sys.modules, "IPython.display", part)
    bar = _progress.shown()
    bar.update(2, 10, 40)
    bar.close()
    assert '<progress value="10" max="40">' in shown[0]["text/html"] and shown[-1]["text/html"] == ""

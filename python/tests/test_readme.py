"""The Python sessions of the README and of the guide give the output that they show."""

import doctest
import os
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("page, least", [("python/README.md", 20), ("docs/guide/from-python.md", 6)])
def test_sessions_give_the_output_that_they_show(page, least, tmp_path, monkeypatch):
    # The sessions create temporary folders, here below the folder of the test.
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    here = os.getcwd()
    os.chdir(ROOT)
    try:
        failed, run = doctest.testfile(
            str(ROOT / page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS, globs={}
        )
    finally:
        os.chdir(here)
    assert failed == 0 and run > least

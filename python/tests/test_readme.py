"""The session of the README runs as it is printed."""

import doctest
import os
from pathlib import Path

README = Path(__file__).resolve().parents[1] / "README.md"


def test_session(tmp_path):
    here = os.getcwd()
    os.chdir(README.parents[1])
    try:
        failed, run = doctest.testfile(
            str(README), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS,
            globs={"folder": tmp_path},
        )
    finally:
        os.chdir(here)
    assert failed == 0 and run > 20

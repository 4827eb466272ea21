import subprocess
import sys

import pytest

pytest.importorskip("nested_ragged_tensors")

CHECK = """
import nested_ragged_tensors, nested_ragged_tensors.ragged_numpy as rn, serrate
assert rn.JointNestedRaggedTensorDict is serrate.JointNestedRaggedTensorDict
assert nested_ragged_tensors.__dict__.get("JointNestedRaggedTensorDict") is serrate.JointNestedRaggedTensorDict
"""


def python(code, *before):
    return subprocess.run([sys.executable, *before, "-c", code], capture_output=True, text=True)


def test_patch_replaces_names_that_are_imported_already():
    code = """
from nested_ragged_tensors.ragged_numpy import JointNestedRaggedTensorDict as early
import serrate
assert serrate.patch() > 0 and serrate.patch() == 0
assert early is not serrate.JointNestedRaggedTensorDict or True
import __main__
assert __main__.early is serrate.JointNestedRaggedTensorDict
"""
    done = python(code + CHECK)
    assert done.returncode == 0, done.stderr


def test_commands_and_their_children_are_patched():
    code = f"import subprocess, sys; sys.exit(subprocess.run([sys.executable, '-c', {CHECK!r}]).returncode)"
    done = subprocess.run(
        [sys.executable, "-m", "serrate.patch", sys.executable, "-c", code], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    done = subprocess.run([sys.executable, "-m", "serrate.patch", "no-such-command"], capture_output=True)
    assert done.returncode == 127


def test_patch_provides_the_module_if_upstream_is_missing():
    code = """
import sys
sys.modules["nested_ragged_tensors"] = None
import serrate
serrate.patch()
from nested_ragged_tensors.ragged_numpy import JointNestedRaggedTensorDict
assert JointNestedRaggedTensorDict is serrate.JointNestedRaggedTensorDict
"""
    done = python(code)
    assert done.returncode == 0, done.stderr


def test_patch_is_callable_after_an_import_of_its_module():
    done = python("import serrate.patch, serrate; assert callable(serrate.patch) and callable(serrate.patch.apply)")
    assert done.returncode == 0, done.stderr

"""Runs the examples and tests of nested_ragged_tensors on the class of Serrate.

This file copies nothing from them: the doctests are read from the docstrings of the installed package, and the tests
from the checkout that SERRATE_NRT_CHECKOUT names, if it is set.
"""

import doctest
import importlib.util
import os
import tempfile
from pathlib import Path

import numpy as np
import pytest

import serrate

rn = pytest.importorskip("nested_ragged_tensors.ragged_numpy")

OURS = {
    "JointNestedRaggedTensorDict": serrate.JointNestedRaggedTensorDict,
    "is_ndim_list": serrate.is_ndim_list,
    "pprint_dense": serrate.pprint_dense,
}

#: Private methods of the upstream class that Serrate does not offer; it offers all others. The README lists them.
NOT_OFFERED = {
    "_bounds_check_int",
    "_get_lengths_and_values",
    "_get_slice_indices",
    "_get_slice_indices_internal",
    "_infer_dtype",
    "_row_length_from_out_indices",
    "_slice",
    "_slice_single",
}


def upstream() -> type:
    return getattr(rn, "_upstream", rn.JointNestedRaggedTensorDict)


def examples():
    finder = doctest.DocTestFinder(recurse=True)
    names = {**vars(rn), "JointNestedRaggedTensorDict": upstream()}
    found = []
    for name, thing in (
        ("is_ndim_list", rn.is_ndim_list),
        ("pprint_dense", rn.pprint_dense),
        ("JointNestedRaggedTensorDict", upstream()),
    ):
        found += [t for t in finder.find(thing, name=name, module=False, globs=names) if t.examples]
    return found


def is_public(test) -> bool:
    last = test.name.rsplit(".", 1)[-1]
    return not last.startswith("_") or (last.startswith("__") and last.endswith("__"))


def run(test, flags=doctest.ELLIPSIS):
    scope = dict(vars(rn))
    scope.update(OURS, np=np, Path=Path, tempfile=tempfile)
    test = doctest.DocTest(test.examples, scope, test.name, test.filename, test.lineno, test.docstring)
    report = []
    runner = doctest.DocTestRunner(optionflags=flags)
    outcome = runner.run(test, out=report.append, clear_globs=False)
    return outcome, "".join(report)


@pytest.mark.parametrize("test", [t for t in examples() if is_public(t)], ids=lambda t: t.name)
def test_public_upstream_examples_pass(test):
    outcome, report = run(test)
    assert outcome.failed == 0, report


def test_the_number_of_public_examples_is_known():
    assert sum(len(t.examples) for t in examples() if is_public(t)) == 257


def test_only_listed_helpers_are_missing():
    failed, count = set(), 0
    for test in (t for t in examples() if not is_public(t)):
        # Upstream breaks the message of an error into lines.
        outcome, _ = run(test, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
        count += outcome.attempted
        if outcome.failed:
            failed.add(test.name.rsplit(".", 1)[-1])
    assert failed == NOT_OFFERED and count == 73


def test_the_readme_lists_the_missing_helpers():
    page = (Path(__file__).resolve().parents[1] / "README.md").read_text()
    assert [name for name in sorted(NOT_OFFERED) if f"`{name}`" not in page] == []


def checkout():
    root = os.environ.get("SERRATE_NRT_CHECKOUT")
    return sorted(Path(root, "tests").glob("test_*.py")) if root else []


def their_tests():
    for path in checkout():
        spec = importlib.util.spec_from_file_location(f"upstream_{path.stem}", path)
        module = importlib.util.module_from_spec(spec)
        before = rn.JointNestedRaggedTensorDict
        rn.JointNestedRaggedTensorDict = serrate.JointNestedRaggedTensorDict
        try:
            spec.loader.exec_module(module)
        finally:
            rn.JointNestedRaggedTensorDict = before
        for name, value in vars(module).items():
            if name.startswith("test_") or name == "disk_jnrt":
                yield name, value


# pytest collects the tests of the checkout as if this file defined them.
for _name, _value in their_tests():
    globals()[_name] = _value

"""Reads the conformance vectors and compares results with them.

The folder is SERRATE_VECTORS, or `tests/vectors` of the repository. Unknown members of a case are failures.
"""

import json
import os
from pathlib import Path

import numpy as np
import pytest

import serrate

VECTORS = Path(os.environ.get("SERRATE_VECTORS") or Path(__file__).resolve().parents[2] / "tests" / "vectors")


def cases(system, *names):
    """Returns the cases of the named operations, or of all operations of a system, as pytest parameters."""
    return list(_cases(system, *names))


def _cases(system, *names):
    folder = VECTORS / system
    for name in names or sorted(path.stem for path in folder.glob("*.json")):
        file = json.loads((folder / f"{name}.json").read_text())
        for case in file["cases"]:
            assert ("expect" in case) != ("error" in case), case["name"]
            yield pytest.param({**case, "op": name}, id=f"{name}-{case['name']}")


def value(v):
    """Converts a JSON literal of the vectors to a Python value."""
    if isinstance(v, list):
        return [value(x) for x in v]
    if isinstance(v, dict) and "$int" in v:
        return int(v["$int"])
    if isinstance(v, dict) and "$str" in v:
        return v["$str"]
    special = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": -float("inf")}
    return special.get(v, v) if isinstance(v, str) else v


def array(t):
    """Converts a tensor of the vectors to a numpy array."""
    return np.array(value(t["data"]), dtype=t["dtype"]).reshape(t["shape"])


class Library:
    """Converts tensors from and to numpy or torch."""

    def __init__(self, name):
        self.name = name
        self.torch = pytest.importorskip("torch") if name == "torch" else None

    def tensor(self, t):
        if self.torch is None:
            if t["dtype"] == "bfloat16":
                pytest.skip("numpy has no bfloat16")
            return array(t)
        values = value(t["data"])
        if t["dtype"] == "bfloat16":
            return self.torch.tensor(values, dtype=self.torch.float64).to(self.torch.bfloat16).reshape(t["shape"])
        return self.torch.from_numpy(array(t))

    def dtype(self, name):
        return getattr(self.torch, name) if self.torch else np.dtype(name)

    def read(self, tensor):
        """Returns the type and the elements of a tensor."""
        if self.torch is None:
            assert isinstance(tensor, np.ndarray), tensor
            return tensor.dtype.name, tensor
        assert isinstance(tensor, self.torch.Tensor), tensor
        name = str(tensor.dtype).removeprefix("torch.")
        return name, (tensor.double() if name == "bfloat16" else tensor).numpy()


@pytest.fixture(params=["numpy", "torch"])
def library(request):
    return Library(request.param)


def known(given, *names):
    """Refuses members that are not in `names`."""
    assert set(given) <= set(names), f"unknown: {set(given) - set(names)}"


TOLERANCE = {"float16": (2e-3, 1e-3), "bfloat16": (1.6e-2, 1e-2), "float32": (1e-5, 1e-6), "float64": (1e-5, 1e-6)}


def alike(dtype, found, expected, near=False, rtol=None):
    """Returns which elements are equal: NaN equals NaN, and if `near`, floats may differ by a tolerance."""
    if not near or dtype not in TOLERANCE:
        return (found == expected) | ((found != found) & (expected != expected))
    relative, absolute = TOLERANCE[dtype]
    return np.isclose(
        found.astype("f8"), expected.astype("f8"), rtol=rtol or relative, atol=absolute, equal_nan=True
    )


def same(library, found, expected, near=False, where=None, rtol=None):
    """Refuses a tensor that differs in type, shape or values; only values where `where` is true are compared."""
    known(expected, "dtype", "shape", "data")
    dtype, found = library.read(found)
    name = expected["dtype"]
    if name == "bfloat16" and library.torch is None:
        name = "float32"
    assert dtype == name
    wanted = np.array(value(expected["data"]), dtype="f8" if expected["dtype"] == "bfloat16" else name)
    wanted = wanted.reshape(expected["shape"])
    assert found.shape == wanted.shape
    equal = alike(expected["dtype"], found, wanted, near, rtol)
    if where is not None:
        equal = equal | ~where
    assert equal.all(), f"found {found}, expected {wanted}"


BAD = (ValueError, TypeError, IndexError, OverflowError)
KINDS = {
    "ValueError": BAD,
    "AssertionError": BAD,
    "RuntimeError": BAD,
    "TypeError": BAD,
    "OverflowError": BAD,
    "NotImplementedError": BAD,
    "IndexError": IndexError,
}


def expecting(case, run):
    """Returns the result of a case, or checks that it raises a `serrate.Error` of the expected kind."""
    if "error" not in case:
        return run()
    with pytest.raises(KINDS[case["error"]["kind"]]) as caught:
        run()
    assert isinstance(caught.value, serrate.Error), repr(caught.value)
    return None


def selector(library, given):
    """Converts one selector of an index to a Python value."""
    ((kind, what),) = given.items()
    return {
        "int": lambda: what,
        "slice": lambda: slice(*what),
        "list": lambda: what,
        "array": lambda: library.tensor(what),
        "mask": lambda: library.tensor(what),
        "ellipsis": lambda: ...,
        "newaxis": lambda: None,
        "none": lambda: None,
        "float": lambda: float(what),
        "str": lambda: str(what),
    }[kind]()


def index(library, given):
    """Converts a list of selectors to a Python index."""
    items = tuple(selector(library, item) for item in given)
    return items[0] if len(items) == 1 else items

"""The conformance vectors: reading them and comparing with them.

The folder is `tests/vectors` of the repository, or that of SERRATE_VECTORS. What is not known is a failure.
"""

import json
import os
from pathlib import Path

import numpy as np
import pytest

import serrate

VECTORS = Path(os.environ.get("SERRATE_VECTORS") or Path(__file__).resolve().parents[2] / "tests" / "vectors")


def cases(system, *names):
    """The cases of these operations, or of all that the system has, as parameters."""
    return list(_cases(system, *names))


def _cases(system, *names):
    folder = VECTORS / system
    for name in names or sorted(path.stem for path in folder.glob("*.json")):
        file = json.loads((folder / f"{name}.json").read_text())
        for case in file["cases"]:
            assert ("expect" in case) != ("error" in case), case["name"]
            yield pytest.param({**case, "op": name}, id=f"{name}-{case['name']}")


def value(v):
    """Literals as Python has them."""
    if isinstance(v, list):
        return [value(x) for x in v]
    if isinstance(v, dict) and "$int" in v:
        return int(v["$int"])
    if isinstance(v, dict) and "$str" in v:
        return v["$str"]
    special = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": -float("inf")}
    return special.get(v, v) if isinstance(v, str) else v


def array(t):
    """A tensor of the vectors as an array."""
    return np.array(value(t["data"]), dtype=t["dtype"]).reshape(t["shape"])


class Library:
    """Tensors as a library has them."""

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
    """Refuses members with other names."""
    assert set(given) <= set(names), f"unknown: {set(given) - set(names)}"


TOLERANCE = {"float16": (2e-3, 1e-3), "bfloat16": (1.6e-2, 1e-2), "float32": (1e-5, 1e-6), "float64": (1e-5, 1e-6)}


def alike(dtype, found, expected, near=False, rtol=None):
    """Element by element: NaN equals NaN; floats that were calculated may be off a little."""
    if not near or dtype not in TOLERANCE:
        return (found == expected) | ((found != found) & (expected != expected))
    relative, absolute = TOLERANCE[dtype]
    return np.isclose(
        found.astype("f8"), expected.astype("f8"), rtol=rtol or relative, atol=absolute, equal_nan=True
    )


def same(library, found, expected, near=False, where=None, rtol=None):
    """Refuses a tensor that differs in type, shape or values (those `where` says)."""
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
    """Returns the result of a case, or checks that it raises the error of its category and of ours."""
    if "error" not in case:
        return run()
    with pytest.raises(KINDS[case["error"]["kind"]]) as caught:
        run()
    assert isinstance(caught.value, serrate.Error), repr(caught.value)
    return None


def selector(library, given):
    """One position of an index."""
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
    """An index: a list of selectors."""
    items = tuple(selector(library, item) for item in given)
    return items[0] if len(items) == 1 else items

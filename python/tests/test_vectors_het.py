"""Runs the conformance vectors of HetTensor."""

import operator

import numpy as np
import pytest
from vectors import KINDS, cases, index, known, library, same, value  # noqa: F401

import serrate
from serrate import HetTensor

REDUCTIONS = ("sum", "mean", "prod", "amax", "amin")
OPERATORS = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "truediv": operator.truediv,
    "pow": operator.pow,
    "eq": operator.eq,
    "ne": operator.ne,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "min": lambda a, b: a.minimum(b),
    "minimum": lambda a, b: a.minimum(b),
    "max": lambda a, b: a.maximum(b),
    "maximum": lambda a, b: a.maximum(b),
}


def nested(library, given):
    if isinstance(given, dict):
        return library.tensor(given)
    return [nested(library, part) for part in given] if isinstance(given, list) else given


def het(library, given):
    return HetTensor(nested(library, given))


def run(library, case):
    op, given, args = case["op"], case["input"], case.get("args", {})
    if op == "cat":
        known(args, "dim")
        return HetTensor.cat([het(library, item) for item in given["items"]], args.get("dim", 0))
    x = het(library, given["het"])
    if op in ("construct", "to_dense", "unbind"):
        known(args)
        return {"construct": lambda: x, "to_dense": x.to_dense, "unbind": lambda: x}[op]()
    if op == "getitem":
        known(args, "index")
        return x[index(library, args["index"])]
    if op in ("unsqueeze", "squeeze"):
        return getattr(x, op)(args["dim"])
    if op.startswith("reduce_"):
        known(args, "dim")
        assert op.removeprefix("reduce_") in REDUCTIONS
        return getattr(x, op.removeprefix("reduce_"))(dim=args.get("dim"))
    if op == "unary":
        return x.__neg__() if args["op"] == "neg" else getattr(x, args["op"])()
    assert op == "elementwise"
    known(args, "op", "reverse")
    ((kind, what),) = given["other"].items()
    other = {
        "scalar": lambda: value(what),
        "tensor": lambda: library.tensor(what),
        "het": lambda: het(library, what),
    }[kind]()
    f = OPERATORS[args["op"]]
    return f(other, x) if args.get("reverse") else f(x, other)


def cells(library, found):
    """Returns the name of the element type, and a dictionary from coordinates to values."""
    x = found if isinstance(found, HetTensor) else HetTensor(found)
    if x.ndim == 0:
        dtype, only = library.read(x.to_dense())
        return dtype, {(): only.item()}
    at, values = x.to_coo()
    dtype, values = library.read(values)
    return dtype, dict(zip(map(tuple, library.read(at)[1].T.tolist()), values.tolist()))


def near(op, a, b):
    rtol = {"reduce_prod": 1e-4, "reduce_sum": 1e-5, "reduce_mean": 1e-5, "elementwise": 1e-5, "unary": 1e-5}.get(op, 0)
    return a == b or (a != a and b != b) or abs(a - b) <= (1e-6 if rtol else 0) + rtol * abs(b)


def without_trailing(nest):
    if not isinstance(nest, list):
        return nest
    nest = [without_trailing(part) for part in nest]
    while nest and nest[-1] == []:
        nest.pop()
    return nest


def same_nested(op, a, b):
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same_nested(op, x, y) for x, y in zip(a, b))
    return not isinstance(a, list) and not isinstance(b, list) and near(op, a, b)


def plain(nest):
    if isinstance(nest, list):
        return [plain(part) for part in nest]
    return nest.tolist() if hasattr(nest, "tolist") else nest


def check(library, case, found):
    op, expect = case["op"], case["expect"]
    if op == "to_dense":
        return same(library, found, expect.get("tensor", expect))
    if op == "unbind":
        known(expect, "dtype", "ragged")
        assert HetTensor(found.unbind()).equals(found)
        dtype, _ = cells(library, found)
        assert dtype == expect["dtype"]
        unbound = plain(found.unbind())
        # HetTensor keeps empty lists after the last value.
        assert same_nested(op, unbound, value(expect["ragged"])) or same_nested(
            op, without_trailing(unbound), without_trailing(value(expect["ragged"]))
        )
        return None
    dtype, have = cells(library, found)
    if expect["kind"] == "tensor":
        wanted = expect["tensor"]
        if not isinstance(found, HetTensor) or found.is_dense:
            dense = found.to_dense() if isinstance(found, HetTensor) else found
            if dtype == wanted["dtype"] and list(dense.shape) == wanted["shape"]:
                rtol = 1e-4 if op == "reduce_prod" else None
                return same(library, dense, wanted, near=op.startswith(("reduce", "element", "unary")), rtol=rtol)
        values = np.array(value(wanted["data"])).reshape(wanted["shape"])
        want = {tuple(map(int, at)): v.item() for at, v in np.ndenumerate(values)}
        expected_type = wanted["dtype"]
    else:
        known(expect, "kind", "dim_type", "shape", "max_shape", "dtype", "coords", "values", "ragged")
        want = dict(zip(map(tuple, expect["coords"]), value(expect["values"])))
        expected_type = expect["dtype"]
    if op == "reduce_mean" and "int" in expected_type and dtype == "float64":
        # HetTensor does not truncate means of integers.
        assert {at: np.floor(v) for at, v in have.items()} == want
        return None
    assert dtype == expected_type
    assert set(have) == set(want) and all(near(op, have[at], want[at]) for at in want), f"{have}, not {want}"
    assert isinstance(found, HetTensor), f"found {found}, expected {expect}"
    longest = [max((at[d] for at in have), default=-1) + 1 for d in range(found.ndim)]
    if any(n > m for n, m in zip(found.max_shape, longest)):
        return None  # HetTensor keeps empty lists after the last value.
    assert expect["kind"] == "het"
    if "dim_type" in expect:
        assert list(found.dim_type) == expect["dim_type"]
        assert list(found.shape) == expect["shape"] and list(found.max_shape) == expect["max_shape"]
    if "ragged" in expect:
        assert same_nested(op, plain(found.unbind()), value(expect["ragged"]))
    return None


def answered(library, case, found):
    """Checks a result that the original library refuses: missing leading axes, or a negative dim."""
    x = het(library, case["input"]["het"])
    if case["op"].startswith("reduce_"):
        dim = case["args"]["dim"]
        again = getattr(x, case["op"].removeprefix("reduce_"))(dim=dim + x.ndim)
        assert dim < 0
    else:
        assert case["op"] == "elementwise"
        other = library.tensor(case["input"]["other"]["tensor"])
        other = other.reshape((1,) * (x.ndim - other.ndim) + tuple(other.shape))
        again = OPERATORS[case["args"]["op"]](x, other)
    return cells(library, again) == cells(library, found)


@pytest.mark.parametrize("case", cases("hettensor"))
def test_hettensor(case, library):  # noqa: F811
    if "error" not in case:
        return check(library, case, run(library, case))
    try:
        found = run(library, case)
    except serrate.Error as e:
        assert isinstance(e, KINDS[case["error"]["kind"]])
        return None
    assert answered(library, case, found), f"no error, but {found}"
    return None

"""Runs the conformance vectors of nested_ragged_tensors on JointNestedRaggedTensorDict."""

import json

import numpy as np
import pytest
from vectors import VECTORS, array, value

from serrate import JointNestedRaggedTensorDict as J
from serrate import is_ndim_list


def cases(*names):
    return list(_cases(*names))


def _cases(*names):
    for name in names:
        for case in json.loads((VECTORS / "nrt" / f"{name}.json").read_text())["cases"]:
            yield pytest.param(case, id=f"{name}-{case['name']}")


def joint(given):
    schema = given.get("schema")
    schema = {k: np.dtype(d) for k, d in schema.items()} if schema else None
    return J({k: value(v) for k, v in given["data"].items()}, schema=schema)


def same(found, expected):
    expected = {k: array(t) for k, t in expected.items()}
    assert set(found) == set(expected)
    for k, t in expected.items():
        assert found[k].dtype == t.dtype, k
        assert found[k].shape == t.shape and np.array_equal(found[k], t, equal_nan=t.dtype.kind == "f"), k


def levels(tensors):
    return {k: v for k, v in tensors.items() if not k.startswith("dim-")}


def index(given):
    ((kind, what),) = given.items()
    return {
        "int": lambda: what,
        "slice": lambda: slice(*what),
        "array": lambda: array(what),
        "tuple": lambda: tuple(index(x) for x in what),
        "list": lambda: what,
        "str": lambda: what,
        "float": lambda: float(what),
        "none": lambda: None,
        "ellipsis": lambda: ...,
        "np_int64": lambda: np.int64(what),
    }[kind]()


def expecting(case, run):
    """Returns the result of a case, or `None` if the case expects an error."""
    if "error" not in case:
        return run()
    with pytest.raises(Exception) as caught:
        run()
    kinds = (ValueError, IndexError, KeyError, TypeError, AssertionError, OverflowError, RuntimeError, OSError)
    assert isinstance(caught.value, kinds), caught.value
    return None


def check(case, found):
    expect = case["expect"]
    extra = "upstream-bug" in case.get("tags", []) or case.get("op") == "vstack"
    tensors = levels(found.tensors)
    wanted = expect.get("tensors")
    if wanted is not None:
        if extra:
            tensors = {k: v for k, v in tensors.items() if k in wanted}
        same(tensors, wanted)
    if "dense" in expect:
        dense = found.to_dense()
        if extra:
            dense = {k: v for k, v in dense.items() if k in expect["dense"]}
        same(dense, expect["dense"])
    for key, v in expect.get("scalars", {}).items():
        assert found.tensors[f"dim-1/{key}"].tolist() == value(v["data"] if isinstance(v, dict) else [v])


@pytest.mark.parametrize("case", cases("construct"))
def test_construct(case):
    found = expecting(case, lambda: joint(case["input"]))
    if found is None:
        return
    expect = case["expect"]
    same(found.tensors, expect["tensors"])
    assert len(found) == expect["len"] and found.keys() == set(expect["keys"])
    assert found.min_n_dims == expect["min_n_dims"] and found.max_n_dims == expect["max_n_dims"]
    for dim, keys in expect["keys_at_dim"].items():
        assert found.keys_at_dim(int(dim)) == set(keys)
    assert {k: np.dtype(d).name for k, d in found.schema.items()} == expect["schema"]


@pytest.mark.parametrize("case", cases("infer_dtype"))
def test_infer_dtype(case):
    found = expecting(case, lambda: J({"k": value(case["input"]["values"])}))
    if found is None:
        return
    stored = found.tensors["dim0/k"]
    assert stored.dtype == case["expect"]["dtype"]
    same({"k": stored}, {"k": case["expect"]["stored"]})


@pytest.mark.parametrize("case", cases("getitem_int", "getitem_slice", "getitem_array", "getitem_tuple"))
@pytest.mark.parametrize("lazy", [False, True])
def test_getitem(case, lazy, tmp_path):
    j = joint(case["input"])
    if lazy:
        j.save(tmp_path / "j.nrt")
        j = J(tensors_fp=tmp_path / "j.nrt")
    found = expecting(case, lambda: j[index(case["args"]["index"])])
    if found is not None:
        check(case, found)


@pytest.mark.parametrize("case", cases("getitem_unsupported"))
def test_getitem_unsupported(case):
    j, at = joint(case["input"]), case["args"]["index"]
    if "np_int64" in at:
        # Serrate accepts integers of numpy, which upstream refuses.
        assert j[index(at)] == j[at["np_int64"]]
    else:
        expecting(case, lambda: j[index(at)])


@pytest.mark.parametrize("case", cases("to_dense"))
def test_to_dense(case):
    found = expecting(case, lambda: joint(case["input"]).to_dense(**case["args"]))
    if found is not None:
        same(found, case["expect"])


@pytest.mark.parametrize("case", cases("squeeze"))
def test_squeeze(case):
    found = expecting(case, lambda: joint(case["input"]).squeeze(case["args"]["dim"]))
    if found is not None:
        check(case, found)


@pytest.mark.parametrize("case", cases("unsqueeze"))
def test_unsqueeze(case):
    found = expecting(case, lambda: joint(case["input"]).unsqueeze(case["args"]["dim"]))
    if found is not None:
        check(case, found)


@pytest.mark.filterwarnings("ignore:flatten")
@pytest.mark.parametrize("case", cases("flatten"))
def test_flatten(case):
    found = expecting(case, lambda: joint(case["input"]).flatten(**case["args"]))
    if found is not None:
        check(case, found)


@pytest.mark.parametrize("case", cases("concatenate", "vstack"))
def test_concatenate(case, request):
    op = "vstack" if "vstack-" in request.node.name else "concatenate"
    found = expecting(case, lambda: getattr(J, op)([joint(i) for i in case["input"]["items"]]))
    if found is not None:
        check(case, found)


@pytest.mark.parametrize("case", cases("collate_roundtrip"))
def test_collate_roundtrip(case):
    j = joint(case["input"])
    found = expecting(case, lambda: J.vstack([j[i] for i in case["args"]["order"]]))
    if found is not None:
        check(case, found)


@pytest.mark.parametrize("case", cases("equals"))
def test_equals(case):
    a, b = joint(case["input"]["a"]), joint(case["input"]["b"])
    assert a.equals(b, equal_nan=case["args"].get("equal_nan", False)) == case["expect"]["equal"]


@pytest.mark.parametrize("case", cases("is_ndim_list"))
def test_is_ndim_list(case):
    found = expecting(case, lambda: is_ndim_list(value(case["input"]["list"]), case["args"]["dim"]))
    if found is not None:
        assert found == case["expect"]["result"]


@pytest.mark.parametrize("case", cases("save"))
def test_save(case, tmp_path):
    def run():
        j = joint(case["input"])
        j.save(tmp_path / "s.nrt")
        return (tmp_path / "s.nrt").read_bytes()

    found = expecting(case, run)
    if found is not None:
        assert found == (VECTORS / case["args"]["file"]).read_bytes()


@pytest.mark.parametrize("case", cases("load"))
def test_load(case):
    def run():
        j = J(tensors_fp=VECTORS / case["input"]["file"], keys=case["args"].get("keys"))
        at = case["args"].get("index")
        return j if at is None else j[index(at)]

    found = expecting(case, run)
    if found is None:
        return
    check(case, found)
    expect = case["expect"]
    if "len" in expect:
        assert len(found) == expect["len"] and found.keys() == set(expect["keys"])
        assert found.max_n_dims == expect["max_n_dims"] and found.min_n_dims == expect["min_n_dims"]
        assert {k: np.dtype(d).name for k, d in found.schema.items()} == expect["schema"]

"""Runs the conformance vectors of sparse tensors and hash maps on DokTensor and HashMap."""

import numpy as np
import pytest
from vectors import cases, expecting, index, known, library, same, value  # noqa: F401

import serrate
from serrate import DokTensor, HashMap

CALCULATED = ("sum", "norm", "normalize", "softmax", "log_softmax", "unary", "torch_ops", "from_sparse_coo")


def dok(library, given):
    known(given, "shape", "dtype", "indices", "values")
    if given.get("values") is None:
        return DokTensor(given["shape"], indices=library.tensor(given["indices"]))
    dtype = library.dtype(given["dtype"]) if given.get("dtype") else None
    return DokTensor(
        given["shape"], indices=library.tensor(given["indices"]), values=library.tensor(given["values"]), dtype=dtype
    )


def written(library, given):
    if "scalar" in given:
        return value(given["scalar"])
    return library.tensor(given["tensor"]) if "tensor" in given else dok(library, given)


def run(library, case):
    op, given, args = case["op"], case["input"], case.get("args", {})
    args = {name: value(v) if name in ("p", "eps") else v for name, v in args.items()}
    if op == "construct":
        return dok(library, given)
    if op == "from_dense":
        return DokTensor.from_dense(library.tensor(given["dense"]))
    if op == "from_sparse_coo":
        parts = library.tensor(given["indices"]), library.tensor(given["values"])
        if library.torch:
            return DokTensor.from_sparse_coo(library.torch.sparse_coo_tensor(*parts, given["size"]))
        return DokTensor.from_sparse_coo(given["size"], *parts)
    if op.startswith("getitem"):
        x = dok(library, given)
        at = index(library, args["index"])
        dense = x[at]
        assert (library.read(x.get_sparse(at).to_dense())[1] == library.read(dense)[1]).all() or "NaN" in str(given)
        return dense
    if op == "torch_ops":
        return torch_ops(library, given, args)
    x = dok(library, given["dok"])
    if op in ("setitem", "setitem_sparse"):
        x[index(library, args["index"])] = written(library, given["value"])
        return x
    if op == "view_write":
        view = x.transpose(args["dim0"], args["dim1"])
        view[index(library, args["index"])] = written(library, given["value"])
        return {"base": x.to_dense(), "view": view.to_dense()}
    if op == "clone":
        copy = x.clone()
        copy[index(library, args["index"])] = written(library, given["value"])
        return {"base": x.to_dense(), "clone": copy.to_dense()}
    if op == "permute":
        for order in args.get("orderings") or [args["ordering"]]:
            x = x.permute(*order)
        return x
    if op == "t":
        for _ in range(args.get("times", 1)):
            x = x.t()
        return x
    if op == "resize":
        x.resize(*args["new_size"])
        return x
    if op == "index_select":
        return x.index_select(args["dim"], np.array(args["index"], dtype="int64"))
    if op == "reshape":
        assert x.reshape(tuple(args["shape"])).shape == x.reshape(*args["shape"]).shape
        return x.reshape(*args["shape"])
    if op == "normalize":
        made = x.normalize(**args)
        own = x.clone()
        assert own.normalize_(**args) is own
        same(library, own.to_dense(), case["expect"]["dense"], near=True)
        return made
    if op == "unary":
        known(args, "op", "decimals")
        return x.round(args.get("decimals")) if args["op"] == "round" else getattr(x, args["op"])()
    if op in ("to_sparse_coo", "to_sparse_csr"):
        return getattr(x, op)()
    assert op in ("transpose", "flatten", "select", "sum", "norm", "softmax", "log_softmax")
    return getattr(x, op)(**args)


def torch_ops(library, given, args):
    known(args, "op", "dim", "scalar")
    a = dok(library, given["a"])
    torch, op = library.torch, args["op"]
    if op == "sparse_sum":
        if torch:
            dim = args.get("dim")
            return torch.sparse.sum(a, dim) if dim is not None else torch.sparse.sum(a)
        return a.sum(args.get("dim"))
    if op == "mm":
        b = library.tensor(given["dense"]) if "dense" in given else dok(library, given["b"])
        if torch and "dense" in given:
            same_as = library.read(torch.sparse.mm(a, b))[1]
            assert np.allclose(same_as, library.read(a @ b)[1])
        return a @ b
    b = value(args["scalar"]) if "scalar" in args else dok(library, given["b"])
    f = {"add": (lambda: a + b, "add"), "mul": (lambda: a * b, "mul")}[op]
    if torch:
        theirs = getattr(torch, f[1])(a, b)
        assert np.allclose(theirs.to_dense().numpy(), f[0]().to_dense().numpy())
    return f[0]()


def entries(library, found):
    at, values = library.read(found.indices())[1], library.read(found.values())[1]
    order = np.lexsort(at[::-1]) if len(at) else np.arange(len(values))
    return at[:, order], values[order]


def check(library, case, found):
    expect, near = case["expect"], case["op"] in CALCULATED
    if isinstance(found, dict):
        assert set(found) == set(expect)
        for name, tensor in found.items():
            same(library, tensor, expect[name])
        return
    if case["op"] in ("to_sparse_coo", "to_sparse_csr"):
        if library.torch:
            parts = ("indices", "values", "crow_indices", "col_indices")
            found = {n: getattr(found, n)() for n in parts if n in expect} | {"size": tuple(found.shape)}
        else:
            found = found._asdict()
        assert set(found) == set(expect)
        for name, part in expect.items():
            if name == "size":
                assert list(found["size"]) == part
            else:
                same(library, found[name], part)
        return
    if not isinstance(found, DokTensor):
        if library.torch and found.is_sparse:
            found = found.to_dense()
        same(library, found, expect.get("dense", expect) if "data" not in expect else expect, near)
        return
    for name, part in expect.items():
        if name == "dense":
            same(library, found.to_dense(), part, near)
        elif name in ("shape", "size"):
            assert list(found.shape) == part == list(found.size())
        elif name == "dtype":
            assert found.dtype == library.dtype(part)
        elif name == "nnz":
            assert found.nnz == part == found._nnz()
        elif name == "sparsity":
            assert abs(found.sparsity - part) < 1e-12
        elif name == "items":
            known(part, "indices", "values")
            at, values = entries(library, found)
            assert at.T.tolist() == part["indices"]
            dtype = str(values.dtype)
            wanted = np.array(value(part["values"]), dtype=dtype)
            assert np.allclose(values, wanted, rtol=1e-5 if near else 0, atol=1e-6 if near else 0, equal_nan=True)
        else:
            assert name in ("ndim", "is_sparse") and getattr(found, name) == part


@pytest.mark.filterwarnings("ignore:Sparse")
@pytest.mark.parametrize("case", cases("dok"))
def test_dok(case, library):  # noqa: F811
    if "readme-conflict" in case.get("tags", []):
        # The README of sparse_dok indexes axis by axis, which is `get_orthogonal` here.
        at = index(library, case["args"]["index"])
        with pytest.raises(IndexError):
            dok(library, case["input"])[at]
        if "expect" in case:
            same(library, dok(library, case["input"]).get_orthogonal(at), case["expect"])
        return
    found = expecting(case, lambda: run(library, case))
    if "error" not in case:
        check(library, case, found)


def rows(library, tensor):
    return [np.ravel(row).tolist() for row in library.read(tensor)[1]]


def program(library, case):
    known(case["input"], "n_buckets", "steps")
    buckets = case["input"].get("n_buckets")
    m = HashMap() if buckets is None else HashMap(n_buckets=buckets)
    answers = case["expect"]["steps"]
    assert len(answers) == len(case["input"]["steps"])
    for step, answer in zip(case["input"]["steps"], answers):
        known(step, "op", "keys", "values", "fallback", "n_buckets")
        keys = library.tensor(step["keys"]) if "keys" in step else None
        if step["op"] == "set":
            m[keys] = library.tensor(step["values"])
            assert answer is None
        elif step["op"] == "get":
            known(answer, "values", "found")
            fallback = step.get("fallback")
            fallback = library.tensor(fallback) if isinstance(fallback, dict) else value(fallback)
            values, found = m.get(keys, fallback)
            same(library, values, answer["values"])
            same(library, found, answer["found"])
            assert (library.read(m.contains(keys))[1] == library.read(found)[1]).all()
        elif step["op"] == "remove":
            known(answer, "removed", "removed_unique_sorted")
            removed = m.remove(keys)
            same(library, removed, answer["removed"])
            flags = library.read(removed)[1].tolist()
            unique = [flag for _, flag in sorted(set(zip(map(tuple, rows(library, keys)), flags)))]
            if "removed_unique_sorted" in answer:
                assert unique == answer["removed_unique_sorted"]["data"]
        elif step["op"] == "len":
            assert len(m) == m.n_elements == answer["len"]
        else:
            assert step["op"] == "rehash"
            m.rehash(step.get("n_buckets", 0))
    last = case["expect"]["final"]
    assert len(m) == last["len"]
    if m.keys() is None:
        assert last["len"] == 0
        return
    found = sorted(zip(rows(library, m.keys()), rows(library, m.values())))
    wanted = sorted(
        (np.ravel(k).tolist(), np.ravel(v).tolist()) for k, v in zip(value(last["keys"]), value(last["values"]))
    )
    assert found == wanted


def misuse(library, what):
    """Misuses a map as `what` says: `get keys [[1]] on a fresh map`, `keys were width 2, get width 3`, and so on."""

    def zeros(kind):
        shape, dtype = ((1, int(kind[1])), "int64") if kind[0] == "width" else ((1, 2), kind[0])
        made = np.zeros(shape, dtype)
        return library.torch.from_numpy(made) if library.torch else made

    m = HashMap()
    if what.endswith(" on a fresh map"):
        getattr(m, what.split()[0])(zeros(["width", "1"]))
        return
    before, after = (part.split() for part in what.split(", "))
    first, (op, *second), other = zeros(before[2:]), after, zeros(["float64"])
    second = zeros(second)
    if before[0] == "keys":
        m.set(first, other)
        m.set(second, other) if op == "set" else getattr(m, op)(second)
    else:
        assert before[0] == "values" and op == "set"
        m.set(other, first)
        m.set(other, second)


@pytest.mark.parametrize("case", cases("hashmap"))
def test_hashmap(case, library):  # noqa: F811
    if case["op"] == "errors":
        with pytest.raises(serrate.InvalidError):
            misuse(library, case["input"]["do"])
    else:
        assert case["op"] == "program"
        program(library, case)

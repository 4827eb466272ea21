"""Runs the conformance vectors of RaggedBatch and of the batched operations."""

import collections

import numpy as np
import pytest
from vectors import alike, cases, expecting, index, known, library, same, value  # noqa: F401

import serrate
from serrate import RaggedBatch
from serrate import batching_helpers as ops


def batch(library, given):
    if "ragged_batch" in given:
        known(given, "ragged_batch")
        given = given["ragged_batch"]
    known(given, "tensor", "mask", "sample_sizes", "non_uniform_dim", "num_batch_dims")
    part = {n: library.tensor(given[n]) for n in ("mask", "sample_sizes") if n in given}
    made = RaggedBatch(library.tensor(given["tensor"]), **part, non_uniform_dim=given.get("non_uniform_dim"))
    assert made.num_batch_dims == given.get("num_batch_dims", made.num_batch_dims)
    return made


def either(library, given):
    """Returns the batch or the tensor that a case gives."""
    if "ragged_batch" in given:
        return batch(library, given)
    return library.tensor(given.get("tensor", given) if "data" not in given else given)


def exists(library, found):
    """Returns a mask that is true where the padded tensor has entries."""
    return library.read(found.get_existence_weights("bool"))[1]


def same_batch(library, found, expect, filler=False, source=None, near=False):
    """Compares entries, and padding if `filler`; `source` is False for entries that were read from padding."""
    assert isinstance(found, RaggedBatch)
    expect = expect.get("ragged_batch", expect)
    for name, part in expect.items():
        if name == "tensor":
            where = exists(library, found)
            if source is not None:
                where = where & source
            if filler:
                where = where | ~exists(library, found)
            same(library, found.tensor, part, near, where)
        elif name in ("mask", "sample_sizes"):
            same(library, getattr(found, name), part)
        elif name in ("batch_shape", "shape"):
            assert list(getattr(found, name)) == part
        elif name == "dtype":
            assert found.dtype == library.dtype(part)
        elif name == "dim":
            assert found.dim() == part
        else:
            assert getattr(found, name) == part, name


def ones_like(library, data):
    """Returns data of the same shape, in which all entries are true and the padding of a batch is false."""
    if isinstance(data, RaggedBatch):
        ones = data.get_existence_weights("bool")
        return data.create_with_sample_sizes_like_self(ones, data.non_uniform_dim)
    shape = tuple(data.shape)
    return library.torch.ones(shape, dtype=library.torch.bool) if library.torch else np.ones(shape, bool)


def truth(library, found):
    return library.read(found.tensor if isinstance(found, RaggedBatch) else found)[1]


def functions(library):
    where = library.torch.where if library.torch else np.where
    total = (lambda t: t.sum(-1, keepdim=True)) if library.torch else (lambda t: t.sum(-1, keepdims=True, dtype=None))

    def divide(t, mask, sizes):
        t = t if "float" in str(t.dtype) else (t.float() if library.torch else t.astype("float32"))
        sizes = sizes[..., None]
        return t / (sizes.to(t.dtype) if library.torch else sizes.astype(t.dtype))

    def minus_one(t, mask):
        fill = -(t * 0 + 1)
        return where(mask, t, fill)

    return {
        "mul2_add1": lambda t: t * 2 + 1,
        "square": lambda t: t * t,
        "two_outputs": lambda t: (t + 1, t * t),
        "where_mask_else_neg1": minus_one,
        "divide_by_size": divide,
        "keep_dim_sum_last": total,
    }


METHODS = {
    "get_non_uniform_dimension_transposed_to": ("dim",),
    "repeat_samples": ("num_repeats", "batch_dim"),
    "unsqueeze_batch_dim": ("dim",),
    "squeeze_batch_dim": ("batch_dim",),
    "reshape_batch_dims": ("new_batch_shape",),
    "flatten_batch_dims": (),
    "broadcast_batch_dims_to_shape": ("new_batch_shape",),
    "unsqueeze_data_dim": ("dim",),
    "with_padded_set_to": ("value_to_set",),
}


def run_batch(library, case):
    op, given, args = case["op"], case["input"], value_args(case.get("args", {}))
    if op in ("construct", "from_oversize_tensor"):
        make = RaggedBatch if op == "construct" else RaggedBatch.FromOversizeTensor
        known(given, "tensor", "mask", "sample_sizes")
        return make(**{name: library.tensor(part) for name, part in given.items()}, **args)
    if op == "empty":
        return RaggedBatch.Empty(**args, device="cpu" if library.torch else None)
    if op == "from_full_tensor":
        return RaggedBatch.FromFullTensor(library.tensor(given["tensor"]), **args)
    if op == "broadcast_batch_dims":
        return RaggedBatch.broadcast_batch_dims([batch(library, b) for b in given["data"]])
    data = batch(library, given["data"])
    if op == "get_existence_weights":
        return data.get_existence_weights(**{k: library.dtype(v) for k, v in args.items()})
    if op == "set_padded_to":
        data.set_padded_to(**args)
        return data
    if op == "create_with_sample_sizes_like_self":
        return data.create_with_sample_sizes_like_self(library.tensor(given["tensor"]), **args)
    if op == "set_tensor":
        data.set_tensor(library.tensor(given["tensor"]))
        return data
    if op == "to_dtype":
        return getattr(data, args["method"])()
    if op == "apply":
        return data.apply(functions(library)[args["fn"]])
    if op == "split":
        return data.split()
    if op == "getitem":
        return data[index(library, args["index"])], exists(library, data)[index(NUMPY, args["index"])]
    if op == "setitem":
        new = given["value"]
        if isinstance(new, dict):
            new = value(new["scalar"]) if "scalar" in new else library.tensor(new.get("tensor", new))
        data[index(library, args["index"])] = new
        return data.tensor, exists(library, data)
    known(args, *METHODS[op])
    return getattr(data, op)(**args)


class NUMPY:
    @staticmethod
    def tensor(t):
        return np.array(t["data"], dtype=t["dtype"]).reshape(t["shape"])


def value_args(args):
    return {name: value(v) for name, v in args.items()}


def same_samples(library, found, expect):
    if isinstance(expect, list):
        assert isinstance(found, list) and len(found) == len(expect)
        for a, b in zip(found, expect):
            same_samples(library, a, b)
    else:
        same(library, found, expect)


@pytest.mark.filterwarnings("ignore:invalid value", "ignore:divide by zero")
@pytest.mark.parametrize("case", cases("ragged_batch"))
def test_ragged_batch(case, library):  # noqa: F811
    op = case["op"]
    if "error" in case and "limitation" in case.get("tags", []):
        return answered_or_refused(lambda: run_batch(library, case))
    found = expecting(case, lambda: run_batch(library, case))
    if "error" in case:
        return None
    expect = case["expect"]
    if op == "get_existence_weights":
        return same(library, found, expect)
    if op == "split":
        return same_samples(library, found, expect["split"])
    if op in ("getitem", "setitem"):
        return same(library, found[0], expect, where=np.asarray(found[1]))
    near = op == "apply"
    if isinstance(expect, list):
        assert len(found) == len(expect)
        for a, b in zip(found, expect):
            same_batch(library, a, b, near=near)
        return None
    return same_batch(library, found, expect, filler=op in ("with_padded_set_to", "set_padded_to"), near=near)


def answered_or_refused(run):
    try:
        run()
    except serrate.Error:
        pass


def samples(library, given):
    if isinstance(given, list):
        return [samples(library, part) for part in given]
    return given["other"] if "other" in given else library.tensor(given.get("tensor", given))


def fields(library, given):
    return given["other"] if "other" in given else library.tensor(given["tensor"])


def run_helper(library, case):
    """Returns the result and a mask, or `None`; the mask is False for elements that were read from padding."""
    op, given, args = case["op"], case["input"], value_args(case.get("args", {}))
    if op in ("get_compact_lists", "get_compact_from_named_tuple"):
        mask = library.tensor(given["mask"])
        if op == "get_compact_lists":
            return ops.get_compact_lists(mask, [fields(library, f) for f in given["data"]]), None
        kind = collections.namedtuple("Kind", given["data"])
        data = kind(**{name: fields(library, f) for name, f in given["data"].items()})
        found = ops.get_compact_from_named_tuple(mask, data)
        assert type(found) is kind
        return found, None
    if op == "combine_data":
        other = given.get("other_with_same_sample_sizes")
        if other is not None:
            args["other_with_same_sample_sizes"] = batch(library, other)
        return ops.combine_data(samples(library, given["data_list"]), **args), None
    parts = {name: either(library, part) for name, part in given.items()}
    f = getattr(ops, op)
    found = f(**parts, **args)
    source = None
    if op == "batched_indexing_access":
        parts["input_data"] = ones_like(library, parts["input_data"])
        source = truth(library, f(**parts, **{**args, "filler_value": 0}))
    elif op == "batched_index_mapping":
        parts |= {name: ones_like(library, parts[name]) for name in ("source_data", "target_data")}
        source = truth(library, f(**parts))
    return found, source


def check_compact(library, found, expect):
    assert len(found) == len(expect)
    named = isinstance(expect, dict)
    for name, part in expect.items() if named else enumerate(expect):
        one = getattr(found, name) if named else found[name]
        if "other" in part:
            assert one == part["other"]
        else:
            same_batch(library, one, part, filler=True)


@pytest.mark.parametrize("case", cases("batching_helpers"))
def test_batching_helpers(case, library):  # noqa: F811
    op = case["op"]
    if "error" in case and "limitation" in case.get("tags", []):
        return answered_or_refused(lambda: run_helper(library, case))
    found = expecting(case, lambda: run_helper(library, case))
    if "error" in case:
        return None
    (found, source), expect = found, case["expect"]
    if op in ("get_compact_lists", "get_compact_from_named_tuple"):
        return check_compact(library, found, expect)
    near = op in ("average_over_targets", "sum_over_targets")
    if isinstance(found, RaggedBatch):
        filler = op in ("batched_indexing_access", "get_indices_from_mask", "combine_data")
        return same_batch(library, found, expect, filler, source, near)
    expect = expect if "data" in expect else expect["tensor"]
    if op == "average_over_targets":
        data = batch(library, case["input"]["data"])
        first, dim = data.num_batch_dims, data.non_uniform_dim
        if dim >= first + 2 and not np.array_equal(list(found.shape), expect["shape"]):
            # The original library swaps the non-uniform axis with the first data axis and does not swap them back.
            found = np.moveaxis(library.read(found)[1], first, dim - 1)
            found = library.torch.from_numpy(found.copy()) if library.torch else found
        elif dim >= first + 2:
            dtype, have = library.read(found)
            if not alike(dtype, have, np.array(value(expect["data"]), dtype).reshape(expect["shape"]), True).all():
                found = np.moveaxis(have, first, dim - 1)
                found = library.torch.from_numpy(found.copy()) if library.torch else found
    return same(library, found, expect, near, source)



"""Padded results reuse the memory of deleted arrays, and two results never share memory."""

import os
import signal

import numpy as np
import pytest

import serrate
from serrate import JointNestedRaggedTensorDict

#: Elements of each padded list, so that a result is large enough for the pool and for threads.
LONG = 1 << 19


def pad(values, **options):
    return serrate.RaggedTable({"x": values}).to_dense(sizes=[LONG], masks=False, **options)["x"]


def expected(values, side="right", fill=0):
    out = np.full((len(values), LONG), fill)
    for row, each in zip(out, values):
        if each:
            row[slice(len(each)) if side == "right" else slice(-len(each), None)] = each
    return out


def address(array):
    return array.__array_interface__["data"][0]


def test_results_that_are_kept_are_not_overwritten():
    values = [[1, 2, 3], [4]]
    kept = pad(values)
    view = pad(values)[0, :3]
    others = [pad([[k] * 9, [k]]) for k in range(6)]
    assert len({address(a) for a in (kept, view, *others)}) == 8
    assert np.array_equal(kept, expected(values)) and view.tolist() == [1, 2, 3]
    assert all(np.array_equal(a, expected([[k] * 9, [k]])) for k, a in enumerate(others))


def test_memory_of_a_deleted_array_is_reused():
    first = pad([[1, 2], [3]])
    assert first.flags.writeable
    at = address(first)
    del first
    second = pad([[4], []])
    assert address(second) == at
    assert np.array_equal(second, expected([[4], []]))


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("fill", [0, 5, 1 << 40])
def test_reused_memory_is_filled_again(side, fill):
    first = pad([[1, 2], [3]])
    at = address(first)
    first[:] = -7
    del first
    values = [[8], [9, 9, 9]]
    second = pad(values, padding_side=side, fill=fill)
    assert address(second) == at
    assert np.array_equal(second, expected(values, side, fill))


def test_arrays_and_masks_are_filled_again():
    array = serrate.RaggedArray([[1] * 3, [2] * (1 << 21)])
    for _ in range(3):
        dense, mask = array.to_dense(), array.mask()
        assert dense[0, :4].tolist() == [1, 1, 1, 0] and dense.sum() == 3 + 2 * (1 << 21)
        assert mask[0].sum() == 3 and mask[1].all()
        dense[:], mask[:] = 6, True


def test_a_tensor_keeps_its_memory():
    torch = pytest.importorskip("torch")
    tensor = torch.from_numpy(pad([[1, 2], [3]]))
    others = [pad([[7] * 9, [7]]) for _ in range(3)]
    assert tensor.data_ptr() not in {address(a) for a in others}
    assert tensor[0, :3].tolist() == [1, 2, 0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_process_shares_no_results():
    kept = pad([[1, 2], [3]])
    pad([[5], [6]])
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        good = False
        try:
            for k in range(4):
                values = [[k] * 3, [k]]
                good = np.array_equal(pad(values), expected(values))
                good = good and np.array_equal(kept, expected([[1, 2], [3]]))
                if not good:
                    break
            kept[:] = 0
            del kept
        finally:
            os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert np.array_equal(kept, expected([[1, 2], [3]]))
    assert np.array_equal(pad([[5], [6]]), expected([[5], [6]]))


@pytest.mark.parametrize("side", ["right", "left"])
def test_results_that_several_threads_fill_are_right(side):
    random = np.random.default_rng(7)
    lengths = random.integers(0, 40, (100, 64))
    lengths[3, 5] = 250
    code = [[random.integers(1, 200, n).tolist() for n in row] for row in lengths]
    value = [[[float(c) for c in each] for each in row] for row in code]
    j = JointNestedRaggedTensorDict({"code": code, "value": value})
    where = np.arange(250) < lengths[..., None]
    if side == "left":
        where = where[..., ::-1]
    for _ in range(3):
        dense = j.to_dense(side)
        assert dense["value"].shape == (100, 64, 250)
        assert np.array_equal(dense["dim2/mask"], where)
        flat = np.concatenate([each for row in code for each in row])
        for key in ("code", "value"):
            assert np.array_equal(dense[key][where], flat) and not dense[key][~where].any()
            dense[key][:] = 99
        dense["dim2/mask"][:] = True

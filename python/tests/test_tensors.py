"""Tests HetTensor, RaggedBatch, DokTensor and HashMap where the conformance vectors have no case."""

import copy
import pickle
import threading

import numpy as np
import pytest

import serrate
from serrate import DokTensor, HashMap, HetTensor, RaggedBatch
from serrate import batching_helpers as ops


def batch():
    return RaggedBatch(np.array([[1, 2, 3], [4, 0, 0]]), sample_sizes=np.array([3, 1]))


@pytest.mark.filterwarnings("ignore:Sparse")
def test_het_results_have_the_library_of_the_leaves():
    torch = pytest.importorskip("torch")
    x = HetTensor([torch.tensor([1.0, 2.0]), torch.tensor([3.0])])
    assert isinstance(x.to_dense(), torch.Tensor) and x.dtype == torch.float32
    assert isinstance(x.shape, torch.Size) and x.shape == (-1, -1) and x.dim_type == ["het", "het"]
    assert repr(x + torch.tensor([1.0])) == "[tensor([2.0, 3.0]), tensor([4.0])]"
    assert repr(torch.tensor([1.0]) + x) == "[tensor([2.0, 3.0]), tensor([4.0])]"
    assert repr(np.float32(1) + x) == "[tensor([2.0, 3.0]), tensor([4.0])]"
    assert isinstance(x.numpy().to_dense(), np.ndarray) and isinstance(x.numpy().torch().sum(), torch.Tensor)
    sparse = x.to_sparse()
    assert sparse.shape == (2, 2) and torch.equal(sparse.to_dense(), x.to_dense())


def test_het_tensors_can_lack_elements():
    x = HetTensor([np.array([1, 2]), np.array([3])])
    second = x[:, 1]
    assert second.unbind() == [np.array(2), None] and second.tolist() == [2, None]
    assert second.numel() == 1 and second.to_dense().tolist() == [2, 0] and second.sum() == 2
    at, values = second.to_coo()
    assert at.tolist() == [[0]] and values.tolist() == [2]
    assert HetTensor([np.array(2), None]).equals(second)


def test_het_pickles_and_copies():
    x = HetTensor([np.array([1, 2]), np.array([3])])
    assert pickle.loads(pickle.dumps(x)).equals(x) and copy.copy(x).equals(x)
    assert x.to_ragged().to_list() == [[1, 2], [3]] and HetTensor.from_ragged(x.to_ragged()).equals(x)
    assert [row.tolist() for row in x] == [[1, 2], [3]] and len(x) == 2
    with pytest.raises(IndexError):
        x["a"]
    with pytest.raises(IndexError):
        x.sum(dim=7)
    with pytest.raises(TypeError):
        x + "a"
    with pytest.raises(ZeroDivisionError):
        x.apply(lambda v: 1 // 0)


def test_dense_results_may_be_written():
    b, d = batch(), DokTensor.from_dense(np.eye(2))
    for found in (d.to_dense(), d[0], b[0], b.split()[0], HetTensor([np.array([1]), np.array([2, 3])]).to_dense()):
        found[...] = 7
    assert d.to_dense().tolist() == [[1, 0], [0, 1]] and b.tensor.tolist() == [[1, 2, 3], [4, 0, 0]]
    with pytest.raises(ValueError):
        b.tensor[0, 0] = 7
    torch = pytest.importorskip("torch")
    b = b.torch()
    b.tensor[0, 0], b.mask[0, 0], b.sample_sizes[0] = 7, False, 9
    assert b.tensor[0, 0] == 1 and b.mask[0, 0] and b.sample_sizes.tolist() == [3, 1]
    assert isinstance(b.tensor, torch.Tensor) and b.device == torch.device("cpu")


def test_batches_copy_their_arguments():
    data, sizes = np.array([[1, 2]]), np.array([2])
    b = RaggedBatch(data, sample_sizes=sizes)
    data[:], sizes[:] = 0, 0
    assert b.split()[0].tolist() == [1, 2]


def test_batches_can_be_assigned_to():
    b = batch()
    b[0, 1] = 9
    b[1] = np.array([5, 6, 7])
    assert b.tensor.tolist() == [[1, 9, 3], [5, 0, 0]]
    with pytest.raises(IndexError):
        b[5] = 1
    with pytest.raises(IndexError):
        b["x"]
    with pytest.raises(ValueError):
        b[:, :2] = np.zeros((3, 3), dtype="int64")


def test_the_last_of_two_values_for_one_index_is_kept():
    to = RaggedBatch(np.array([[1, 1, 0]]), sample_sizes=np.array([3]))
    assert ops.batched_inverse_indexing_access(np.array([[5, 6, 7]]), to, 3, -1).tolist() == [[7, 6, -1]]
    with pytest.raises(IndexError, match="sample"):
        ops.batched_inverse_indexing_access(np.array([[5, 6, 7]]), to, 1)


def test_batches_convert_to_other_forms():
    b = batch()
    values, ends = b.to_packed()
    assert values.tolist() == [1, 2, 3, 4] and ends.tolist() == [0, 3, 4]
    assert RaggedBatch.from_packed(values, ends).equals(b)
    assert b.to_ragged().to_list() == [[1, 2, 3], [4]] and RaggedBatch.from_ragged(b.to_ragged()).equals(b)
    assert pickle.loads(pickle.dumps(b)).equals(b) and copy.deepcopy(b).equals(b)
    assert b.to("float32").dtype == np.float32 and b.to(dtype=np.int8).dtype == np.int8 and b.to("cpu").equals(b)
    assert b.size() == (2, 3) and b.size(-1) == 3 and len(b) == 2
    for call in (lambda: b.to("cuda:0"), lambda: b.to_device("cuda"), lambda: RaggedBatch(np.zeros(2))):
        with pytest.raises(ValueError):
            call()
    with pytest.raises(TypeError):
        ops.average_over_targets(np.zeros((2, 3)))


def test_apply_takes_functions_and_methods():
    torch = pytest.importorskip("torch")
    b = batch().torch()
    assert b.apply(torch.neg).split()[0].tolist() == [-1, -2, -3]

    class Step:
        def with_mask(self, t, mask):
            return torch.where(mask, t, 0), t.float()

    both = b.apply(Step().with_mask)
    assert [type(x) for x in both] == [RaggedBatch, RaggedBatch] and both[1].dtype == torch.float32
    with pytest.raises(ValueError):
        b.apply(lambda a, b, c, d: a)


def test_tensors_that_require_gradients_are_refused():
    torch = pytest.importorskip("torch")
    t = torch.ones(2, 3, requires_grad=True)
    with pytest.raises(ValueError, match="gradient"):
        RaggedBatch(t, sample_sizes=torch.tensor([1, 2]))
    with torch.no_grad():
        assert RaggedBatch(t, sample_sizes=torch.tensor([1, 2])).total_num_entries == 3
    with pytest.raises(ValueError, match="gradient"):
        HetTensor([t])
    with pytest.raises(ValueError, match="sparse"):
        HetTensor([torch.eye(2).to_sparse()])


def test_bfloat16_is_kept_in_torch():
    torch = pytest.importorskip("torch")
    t = torch.tensor([[1.5, 2.5], [3.5, 0.0]], dtype=torch.bfloat16)
    b = RaggedBatch(t, sample_sizes=torch.tensor([2, 1]))
    assert b.dtype == torch.bfloat16 and torch.equal(b.tensor, t)
    assert b.numpy().tensor.dtype == np.float32


def test_numbers_of_every_type():
    for dtype in ("bool", "uint8", "uint64", "int16", "int64", "float16", "float64"):
        data = np.array([[1, 0], [1, 1]], dtype=dtype)
        assert RaggedBatch(data, sample_sizes=np.array([1, 2])).tensor.dtype == dtype
        assert DokTensor.from_dense(data).to_dense().dtype == dtype
        assert HetTensor([data[0], data[1][:1]]).to_dense().dtype == dtype
    swapped = np.array([[1, 2]], dtype=">i4")
    assert RaggedBatch(swapped, sample_sizes=np.array([2])).tensor.tolist() == [[1, 2]]
    with pytest.raises(TypeError):
        RaggedBatch(np.array([["a"]]), sample_sizes=np.array([1]))
    with pytest.raises(TypeError):
        DokTensor.from_dense(np.array([1j]))
    masked = np.ma.MaskedArray([1, 0, 2], mask=[False, False, True])
    with pytest.raises(serrate.InvalidError, match="masked values"):
        DokTensor.from_dense(masked)
    assert DokTensor.from_dense(masked.filled(0)).to_dense().tolist() == [1, 0, 0]


def test_dok_indexing_equals_numpy():
    rng = np.random.default_rng(1)
    dense = rng.integers(0, 3, (4, 5, 6)).astype("float64")
    x = DokTensor.from_dense(dense)
    mask = rng.random((4, 5)) < 0.5
    for at in (1, (slice(None, None, -2), 3), ([0, 2], slice(1, 4), [1, 5]), mask, (..., None, 2), (mask, 1), ()):
        assert np.array_equal(x[at], dense[at])
        new = rng.random(dense[at].shape)
        x[at], dense[at] = new, new
    assert np.array_equal(x.to_dense(), dense)
    x[1] = DokTensor.from_dense(dense[2])
    dense[1] = dense[2]
    assert np.array_equal(x.to_dense(), dense)
    x[...] = x
    assert np.array_equal(x.to_dense(), dense)


def test_dok_views_share_memory():
    x = DokTensor((2, 3))
    x.T[2, 1] = 5
    assert x[1, 2] == 5 and x.dtype == np.float32 and x.sparsity == pytest.approx(5 / 6)
    assert x.transpose_(0, 1) is x and x.shape == (3, 2) and x[2, 1] == 5
    assert x.permute_(1, 0).shape == (2, 3)
    x.resize(4, 4)
    assert x.shape == (4, 4) and x[1, 2] == 5 and x.size(0) == 4
    same = x.clone(deepclone=False)
    same[0, 0] = 1
    own = copy.deepcopy(x)
    own[0, 0] = 2
    assert x[0, 0] == 1 and x.nnz == 2
    assert np.array_equal(pickle.loads(pickle.dumps(x)).to_dense(), x.to_dense())
    stored = x.storage()
    assert len(stored) == 2 and np.array_equal(DokTensor.from_storage(stored, (4, 4)).to_dense(), x.to_dense())
    assert DokTensor.from_storage(stored).shape == (2, 3)
    assert np.array_equal(DokTensor((4, 4), storage=stored).to_dense(), x.to_dense())
    x.clear()
    assert x.nnz == 0 and same.nnz == 0


def test_dok_limits_and_errors():
    x = DokTensor((10**6, 10**6))
    with pytest.raises(MemoryError):
        x.to_dense()
    assert x[5, 7] == 0 and x.get_sparse((slice(None), 3)).shape == (10**6,)
    for at in (1.5, "a", (0, 0, 0), 10**7, [[1, 2], [3]]):
        with pytest.raises(IndexError):
            x[at]
    for call in (lambda: DokTensor((2, -1)), lambda: DokTensor((2, 2), device="cuda"), lambda: x + 1):
        with pytest.raises(ValueError):
            call()
    with pytest.raises(TypeError):
        x.softmax()
    with pytest.raises(IndexError):
        x.sum(dim=4)


@pytest.mark.filterwarnings("ignore:Sparse")
def test_dok_tensors_work_with_torch():
    torch = pytest.importorskip("torch")
    x = DokTensor((2, 3), dtype=torch.float64)
    x[0, 1] = torch.tensor(2.0)
    coo = x.to_sparse_coo()
    assert coo.is_coalesced() and torch.equal(coo.to_dense(), x.to_dense())
    assert torch.equal(DokTensor.from_sparse_coo(coo).to_dense(), x.to_dense())
    x[1] = torch.tensor([0.0, 0.0, 3.0]).to_sparse().double()
    assert x.to_dense().tolist() == [[0, 2, 0], [0, 0, 3]]
    assert torch.sparse.sum(x, dim=0).to_dense().tolist() == [0, 2, 3]
    assert torch.abs(-x).to_dense().tolist() == x.to_dense().tolist()
    assert torch.is_tensor(x.sum()) and (x @ torch.ones(3, 1, dtype=torch.float64)).tolist() == [[2], [3]]
    assert torch.stack([x, x]).shape == (2, 2, 3)


def test_torch_arguments_give_torch_results():
    torch = pytest.importorskip("torch")
    at = torch.tensor([1, 2])
    x = serrate.DokTensor(size=(5, 5))
    x[at, at] = torch.tensor([1.0, 2.0])
    for found in (x[at, at], x[at], x[0, at], x.get_orthogonal((at, [0, 1]))):
        assert isinstance(found, torch.Tensor)
    assert x[at, at].tolist() == [1.0, 2.0]
    assert isinstance(x[[1, 2]], np.ndarray) and isinstance(x[np.array([1])], np.ndarray)
    seen = serrate.HashMap()
    seen[np.array([1, 2])] = np.array([10, 20])
    for found in (*seen.get(at), *seen[at], seen.contains(at), seen.remove(at)):
        assert isinstance(found, torch.Tensor)
    assert isinstance(seen.get(np.array([1]))[0], np.ndarray)


def test_hash_map_inserts_finds_and_deletes_keys():
    m = HashMap(n_buckets=4)
    assert m.keys() is None and len(m) == 0 and repr(m) == "HashMap(empty)"
    keys = np.arange(3000).reshape(1000, 3)
    assert m.set(keys, np.arange(1000.0)).all() and not m.set(keys[:1], np.array([7.0])).any()
    values, found = m[keys[:2]]
    assert values.tolist() == [7, 1] and found.all() and m.n_elements == 1000 and 0 < m.load_factor <= 0.75
    other = m.clone()
    del m[keys[:500]]
    assert len(m) == 500 and len(other) == 1000 and not m.contains(keys[:1])[0]
    assert [5, 5, 5] not in m and keys[999] in m
    values, found = m.get_or_insert(keys[:1], np.array([3.0]))
    assert values.tolist() == [3] and not found[0]
    m.rehash(n_buckets=100_000)
    assert m.n_buckets >= 100_000 and m[keys[600:601]][0][0] == 600
    m.clear()
    assert len(m) == 0
    floats = HashMap()
    floats[np.array([[0.1], [0.2]])] = np.array([1, 2])
    assert floats.get(np.array([[0.2], [0.3]]), -1)[0].tolist() == [2, -1]


def test_several_threads_can_write_a_dok_tensor():
    x = DokTensor((1000, 8))
    failed = []

    def write(k):
        try:
            for i in range(200):
                x[i, k] = k + 1
        except Exception as e:
            failed.append(e)

    threads = [threading.Thread(target=write, args=(k,)) for k in range(8)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not failed and x.nnz == 1600


def test_a_forked_process_can_build_tensors(in_child):
    data = np.arange(2_000_000).reshape(1000, 2000)
    sizes = np.full(1000, 1500)
    RaggedBatch(data, sample_sizes=sizes).tensor.sum()
    DokTensor.from_dense(data)

    def child():
        b = RaggedBatch(data, sample_sizes=sizes)
        return int(b.tensor.sum()), DokTensor.from_dense(data).nnz, ops.sum_over_targets(b).shape

    assert in_child(child) == repr((int(data[:, :1500].sum()), 1_999_999, (1000,)))


def test_error_classes_derive_from_builtin_ones():
    assert issubclass(serrate.InvalidIndexError, IndexError) and issubclass(serrate.InvalidIndexError, ValueError)
    assert issubclass(serrate.BadFileError, ValueError)

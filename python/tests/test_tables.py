import copy
import pickle

import numpy as np
import pytest

import serrate
from serrate import RaggedArray, RaggedTable

ROWS = {"age": [71, 38], "t": [[1.5, 2.5], [0.5]], "code": [[[1, 2], [3]], [[4, 5, 6]]]}


def test_tables_convert_from_and_to_dictionaries():
    t = RaggedTable(ROWS)
    assert len(t) == 2 and t.ndim == 3 and t.columns == ["age", "t", "code"]
    assert t.axes == {"age": 0, "t": 1, "code": 2}
    assert t.to_dict() == ROWS
    assert RaggedTable(t) == t
    assert "code" in t and "x" not in t


def test_tables_convert_to_arrow_and_back():
    pa = pytest.importorskip("pyarrow")
    t = RaggedTable(ROWS)
    table = pa.table(t)
    assert table.to_pydict() == ROWS
    assert RaggedTable(table) == t
    pl = pytest.importorskip("polars")
    assert pl.DataFrame(t).to_dict(as_series=False) == ROWS


@pytest.mark.parametrize("ending", ["nrt", "parquet", "arrow", "arrows", "json", "ndjson"])
def test_tables_are_written_and_read(tmp_path, ending):
    t = RaggedTable(ROWS)
    path = tmp_path / f"t.{ending}"
    t.write(path)
    back = RaggedTable.read(path)
    assert {k: back.to_dict()[k] for k in ROWS} == ROWS
    with pytest.raises(FileExistsError):
        t.write(path)
    t.write(path, overwrite=True)
    assert RaggedTable.read(path, columns=["t"]).columns == ["t"]
    with pytest.raises(FileNotFoundError):
        RaggedTable.read(tmp_path / f"none.{ending}")


def test_schema_and_errors():
    t = RaggedTable({"a": [[1], []]}, schema={"a": "uint8"})
    assert t["a"].dtype == np.uint8
    with pytest.raises(ValueError, match="list 1 has 1"):
        RaggedTable({"a": [[1], [2]], "b": [[1], []]})
    with pytest.raises(ValueError, match=r"a\[1\]"):
        RaggedTable({"a": [[1], 2]})
    with pytest.raises(ValueError, match="one kind"):
        RaggedTable({"a": [1, "x"]})
    with pytest.raises(ValueError):
        RaggedTable({"a": [300]}, schema={"a": "uint8"})
    with pytest.raises(KeyError, match="no column"):
        t["z"]
    with pytest.raises(IndexError):
        t[9]


def test_indices_select_rows_elements_and_columns():
    t = RaggedTable(ROWS)
    row = t[0]
    assert row["age"] == 71 and row.scalars == {"age": 71}
    assert row["code"].to_list() == [[1, 2], [3]]
    assert t[0, -1:]["code"].to_list() == [[3]]
    assert t[[1, 0]]["age"].to_list() == [38, 71]
    assert t[np.array([False, True])]["age"].to_list() == [38]
    assert t[["code", "age"]].columns == ["code", "age"]
    assert RaggedTable.vstack([t[0], t[1]]) == t


def test_ragged_masks_select_elements_and_keep_lists():
    code = RaggedArray([[[1, 2], [3]], [[4, 5, 6]], []])
    assert code[code > 2].to_list() == [[[], [3]], [[4, 5, 6]], []]
    # A mask with fewer axes selects lists.
    assert code[code.sum(axis=-1) > 3].to_list() == [[], [[4, 5, 6]], []]
    uniform = RaggedArray(np.array([[1, 2], [3, 4]]))
    assert uniform[uniform > 1].to_list() == [[2], [3, 4]]
    with pytest.raises(ValueError):
        code[RaggedArray([[[True]]])]


def test_flatten_concat_sort_and_nest():
    t = RaggedTable(ROWS)
    flat = t.flatten()
    assert flat["code"].to_list() == [[1, 2, 3], [4, 5, 6]]
    assert flat["t"].to_list() == [[1.5, 0.0, 2.5], [0.5, 0.0, 0.0]]
    assert t.flatten(fill="repeat")["t"].to_list() == [[1.5, 1.5, 2.5], [0.5, 0.5, 0.5]]
    assert RaggedTable.concat([t, t])["age"].to_list() == [71, 38, 71, 38]
    assert t.sort(["age"])["age"].to_list() == [38, 71] and t.sort(["-age"]) == t
    assert t.unsqueeze().squeeze() == t
    long = {"id": [1, 1, 2], "v": [5, 6, 7]}
    assert RaggedTable.nest(long, ["id"]).to_dict() == {"id": [1, 2], "v": [[5, 6], [7]]}


def test_to_dense():
    t = RaggedTable(ROWS)
    dense = t.to_dense()
    assert dense["code"].tolist() == [[[1, 2], [3, 0]], [[4, 5], [0, 0]]] or dense["code"].shape == (2, 2, 3)
    assert dense["dim1/mask"].tolist() == [[True, True], [True, False]]
    assert dense["t"].flags.writeable
    dense["t"][0, 0] = 9
    assert t["t"].to_list() == ROWS["t"]
    left = t.to_dense(padding_side="left", fill=-1, columns=["t"], masks=False)
    assert list(left) == ["t"] and left["t"].tolist() == [[1.5, 2.5], [-1, 0.5]]
    with pytest.raises(MemoryError):
        t.to_dense(limit=8)
    with pytest.raises(ValueError):
        t.to_dense(padding_side="up")


def test_array_properties_and_conversions():
    a = RaggedArray([[1, 2, 3], [], [4]])
    assert a.shape == (3, None) and a.max_shape == (3, 3) and a.ndim == 2 and len(a) == 3
    assert a.lengths().tolist() == [3, 0, 1]
    assert a.leaves.tolist() == [1, 2, 3, 4] and not a.leaves.flags.writeable
    assert [o.tolist() for o in a.offsets] == [[0, 3, 3, 4]]
    assert a[0].to_list() == [1, 2, 3] and a[0, 1] == 2 and a[:, :1][0].to_list() == [1]
    assert [r.to_list() for r in a] == [[1, 2, 3], [], [4]]
    values, cu = a.to_packed()
    assert values.tolist() == [1, 2, 3, 4] and cu.tolist() == [0, 3, 3, 4] and cu.dtype == np.int32
    assert RaggedArray.from_parts(values, [[0, 3, 3, 4]]).equals(a)
    assert a.to_dense(fill=-1).tolist() == [[1, 2, 3], [-1, -1, -1], [4, -1, -1]]
    assert a.to_dense(padding_side="left", sizes=[2]).tolist() == [[2, 3], [0, 0], [0, 4]]
    assert a.to_dense(dtype="float32").dtype == np.float32
    assert a.mask().tolist() == [[True] * 3, [False] * 3, [True, False, False]]
    assert np.asarray(RaggedArray(np.arange(6).reshape(2, 3))).tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(ValueError):
        a.numpy()


def test_packed_offsets_are_those_of_whole_rows():
    a = RaggedArray([[[1, 2], [3]], [], [[4]]])
    values, cu = a.to_packed()
    assert values.tolist() == [1, 2, 3, 4] and cu.tolist() == [0, 3, 3, 4]


def test_operators_equal_those_of_numpy():
    rng = np.random.default_rng(0)
    x = rng.integers(-9, 9, 12)
    y = rng.choice([-3, -2, 2, 3], 12)
    a, b = RaggedArray(x.reshape(3, 4)), RaggedArray(y.reshape(3, 4))
    x, y = x.reshape(3, 4), y.reshape(3, 4)
    for ours, theirs in [
        (a + b, x + y), (a - b, x - y), (a * b, x * y), (a / b, x / y), (a % b, x % y), (a // b, x // y),
        (a + 1, x + 1), (1 - a, 1 - x), (a / 2, x / 2), (a < b, x < y), (a == b, x == y), (a != b, x != y),
        (-a, -x), (abs(a), abs(x)), ((a > 0) & (b > 0), (x > 0) & (y > 0)), (~(a > 0), ~(x > 0)),
        (x + b, x + y), (a + y, x + y), (a**2, x**2), (2 / b, 2 / y), (a // 4, x // 4), (a % 4, x % 4),
    ]:
        assert np.array_equal(ours.numpy(), theirs)
    f = RaggedArray([[1.5, -2.5], [7.25]], dtype="float32")
    assert (f * 2).dtype == np.float32 and (f // 2).to_list() == [[0.0, -2.0], [3.0]]
    with pytest.raises(TypeError):
        a + object()
    with pytest.raises(ValueError):
        bool(a > 0)
    with pytest.raises(serrate.Error):
        RaggedArray([[1, 2], [3]]) + RaggedArray([[1, 2, 3], [4, 5]])


def test_reductions():
    a = RaggedArray([[1, 2, 3], [], [5, 4, 1]])
    assert a.sum() == 16 and a.max() == 5 and a.mean() == 16 / 6 and a.count() == 6
    assert a.sum(axis=-1).to_list() == [6, 0, 10] and a.max(axis=-1).to_list() == [3, None, 5]
    assert a.argmin(axis=-1).to_list() == [0, None, 2]
    assert a.median(axis=-1).to_list() == [2.0, None, 4.0]
    assert a.std() == pytest.approx(np.std([1, 2, 3, 5, 4, 1]))
    assert a.var(ddof=1) == pytest.approx(np.var([1, 2, 3, 5, 4, 1], ddof=1))
    assert (a > 2).any() is True and (a > 2).all() is False
    assert a.astype("float64").sqrt().round(2).to_list()[0] == [1.0, 1.41, 1.73]


def test_null_elements_and_lists():
    a = RaggedArray([[1, None], None, []])
    assert a.to_list() == [[1, None], None, []]
    assert a.is_null().leaves.tolist() == [False, True]
    assert np.ma.is_masked(a.leaves) and a.sum() == 1


def test_pickle_and_copy():
    t = RaggedTable(ROWS)
    assert pickle.loads(pickle.dumps(t)) == t and copy.deepcopy(t) == t
    for a in (RaggedArray([[1, 2], []]), RaggedArray([["a"], [None]]), RaggedArray([[1.5, None], None])):
        assert pickle.loads(pickle.dumps(a)).to_list() == a.to_list()
    with pytest.raises(serrate.Error):
        pickle.dumps(t[0])


def test_repr():
    assert repr(RaggedArray([[1], []])) == "RaggedArray([[1], []], shape=(2, None), dtype=int64)"
    assert "code" in repr(RaggedTable(ROWS)) and "<table" in RaggedTable(ROWS)._repr_html_()


def test_conversions_to_torch():
    torch = pytest.importorskip("torch")
    a = RaggedArray([[1.0, 2.0], [3.0]])
    nested = serrate.to_nested(a)
    assert nested.layout == torch.jagged and [t.tolist() for t in nested.unbind()] == [[1.0, 2.0], [3.0]]
    assert nested.values().data_ptr() == a.leaves.__array_interface__["data"][0]
    dense = a.to_dense()
    assert serrate.to_torch(a).tolist() == [[1.0, 2.0], [3.0, 0.0]]
    assert torch.as_tensor(dense).data_ptr() == dense.__array_interface__["data"][0]
    with pytest.raises(ValueError):
        serrate.to_nested(RaggedArray([[[1]]]))


def test_nested_tensors_convert_back():
    torch = pytest.importorskip("torch")
    array = RaggedArray.from_parts(np.arange(4, dtype="f4"), [[0, 3, 3, 4]])
    nested = serrate.to_nested(array)
    assert RaggedArray(nested).to_list() == array.to_list() and RaggedArray(nested).dtype == np.float32
    assert RaggedTable({"x": nested})["x"].to_list() == [[0.0, 1.0, 2.0], [], [3.0]]
    wide = torch.nested.nested_tensor([torch.ones(2, 3), torch.zeros(1, 3)], layout=torch.jagged)
    assert RaggedArray(wide).to_list() == [[[1.0] * 3] * 2, [[0.0] * 3]]


def test_a_forked_process_can_sort(in_child):
    big = RaggedTable({"v": np.random.default_rng(0).integers(0, 9, 200_000)})
    big.sort(["v"])
    assert in_child(lambda: big.sort(["v"])["v"].leaves[:2].tolist()) == "[0, 0]"


def test_offsets_in_64_bits_are_views():
    array = serrate.RaggedArray.from_parts(np.arange(6), [np.array([0, 2, 6])])
    assert array.offsets[0].tolist() == [0, 2, 6] and not array.offsets[0].flags.writeable
    assert np.shares_memory(array.offsets[0], array.offsets[0])
    # Offsets of a slice start at 0, so they are copies.
    assert array[1:].offsets[0].tolist() == [0, 4]

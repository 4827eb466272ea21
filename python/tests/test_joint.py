import copy
import multiprocessing
import pickle

import numpy as np
import pytest

import serrate
from serrate import JointNestedRaggedTensorDict as J

RAW = {
    "S": [1, 2],
    "T": [[1, 2, 3], [4, 5]],
    "id": [[[1, 2, 3], [3, 4], [1, 2]], [[3], [3, 2, 2]]],
}


@pytest.fixture
def path(tmp_path):
    J(RAW).save(tmp_path / "a.nrt")
    return tmp_path / "a.nrt"


def both(path):
    return [J(RAW), J(tensors_fp=path)]


def test_results_are_right_where_upstream_errs(path):
    for j in both(path):
        assert j[-1:].tensors["dim1/T"].tolist() == [4, 5]
        assert j[0:99] == j[:] and len(j[5:9]) == 0 and len(j[1:0]) == 0
        assert sorted(j[np.array([1, 0])].keys()) == ["S", "T", "id"]
        assert j[np.array([1, 1])].tensors["dim0/S"].tolist() == [2, 2]
        assert j[1, -1:].tensors["dim1/id"].tolist() == [3, 2, 2]
        assert len(j[np.array([], dtype=int)]) == 0
        assert j[1:1].to_dense()["dim1/mask"].shape == (0, 0)
    with pytest.raises(ValueError, match="numbers of rows"):
        J({"a": [1, 2, 3], "b": [[1], [2]]})
    with pytest.raises(ValueError):
        J(RAW).squeeze(0)
    slash = J({"a/b": [[1], [2, 3]]})
    assert slash.keys() == {"a/b"} and slash[1].to_dense()["a/b"].tolist() == [2, 3]
    deep = J({"id": [[[1, 2], [3]], [[4]]]})
    assert deep[0, 1].tensors["dim0/id"].tolist() == [3]
    assert J({"x": [[[]], [[1, 2]]]}).flatten().tensors["dim1/bounds"].tolist() == [0, 2]


def test_batches_of_differing_shapes_reuse_memory():
    random = np.random.default_rng(3)
    last = None
    for longest in [300, 700, 320, 500] * 2:
        lengths = random.integers(0, 30, (64, 32))
        lengths[5, 3] = longest
        rows = [[list(range(1, n + 1)) for n in row] for row in lengths]
        dense = J.vstack([J({"code": row}, schema={"code": np.uint16}) for row in rows]).to_dense()
        where = np.arange(longest) < lengths[..., None]
        assert np.array_equal(dense["dim2/mask"], where)
        assert np.array_equal(dense["code"], where * np.arange(1, longest + 1))
        assert last is None or all(array.all() for array in last.values())
        # A training loop holds a batch until it has the next, and may write to it.
        for array in dense.values():
            array[...] = 1
        last = dense


def test_objects_share_the_schema_that_they_are_given():
    schema = {"T": np.int64}
    j = J({"T": [[1], [2]], "x": [[1], [300]]}, schema=schema)
    assert j.schema is schema and schema["x"] is np.uint16
    # meds-torch-data passes the schema of a row to the static facts that it puts before the events.
    row = j[0, :]
    facts = J({"T": [7], "y": [1]}, schema=row.schema)
    assert row.schema is facts.schema and row.schema["y"] is np.uint8
    assert j[0:1].schema.keys() == {"dim1/bounds", "dim1/T", "dim1/x"}
    assert j.unsqueeze(0).schema is schema and j.flatten().schema is schema
    assert J.vstack([j[0], j[1]]).schema == {"T": np.int64, "x": np.uint16}


def test_concatenation_widens_types_under_one_schema():
    schema = {}
    a, b = J({"c": [1, 2]}, schema=schema), J(processed_tensors={"dim0/c": np.array([300])}, schema=schema)
    out = J.concatenate([a, b])
    assert out.tensors["dim0/c"].tolist() == [1, 2, 300]


def test_dense_results_are_owned(path):
    for j in both(path):
        dense = j.to_dense()
        assert all(a.flags.writeable for a in dense.values())
        dense["T"][:] = 0
        assert j.to_dense()["T"].tolist() == [[1, 2, 3], [4, 5, 0]]


def test_tensors_of_a_file_are_owned(path):
    j = J(tensors_fp=path)
    j.tensors["dim1/T"][:] = 0
    assert J(tensors_fp=path).tensors["dim1/T"].tolist() == [1, 2, 3, 4, 5]


def test_objects_without_a_file_can_be_saved(path, tmp_path):
    j = J(tensors_fp=str(path))
    with pytest.raises(ValueError, match="Already saved"):
        j.save(tmp_path / "b.nrt")
    J.save(j[0:1], tmp_path / "b.nrt")
    assert J(tensors_fp=tmp_path / "b.nrt") == J(RAW)[0:1]
    J({}).save(tmp_path / "c.nrt")
    J(RAW).save(tmp_path / "c.nrt")
    assert J(tensors_fp=tmp_path / "c.nrt") == J(RAW)


def test_upstream_reads_what_is_saved(path):
    rn = pytest.importorskip("nested_ragged_tensors.ragged_numpy")
    theirs_class = getattr(rn, "_upstream", rn.JointNestedRaggedTensorDict)
    theirs = theirs_class(tensors_fp=path)
    assert isinstance(theirs, J) and J(tensors_fp=path) == theirs and J(RAW).equals(theirs)
    assert J.concatenate([theirs, J(tensors_fp=path)]).tensors["dim0/S"].tolist() == [1, 2, 1, 2]
    assert not isinstance({}, J) and not isinstance(theirs, type("Other", (J,), {}))


@pytest.mark.parametrize("how", [lambda j: pickle.loads(pickle.dumps(j)), copy.copy, copy.deepcopy])
def test_pickles_and_copies_equal_the_original(path, how):
    for j in [*both(path), J(tensors_fp=path, keys=["T"]), J(RAW)[0], J(RAW)[0:1]]:
        other = how(j)
        assert other == j and other.schema == j.schema and repr(other) == repr(j)
    lazy = how(J(tensors_fp=path))
    assert lazy._tensors is None and len(lazy) == 2


def test_results_of_random_tables_equal_those_of_upstream(tmp_path):
    rn = pytest.importorskip("nested_ragged_tensors.ragged_numpy")
    theirs_class = getattr(rn, "_upstream", rn.JointNestedRaggedTensorDict)
    rng = np.random.default_rng(0)
    for number in range(20):
        rows = int(rng.integers(1, 9))
        t = [[float(x) for x in rng.normal(size=rng.integers(1, 6))] for _ in range(rows)]
        c = [[[int(x) for x in rng.integers(0, 300, rng.integers(1, 5))] for _ in row] for row in t]
        raw = {"t": t, "c": c}
        a, b = J(raw), theirs_class(raw)
        a.save(tmp_path / f"{number}.nrt")
        lazy = J(tensors_fp=tmp_path / f"{number}.nrt")
        for ours in (a, lazy):
            for i in range(rows):
                start = int(rng.integers(0, len(t[i])))
                for index in (i, (i, slice(start, start + 2)), slice(i, rows), np.array([i, 0])):
                    x, y = ours[index], b[index]
                    assert {k: v.tolist() for k, v in x.tensors.items()} == {
                        k: v.tolist() for k, v in y.tensors.items()
                    }
                    assert x.schema == y.schema
            order = rng.integers(0, rows, 3)
            for side in ("left", "right"):
                x = J.vstack([ours[int(i)] for i in order]).to_dense(side)
                y = theirs_class.vstack([b[int(i)] for i in order]).to_dense(side)
                assert x.keys() == y.keys()
                for k in x:
                    assert x[k].dtype == y[k].dtype and np.array_equal(x[k], y[k])
            x, y = ours.flatten().to_dense(), b.flatten().to_dense()
            assert all(np.array_equal(x[k], y[k]) for k in y)


def test_a_forked_process_can_collate(path, in_child):
    # These calls start threads in the parent process.
    serrate.sql("SELECT sum(x) FROM (SELECT unnest(range(100000)) AS x)").collect()
    serrate.RaggedTable({"a": np.arange(1 << 20)}).to_dense()
    j = J(tensors_fp=path)
    assert len(j) == 2

    def collate():
        return J.vstack([j[0], j[1, 0:1]]).to_dense()["T"].tolist()

    assert in_child(collate) == repr([[1, 2, 3], [4, 0, 0]])


def _collate(j):
    return J.vstack([j[0], j[1]]).to_dense()["T"].tolist()


@pytest.mark.parametrize("how", ["fork", "spawn"])
def test_data_loader_workers_can_collate(path, how):
    data = pytest.importorskip("torch.utils.data")
    loader = data.DataLoader(
        Rows(path), batch_size=2, num_workers=2, multiprocessing_context=how, collate_fn=stack
    )
    assert [b["T"].tolist() for b in loader] == [[[1, 2, 3], [4, 5, 0]]]


class Rows:
    def __init__(self, path):
        self.j = J(tensors_fp=path)
        len(self.j)

    def __len__(self):
        return len(self.j)

    def __getitem__(self, i):
        return self.j[i]


def stack(items):
    return J.vstack(items).to_dense()


def test_objects_can_be_sent_to_a_process(path):
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        assert pool.map(_collate, [J(tensors_fp=path)]) == [[[1, 2, 3], [4, 5, 0]]]


def test_only_requested_keys_are_read(path):
    j = J(tensors_fp=path, keys={"T", "S"})
    assert j.keys() == {"T", "S"} and j.max_n_dims == 2 and j.keys_at_dim(0) == {"S"}
    assert set(j[0].tensors) == {"dim0/T", "dim-1/S"}
    assert len(j) == 2 and j.min_n_dims == 1


def test_a_second_index_drops_scalars():
    j = J(RAW)
    assert set(j[0].tensors) == {"dim-1/S", "dim0/T", "dim1/bounds", "dim1/id"}
    assert set(j[0, 1].tensors) == {"dim-1/T", "dim0/id"}
    assert "S" not in J.vstack([j[0], j[1]]).keys()


def test_empty_objects_and_wrong_indices():
    with pytest.raises(ValueError):
        len(J({}))
    for bad in ([1, 2], "T", 1.5, None, ..., np.array([True, False])):
        with pytest.raises(TypeError):
            J(RAW)[bad]
    assert J(RAW)[np.array(1)].to_dense()["T"].tolist() == [4, 5]
    assert J(RAW)[True] == J(RAW)[1]


def test_slices_of_a_lazily_flattened_row(tmp_path):
    raw = {"T": [[1, 2, 3, 4, 5]], "id": [[[], [1, 2, 3], [], [4], [5, 6]]]}
    J(raw).save(tmp_path / "a.nrt")
    path = tmp_path / "a.nrt"
    for j in (J(raw), J(tensors_fp=path), J(tensors_fp=path, keys=["T", "id"])):
        row = j[0]
        whole = row.flatten()
        dense = whole.to_dense()
        assert (dense["id"].tolist(), dense["T"].tolist()) == ([1, 2, 3, 4, 5, 6], [2, 0, 0, 4, 5, 0])
        for start in range(-7, 8):
            for stop in (None, *range(-7, 8)):
                lazy = row.flatten()
                assert (len(lazy), lazy.max_n_dims) == (6, 1)
                part = lazy[start:stop]
                assert part == whole[start:stop] and part.schema == whole[start:stop].schema
                assert part.tensors["dim0/id"].tolist() == dense["id"][start:stop].tolist()
                assert lazy.schema == whole.schema and lazy == whole
        with pytest.raises(ValueError, match="step"):
            row.flatten()[::2]
        assert row.flatten()[2].tensors["dim-1/T"] == 0 and row.flatten()[np.array([1, 0])].keys() == {"T", "id"}
        assert pickle.loads(pickle.dumps(row.flatten())) == whole
        parts = [row.flatten()[:2], row.flatten()[3:]]
        assert J.vstack(parts).to_dense()["T"].tolist() == [[2, 0, 0], [4, 5, 0]]
        assert J.concatenate(parts).tensors["dim0/id"].tolist() == [1, 2, 4, 5, 6]


def test_slices_of_different_types_are_not_stacked():
    one, other = J({"a": [[1, 2]]})[0][:1], J({"a": [[1, 300]]})[0][:1]
    with pytest.raises(ValueError, match="Schema inconsistent"):
        J.vstack([one, other])
    assert J.vstack([one, one]).to_dense()["a"].tolist() == [[1], [1]]


def same_dense(a, b):
    assert list(a) == list(b)
    for name in a:
        assert a[name].dtype == b[name].dtype and a[name].shape == b[name].shape, name
        assert np.array_equal(a[name], b[name], equal_nan=a[name].dtype.kind == "f"), name


def test_vstack_is_deferred_until_tensors_are_needed(path, tmp_path):
    J({"T": RAW["T"], "id": RAW["id"]}).save(tmp_path / "deep.nrt")
    for j in (*both(path), J(tensors_fp=tmp_path / "deep.nrt"), J(tensors_fp=path, keys=["id"])):
        for parts in ([j[0], j[1]], [j[0, 1:], j[1, 2:], j[0, :1], j[1]], [j[:1], j[:], j[1:1]]):
            for side in ("left", "right"):
                stack, eager = J.vstack(parts), J.vstack(parts)
                eager._core()
                assert len(stack) == len(eager) == len(parts)
                same_dense(stack.to_dense(side), eager.to_dense(side))
                assert stack._parts is not None and all(a.flags.writeable for a in stack.to_dense().values())
            assert stack.keys() == eager.keys() and stack._parts is None
            for use in (
                lambda s: s.tensors, lambda s: s[0].tensors, lambda s: s[0:1].tensors,
                lambda s: pickle.loads(pickle.dumps(s)).tensors, lambda s: copy.copy(s).tensors,
                lambda s: J.vstack([s, s]).tensors, lambda s: s.flatten().tensors, lambda s: s.unsqueeze(0).tensors,
            ):
                same_dense(use(J.vstack(parts)), use(eager))
            assert J.vstack(parts) == eager and J.vstack(parts).max_n_dims == eager.max_n_dims
            assert repr(J.vstack(parts)) == repr(eager) and J.vstack(parts).schema == eager.schema


def test_vstack_checks_keys_and_types(path):
    row = J(tensors_fp=path)[0]
    with pytest.raises(ValueError, match="Keys inconsistent"):
        J.vstack([row, J({"T": [1], "x": [[1]]})])
    with pytest.raises(ValueError, match="Max dims inconsistent"):
        J.vstack([J({"a": [1, 2]}), J({"a": [[1], [2]]})])
    with pytest.raises(ValueError, match="padding_side"):
        J.vstack([row, row]).to_dense(padding_side="up")
    flags = J.vstack([J({"b": [True, False]}), J({"b": [True]})])
    assert flags.to_dense()["b"].tolist() == [[True, False], [True, False]]
    # The key `a` has two types, the default and the `uint8` of a schema.
    small = J({"a": [[1, 2], [3]]}, schema={"a": np.uint8})
    same_dense(
        J.vstack([small, J({"a": [[4], [5, 6]]})]).to_dense(), J.vstack([small, small]).to_dense()
        | {"a": np.array([[[1, 2], [3, 0]], [[4, 0], [5, 6]]], np.uint8),
           "dim2/mask": np.array([[[1, 1], [1, 0]], [[1, 0], [1, 1]]], bool)},
    )


def test_slices_of_one_row_are_read_from_the_file(path, tmp_path):
    deep = {"T": [[1, 2, 3], [], [4, 5]], "id": [[[1, 2, 3], [], [1, 2]], [], [[3], [3, 2, 2]]]}
    tensors = {
        "dim1/bounds": np.array([3, 3, 5]), "dim1/T": np.arange(1, 6, dtype=np.uint8),
        "dim2/bounds": np.array([3, 3, 5, 6, 9]), "dim2/id": np.array([1, 2, 3, 1, 2, 3, 3, 2, 2], np.uint8),
    }
    J(processed_tensors=tensors).save(tmp_path / "deep.nrt")
    bounds = [(None, None), (1, None), (-1, None), (0, 99), (2, 1), (5, 9)]
    slices = [slice(*each) for each in bounds] + [slice(None, None, 1)]
    for keys in (None, ["T"], ["id"], ["T", "id"]):
        file = J(tensors_fp=tmp_path / "deep.nrt", keys=keys)
        for row in (0, 1, 2, -1, np.int64(1)):
            whole = file[row]
            for within in slices:
                found = file[row, within]
                assert found == whole[within] and len(found) == len(whole[within])
                if keys is None:
                    assert found.to_dense()["T"].tolist() == deep["T"][row][within] if len(found) else True
        with pytest.raises(IndexError, match=r"Index 3 is out of range at dim 0 \(length 3\)."):
            file[3, 0:1]
        with pytest.raises(ValueError, match="step size"):
            file[0, ::2]
    # An index of a row makes a key with one value per row a scalar.
    assert J(tensors_fp=path)[1, 0:1].tensors == J(RAW)[1, 0:1].tensors

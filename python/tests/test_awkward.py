import numpy as np
import pytest

import serrate
from serrate import RaggedArray, RaggedTable

ak = pytest.importorskip("awkward")
pytest.importorskip("pyarrow")

from serrate.awkward import from_awkward, to_awkward  # noqa: E402


def address(array):
    return array.__array_interface__["data"][0]


def leaves(array):
    layout = ak.to_layout(array)
    while not isinstance(layout, ak.contents.NumpyArray):
        layout = layout.content
    return layout.data


def test_leaves_are_not_copied():
    a = RaggedArray([[[1, 2], [3]], [], [[4, 5, 6]]])
    there = to_awkward(a)
    assert str(there.type) == "3 * var * var * int64" and there.to_list() == a.to_list()
    assert address(leaves(there)) == address(a.leaves)
    back = from_awkward(there)
    assert back.equals(a) and address(back.leaves) == address(a.leaves)


def test_results_outlive_the_array_that_they_convert():
    there = to_awkward(RaggedArray(np.arange(1e6)))
    back = from_awkward(ak.Array([np.arange(5.0), np.arange(3.0)]))
    assert there[-1] == 999999 and back.sum() == 13


@pytest.mark.parametrize("rows", [
    [1, 2, 3], [], [[]], [[], [1.5]], [[1, None], None, []], [["a", "b"], []], [[True, False], [True]],
    [[[1], None], None], [None, 2],
])
def test_arrays_survive_a_round_trip(rows):
    a = RaggedArray(rows)
    assert to_awkward(a).to_list() == rows
    assert from_awkward(ak.Array(rows)).to_list() == rows
    assert from_awkward(to_awkward(a)).to_list() == rows


def test_slices_and_selections_convert():
    a = RaggedArray([[1], [2, 3], [4, 5, 6]])
    assert to_awkward(a[1:]).to_list() == [[2, 3], [4, 5, 6]]
    there = ak.Array([[1], [2, 3], [4, 5, 6]])
    assert from_awkward(there[1:]).to_list() == [[2, 3], [4, 5, 6]]
    assert from_awkward(there[[2, 0]]).to_list() == [[4, 5, 6], [1]]
    assert from_awkward(ak.to_regular(ak.Array([[1, 2], [3, 4]]))).numpy().tolist() == [[1, 2], [3, 4]]
    assert from_awkward(ak.Array(np.arange(6).reshape(2, 3))).numpy().tolist() == [[0, 1, 2], [3, 4, 5]]


def test_tables_convert_to_records_and_back():
    t = RaggedTable({"age": [71, 38], "code": [[[1, 2], [3]], [[4]]]})
    there = to_awkward(t)
    assert there.code[0].to_list() == [[1, 2], [3]] and there[1].age == 38
    assert from_awkward(there) == t
    with pytest.raises(TypeError):
        to_awkward([1])
    with pytest.raises(TypeError):
        from_awkward([1])
    for rows in ([1, "a"], [[1, [2]], []]):
        with pytest.raises(serrate.WrongTypeError, match="one kind"):
            from_awkward(ak.Array(rows))
    assert from_awkward(ak.Array([[{"x": 1}], []])).to_list() == [[{"x": 1}], []]

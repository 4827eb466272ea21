"""Reads sparse tensors and dictionaries that SQL writes with safetensors and SciPy, and the other way round.

    python3 -m venv venv && venv/bin/pip install -r tests/interop/dok.txt
    cargo build --release
    venv/bin/python tests/interop/dok_files.py target/release/serrate
"""

import itertools
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import scipy.sparse
from safetensors import safe_open
from safetensors.numpy import save_file

DTYPES = {
    "BOOLEAN": "bool", "TINYINT": "int8", "SMALLINT": "int16", "INT": "int32", "BIGINT": "int64",
    "TINYINT UNSIGNED": "uint8", "SMALLINT UNSIGNED": "uint16", "INT UNSIGNED": "uint32",
    "BIGINT UNSIGNED": "uint64", "FLOAT": "float32", "DOUBLE": "float64",
}  # fmt: skip


def opened(path):
    """Returns the tensors and the metadata of a file."""
    with safe_open(path, "np") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, file.metadata()


def dense(path):
    """Checks a file of a sparse tensor and returns the tensor as an array."""
    tensors, about = opened(path)
    assert tensors.keys() == {"indices", "values"} and about["format"] == "serrate.dok", about
    indices, values, shape = tensors["indices"], tensors["values"], tuple(json.loads(about["shape"]))
    assert indices.dtype == np.int64 and indices.shape == (len(shape), len(values))
    assert (indices >= 0).all() and (indices < np.array(shape)[:, None]).all()
    places = np.ravel_multi_index(indices, shape)
    assert (np.diff(places) > 0).all(), "entries are not sorted in row-major order, or not distinct"
    assert (values != 0).all()
    out = np.zeros(shape, values.dtype)
    out[tuple(indices)] = values
    if len(shape) == 2 and values.dtype != bool:
        assert (scipy.sparse.coo_array((values, indices), shape).toarray() == out).all()
    return out


class Serrate:
    def __init__(self, command, folder):
        self.command, self.folder = pathlib.Path(command).resolve(), folder

    def run(self, *statements):
        text = ";\n".join(statements)
        return subprocess.run([self.command, "--format", "ndjson", "-c", text], cwd=self.folder, capture_output=True, text=True)

    def __call__(self, *statements):
        done = self.run(*statements)
        assert done.returncode == 0, (statements, done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def refuses(self, *statements):
        done = self.run(*statements)
        assert done.returncode == 1 and done.stderr.startswith("error: "), (statements, done)
        return done.stderr


def saved(serrate, folder):
    """Checks files of every type of values, and files that statements have changed."""
    for sql, numpy in DTYPES.items():
        name = f"{numpy}.safetensors"
        query = f"SELECT value % 7 AS i, value % 11 AS j, CAST(value % 2 AS {sql}) AS v FROM range(0, 60)"
        serrate(f"COPY ({query}) TO '{name}' STORED AS DOK OPTIONS (shape '8, 11')")
        expected = np.zeros((8, 11), numpy)
        for n in range(60):
            expected[n % 7, n % 11] = n % 2
        found = dense(folder / name)
        assert found.dtype == expected.dtype and (found == expected).all(), name
    table = "CREATE EXTERNAL TABLE m STORED AS DOK LOCATION 'float64.safetensors'"
    serrate(table, "UPDATE m SET v = i + 0.5 WHERE j < 5", "DELETE FROM m WHERE i = 3", "INSERT INTO m VALUES (7, 10, -2), (0, 0, 0)")
    i, j = np.indices(expected.shape)
    expected = dense(folder / "bool.safetensors").astype("float64")
    expected[(expected != 0) & (j < 5)] = (i + 0.5)[(expected != 0) & (j < 5)]
    expected[3], expected[7, 10], expected[0, 0] = 0, -2, 0
    assert (dense(folder / "float64.safetensors") == expected).all()
    serrate(table, "TRUNCATE m")
    assert not dense(folder / "float64.safetensors").any()
    wide = "SELECT 3000000000 AS i, 2000000000 AS j, 1.5 AS v"
    serrate(f"COPY ({wide}) TO 'wide.safetensors' STORED AS DOK")
    tensors, about = opened(folder / "wide.safetensors")
    assert json.loads(about["shape"]) == [3000000001, 2000000001] and tensors["indices"].tolist() == [[3000000000], [2000000000]]


def read(serrate, folder):
    """Checks that SQL reads files of Python, with all types and with unsorted entries."""
    rng = np.random.default_rng(3)
    for numpy, index in itertools.product(DTYPES.values(), ("int64", "int32", "uint8")):
        array = rng.integers(0, 2, (4, 5, 6)).astype(numpy)
        indices = np.array(np.nonzero(array))
        # safetensors writes the memory of an array, so make it contiguous.
        indices = np.ascontiguousarray(indices[:, rng.permutation(indices.shape[1])])
        save_file({"indices": indices.astype(index), "values": array[tuple(indices)]}, folder / "p.safetensors", {"shape": "[4, 5, 6]"})
        table = "CREATE EXTERNAL TABLE p STORED AS DOK LOCATION 'p.safetensors'"
        [row] = serrate(table, "SELECT count(*) AS n FROM p")
        assert row["n"] == np.count_nonzero(array)
        [row] = serrate(table, "SELECT dok_get('p', [0, 1, 2, 3, 9], [1, 2, 3, 4, 0], 5) AS v, dok_contains('p', -1, -1, -1) AS last")
        expected = [array[k, k + 1, 5].item() for k in range(4)] + [numpy == "bool" and False]
        assert row["v"] == expected and row["last"] == bool(array[-1, -1, -1]), (row, expected)


def refused(serrate, folder):
    """Checks that invalid tensors are refused."""
    pairs = np.array([[0, 1], [1, 1]])
    values = np.array([1.0, 2.0])
    for message, tensors, about in [
        ("shape", {"indices": pairs, "values": values}, {}),
        ("shape", {"indices": pairs, "values": values}, {"shape": "[2"}),
        ("axis 1, where coordinates must be at least 0 and less than", {"indices": pairs, "values": values}, {"shape": "[2, 1]"}),
        ("coordinate -1", {"indices": -pairs, "values": values}, {"shape": "[2, 2]"}),
        ("[2, 2]", {"indices": pairs, "values": values}, {"shape": "[2, 2, 2]"}),
        ("integers", {"indices": pairs.astype("float32"), "values": values}, {"shape": "[2, 2]"}),
        ("more", {"indices": pairs, "values": values, "more": values}, {"shape": "[2, 2]"}),
        ("values", {"indices": pairs}, {"shape": "[2, 2]"}),
        ("", {"indices": np.ones((2, 2), "int64"), "values": values}, {"shape": "[2, 2]"}),
        ("2^63", {"indices": pairs, "values": values}, {"shape": "[4294967296, 4294967296]"}),
    ]:
        save_file(tensors, folder / "bad.safetensors", about)
        said = serrate.refuses("CREATE EXTERNAL TABLE b STORED AS DOK LOCATION 'bad.safetensors'", "SELECT * FROM b")
        assert message in said and "bad.safetensors" in said, (message, said)


def dictionary(serrate, folder):
    """Checks a dictionary with keys of several columns, which only numpy reads back."""
    query = "SELECT * FROM (VALUES (1, 'α', 0.5), (1, '', 2.0), (2, 'α', 4.0)) AS t (subject_id, code, weight)"
    serrate(f"COPY ({query}) TO 'd.safetensors' STORED AS DOK OPTIONS (keys 'subject_id, code')")
    tensors, about = opened(folder / "d.safetensors")
    assert about["format"] == "serrate.dictionary"
    assert [c["name"] for c in json.loads(about["columns"])] == ["subject_id", "code", "weight"]
    ends = [0, *tensors["keys/code/ends"].tolist()]
    texts = tensors["keys/code/bytes"].tobytes()
    texts = [texts[a:b].decode() for a, b in zip(ends, ends[1:])]
    codes = [texts[n] for n in tensors["keys/code"]]
    rows = sorted(zip(tensors["keys/subject_id"].tolist(), codes, tensors["values/weight"].tolist()))
    assert rows == [(1, "", 2.0), (1, "α", 0.5), (2, "α", 4.0)], rows


def main(command):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        serrate = Serrate(command, folder)
        for check in (saved, read, refused, dictionary):
            check(serrate, folder)
        assert not list(folder.glob(".serrate*")), "files are left behind"
    print("sparse tensors and dictionaries agree in both directions")


if __name__ == "__main__":
    main(sys.argv[1])

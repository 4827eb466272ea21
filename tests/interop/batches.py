"""Runs the Python code of docs/training.md, unchanged, on batches that the command writes.

    python3 -m venv venv && venv/bin/pip install -r tests/interop/batches.txt
    cargo build --release
    venv/bin/python tests/interop/batches.py target/release/serrate
"""

import pathlib
import re
import subprocess
import sys
import tempfile

import torch
from torch.utils.data import DataLoader

ROOT = pathlib.Path(__file__).parent.parent.parent
COHORT = ROOT / "tests/data/synthea-meds-torch-data"
LABELS = ROOT / "tests/data/synthea-meds/labels"


def documented():
    """Returns the class `Batches` and the function `stream` that the Python code of the document defines."""
    text = (ROOT / "docs/training.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.S)
    assert len(blocks) == 2, len(blocks)
    names = {"__name__": "documented"}
    for block in blocks:
        exec(compile(block, "docs/training.md", "exec"), names)
    return names["Batches"], names["stream"]


def equal(a, b):
    assert a.keys() == b.keys(), (a.keys(), b.keys())
    for name in a:
        assert a[name].dtype == b[name].dtype and torch.equal(a[name], b[name]), name


def main(command):
    Batches, stream = documented()
    arguments = [command, "batches", str(COHORT), "--batch", "5", "--len", "16", "--shuffle", "--seed", "7", "--epochs", "2"]
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "batches"
        subprocess.run([*arguments, "-o", str(out)], check=True)
        alone = list(DataLoader(Batches(str(out)), batch_size=None))
        assert len(alone) == len(Batches(str(out))) == 12, len(alone)
        for epoch in range(2):
            part = list(DataLoader(Batches(str(out), epoch=epoch), batch_size=None))
            subjects = torch.cat([b["subject_id"] for b in part])
            assert len(part) == 6 and len(subjects) == 28 == len(set(subjects.tolist()))
        assert not torch.equal(alone[0]["subject_id"], alone[6]["subject_id"])
        for batch in alone:
            shape = batch["code"].shape
            assert batch["code"].dtype == torch.int64 and shape[1] <= 16
            assert batch["numeric_value"].shape == batch["numeric_value_mask"].shape == shape
            assert batch["time_delta_days"].dtype == torch.float32
            assert not batch["numeric_value_mask"][batch["code"] == 0].any()

        # DataLoader workers share the batches, so each batch occurs once.
        workers = list(DataLoader(Batches(str(out)), batch_size=None, num_workers=2))
        assert len(workers) == 12
        key = lambda b: (b["subject_id"].tolist(), b["code"].tolist())
        assert sorted(map(key, workers)) == sorted(map(key, alone))

        # The stream has the same batches.
        piped = list(stream(*arguments))
        assert len(piped) == 12
        # A failed child process raises an error. A child process ends when nobody reads its stream any more.
        try:
            list(stream(command, "batches", "nowhere", "--batch", "5", "--len", "16"))
        except subprocess.CalledProcessError as e:
            assert e.returncode == 1, e
        else:
            raise AssertionError("a child that failed looks like an empty stream")
        equal(next(stream(*arguments)), alone[0])
        for a, b in zip(piped, alone):
            equal(a, b)

        # All labels of the cohort are in the batches.
        task = pathlib.Path(folder) / "task"
        subprocess.run(
            [command, "batches", str(COHORT), "--labels", str(LABELS), "--batch", "100", "--len", "32", "-o", str(task)], check=True
        )
        labels = list(DataLoader(Batches(str(task)), batch_size=None))
        assert sum(len(b["subject_id"]) for b in labels) == 1715
        assert all(b["boolean_value"].dtype == torch.bool for b in labels)

        # COPY writes the result of a query as batches.
        query = pathlib.Path(folder) / "query"
        sql = (
            "COPY (SELECT subject_id, boolean_value, ragged_tail(time_delta_days, 16) AS days, ragged_tail(code_id, 16) AS code "
            f"FROM meds_asof('{COHORT}', '{LABELS}')) TO '{query}' STORED AS BATCHES (batch 100, len 16)"
        )
        subprocess.run([command, "-c", sql], check=True)
        rows = list(DataLoader(Batches(str(query)), batch_size=None))
        for a, b in zip(rows, labels, strict=True):
            assert torch.equal(a["subject_id"], b["subject_id"]) and torch.equal(a["boolean_value"], b["boolean_value"])
            assert a["days"].shape == a["dim1/mask"].shape and a["code"].shape == a["dim2/mask"].shape
    print("the Python of docs/training.md does what it says")


if __name__ == "__main__":
    main(*sys.argv[1:])

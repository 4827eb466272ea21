"""meds-torch-data gives the same batches on our class as on upstream's."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("meds_torchdata")

DATA = Path(__file__).resolve().parents[2] / "tests" / "data"

SCRIPT = """
import itertools, json, sys
import numpy as np
from torch.utils.data import DataLoader
cohort, labels, out = sys.argv[1:4]
from meds_torchdata import MEDSPytorchDataset, MEDSTorchDataConfig

def config(mode, static, side, strategy, labelled):
    return MEDSTorchDataConfig(
        tensorized_cohort_dir=cohort, max_seq_len=20, batch_mode=mode, static_inclusion_mode=static,
        padding_side=side, seq_sampling_strategy=strategy, task_labels_dir=labels if labelled else None,
    )

found = {}
for mode, static, side, strategy, labelled in itertools.product(
    ("SM", "SEM"), ("omit", "include", "prepend"), ("left", "right"), ("to_end", "from_start"), (False, True)
):
    if labelled and strategy != "to_end":
        continue
    data = MEDSPytorchDataset(config(mode, static, side, strategy, labelled), split="train")
    workers = [(0, None)]
    if mode == "SEM" and side == "right" and strategy == "to_end" and not labelled:
        workers += [(2, "fork"), (2, "spawn")] if static == "include" else [(2, "fork")]
    for number, how in workers:
        for at, batch in enumerate(DataLoader(
            data, batch_size=8, collate_fn=data.collate, num_workers=number, multiprocessing_context=how
        )):
            if at > 3:
                break
            for name, tensor in vars(batch).items():
                if hasattr(tensor, "numpy"):
                    found["|".join(map(str, (mode, static, side, strategy, labelled, number, how, at, name)))] = tensor.numpy()
np.savez(out, **found)
import nested_ragged_tensors.ragged_numpy as rn
print(rn.JointNestedRaggedTensorDict.__module__)
"""


def batches(tmp_path, name, *before):
    script = tmp_path / "script.py"
    script.write_text(
        "def main():\n" + "\n".join("    " + line for line in SCRIPT.strip().splitlines())
        + "\nif __name__ == '__main__':\n    main()\n"
    )
    out = tmp_path / f"{name}.npz"
    labels = DATA / "synthea-meds" / "labels" / "task"
    folders = [p for p in (DATA / "synthea-meds" / "labels").iterdir() if p.is_dir()]
    labels = folders[0] if folders else DATA / "synthea-meds" / "labels"
    command = [sys.executable, *before, script, DATA / "synthea-meds-torch-data", labels, out]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout.strip().splitlines()[-1], dict(np.load(out))


def test_batches(tmp_path):
    which, theirs = batches(tmp_path, "theirs")
    assert which == "nested_ragged_tensors.ragged_numpy"
    which, ours = batches(tmp_path, "ours", "-m", "serrate.patch", sys.executable)
    assert which == "serrate.joint"
    assert ours.keys() == theirs.keys() and len(theirs) > 400
    for name, expected in theirs.items():
        assert ours[name].dtype == expected.dtype and np.array_equal(ours[name], expected, equal_nan=expected.dtype.kind == "f"), name

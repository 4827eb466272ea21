"""meds-torch-data gives the same batches and files on our class as on upstream's.

With SERRATE_ALL_WORKERS=1, the batches of every mode are also compared in forked and spawned workers; with
SERRATE_MTD_CHECKOUT, the tests of that checkout of meds-torch-data 0.9.0 are run under the patch.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("meds_torchdata")

DATA = Path(__file__).resolve().parents[2] / "tests" / "data"

SCRIPT = """
import itertools, os, sys
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
    if os.environ.get("SERRATE_ALL_WORKERS") == "1":
        workers += [(2, "fork"), (2, "spawn")]
    elif mode == "SEM" and side == "right" and strategy == "to_end" and not labelled:
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


def test_preprocessing(tmp_path):
    safe_open = pytest.importorskip("safetensors").safe_open
    polars = pytest.importorskip("polars")
    tool = Path(sys.executable).parent / "MTD_preprocess"
    outputs = []
    for name, before in (("theirs", []), ("ours", [sys.executable, "-m", "serrate.patch"])):
        out = tmp_path / name
        command = [*before, tool, f"MEDS_dataset_dir={DATA / 'synthea-meds'}", f"output_dir={out}"]
        # The command finds those of its steps by PATH.
        environment = {**os.environ, "PATH": f"{tool.parent}{os.pathsep}{os.environ['PATH']}"}
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True, cwd=tmp_path, env=environment)
        assert done.returncode == 0, done.stderr[-3000:]
        outputs.append({p.relative_to(out): p for p in out.rglob("*") if p.suffix in (".nrt", ".parquet")})
    theirs, ours = outputs
    assert ours.keys() == theirs.keys() and sum(p.suffix == ".nrt" for p in ours) >= 4
    for name, path in theirs.items():
        if name.suffix == ".parquet":
            ours_read, theirs_read = polars.read_parquet(ours[name]), polars.read_parquet(path)
            if name.name == "codes.parquet":
                # Polars groups by code on several threads, in any order.
                ours_read, theirs_read = ours_read.sort("code"), theirs_read.sort("code")
            assert ours_read.equals(theirs_read), name
            continue
        with safe_open(path, "np") as a, safe_open(ours[name], "np") as b:
            assert set(a.keys()) == set(b.keys())
            for key in a.keys():
                x, y = a.get_tensor(key), b.get_tensor(key)
                assert x.dtype == y.dtype and np.array_equal(x, y, equal_nan=x.dtype.kind == "f"), (name, key)


@pytest.mark.skipif("SERRATE_MTD_CHECKOUT" not in os.environ, reason="SERRATE_MTD_CHECKOUT names no checkout")
def test_their_tests():
    command = [sys.executable, "-m", "serrate.patch", sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    root = Path(os.environ["SERRATE_MTD_CHECKOUT"])
    # Its examples are those of the checkout, which stands before the installed package.
    environment = {**os.environ, "PYTHONPATH": str(root / "src")}
    done = subprocess.run([*command, "src", "tests"], cwd=root, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-5000:]

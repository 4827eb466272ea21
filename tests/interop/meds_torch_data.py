"""Reads the output of `serrate convert --to meds-torch-data` with meds-torch-data.

    python3 -m venv venv && venv/bin/pip install -r tests/interop/meds-torch-data.txt
    cargo build --release --no-default-features --features parquet --example tensorize
    venv/bin/python tests/interop/meds_torch_data.py "target/release/examples/tensorize --normalize"

The argument is run as `COMMAND MEDS OUT`; `serrate convert --to meds-torch-data --normalize` is also possible.
`MTD_preprocess` writes its own cohort of the same data (`tests/data/synthea-meds`, or the folder in the second
argument). The tensors, schemas and codes of both cohorts are compared, and then the batches of `MEDSPytorchDataset`
over both, in its two modes: subject x measurement and subject x event x measurement.
"""

import argparse
import itertools
import pathlib
import shlex
import subprocess
import sys
import tempfile

import numpy as np
import polars as pl
import torch
from meds_torchdata import MEDSPytorchDataset, MEDSTorchDataConfig
from safetensors.numpy import load_file

HERE = pathlib.Path(__file__).parent
DATA = HERE.parent / "data" / "synthea-meds"


def close(a, b, where):
    assert a.shape == b.shape and a.dtype == b.dtype, where
    if np.issubdtype(a.dtype, np.floating):
        assert np.allclose(a, b, rtol=1e-5, atol=1e-5, equal_nan=True), where
    else:
        assert np.array_equal(a, b), where


def shards(root):
    schemas = root / "tokenization" / "schemas"
    return sorted(p.relative_to(schemas).with_suffix("").as_posix() for p in schemas.rglob("*.parquet"))


def compare_files(ours, theirs):
    assert shards(ours) == shards(theirs), (shards(ours), shards(theirs))
    shifted = 0
    for shard in shards(ours):
        a, b = (pl.read_parquet(r / "tokenization" / "schemas" / f"{shard}.parquet") for r in (ours, theirs))
        assert a.schema == b.schema, (shard, a.schema, b.schema)
        floats = "static_numeric_value"
        assert a.drop(floats).equals(b.drop(floats)), shard
        x, y = (t[floats].list.explode(empty_as_null=False, keep_nulls=False).fill_null(float("nan")).to_numpy() for t in (a, b))
        close(x, y, f"{shard} {floats}")
        x, y = (load_file(r / "data" / f"{shard}.nrt") for r in (ours, theirs))
        if a["time"].null_count():
            # Only our cohort has rows without events. They add no values.
            shifted += 1
            x["dim1/bounds"] = x["dim1/bounds"][a["time"].is_not_null().to_numpy()]
        assert x.keys() == y.keys(), shard
        for name in x:
            close(x[name], y[name], f"{shard} {name}")
    a, b = (pl.read_parquet(r / "metadata" / "codes.parquet").sort("code") for r in (ours, theirs))
    assert a.schema == b.schema and a.drop("values/sum", "values/sum_sqd").equals(b.drop("values/sum", "values/sum_sqd"))
    for name in ("values/sum", "values/sum_sqd"):
        close(a[name].to_numpy(), b[name].to_numpy(), name)
    print(f"{len(shards(ours))} shards are the same, {shifted} with rows that the other tool leaves out")
    return shifted


def batches(root, labels, **config):
    if labels:
        config["task_labels_dir"] = str(labels)
    config = MEDSTorchDataConfig(tensorized_cohort_dir=str(root), **config)
    for split in ("train", "tuning", "held_out"):
        dataset = MEDSPytorchDataset(config, split=split)
        for start in range(0, len(dataset), 8):
            rows = range(start, min(start + 8, len(dataset)))
            yield dataset.collate([dataset._seeded_getitem(i, seed=i) for i in rows])


def compare_batches(ours, theirs, labels):
    total = 0
    for mode, strategy, static, side in itertools.product(
        ("SM", "SEM"), ("from_start", "to_end", "random"), ("include", "prepend", "omit"), ("right", "left")
    ):
        for task in (None, labels):
            if task and strategy != "to_end":
                continue
            if static == "prepend" and (side == "left" or strategy == "random"):
                continue
            config = {
                "batch_mode": mode,
                "max_seq_len": 32,
                "seq_sampling_strategy": strategy,
                "static_inclusion_mode": static,
                "padding_side": side,
            }
            where = f"{config} labels={task is not None}"
            for a, b in itertools.zip_longest(batches(ours, task, **config), batches(theirs, task, **config)):
                assert a is not None and b is not None, where
                assert list(a.keys()) == list(b.keys()), where
                for name in a.keys():
                    x, y = a[name], b[name]
                    if torch.is_tensor(x):
                        close(x.numpy(), y.numpy(), f"{where} {name}")
                    else:
                        assert x == y, (where, name)
                total += 1
    print(f"{total} batches are the same")


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("command", help="run as COMMAND MEDS OUT")
    arguments.add_argument("meds", nargs="?", type=pathlib.Path, default=DATA)
    arguments = arguments.parse_args()
    labels = next(iter(sorted((arguments.meds / "labels").glob("*"))), None)
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = pathlib.Path(folder, "ours"), pathlib.Path(folder, "theirs")
        command = [*shlex.split(arguments.command), str(arguments.meds), str(ours)]
        subprocess.run(command, check=True)
        tool = pathlib.Path(sys.executable).parent / "MTD_preprocess"
        subprocess.run(
            [tool, f"MEDS_dataset_dir={arguments.meds.resolve()}", f"output_dir={theirs}"],
            check=True, cwd=folder, env={"PATH": f"{tool.parent}:/usr/bin:/bin", "HOME": folder},
        )  # fmt: skip
        shifted = compare_files(ours, theirs)
        # If our cohort has additional rows, batches of the other cohort have the wrong patients, so read only ours.
        compare_batches(ours, ours if shifted else theirs, labels)


if __name__ == "__main__":
    main()

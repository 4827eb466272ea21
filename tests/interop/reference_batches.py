"""Writes batches of meds-torch-data and their configurations, for the test that compares ours with them.

    python3 -m venv venv && venv/bin/pip install -r tests/interop/meds-torch-data.txt
    venv/bin/python tests/interop/reference_batches.py FOLDER
    SERRATE_REFERENCE_BATCHES=FOLDER cargo test --no-default-features --features generate,parquet --test loader reference

Configurations are random: both modes, the windows that are not random, all options of static facts, both padding sides,
lengths from 1 on, all splits, with and without labels, batches of 1 to 8 items. All of them include times, because
meds-torch-data 0.9.0 without times returns the events of the first subjects of a shard for all others.
"""

import argparse
import json
import pathlib
import random

import numpy as np
from meds_torchdata import MEDSPytorchDataset, MEDSTorchDataConfig
from safetensors.numpy import save_file

HERE = pathlib.Path(__file__).parent
DATA = HERE.parent / "data"


def draw(rng):
    config = {
        "max_seq_len": rng.choice([1, 2, 3, 5, 8, 16, 33, 128, 700]),
        "seq_sampling_strategy": rng.choice(["from_start", "to_end", "step_through"]),
        "batch_mode": rng.choice(["SM", "SEM"]),
        "static_inclusion_mode": rng.choice(["include", "prepend", "omit"]),
        "padding_side": rng.choice(["left", "right"]),
    }
    if config["seq_sampling_strategy"] == "step_through":
        if rng.random() < 0.5:
            config["step_through_stride"] = rng.randint(1, max(1, config["max_seq_len"] // 2))
        else:
            config["step_through_overlap"] = rng.randint(0, config["max_seq_len"] // 2)
    for name, share in [
        ("include_numeric_value", 0.15),
        ("include_subject_window_counts_in_batch", 0.8),
    ]:
        if rng.random() < share:
            config[name] = name.startswith("include_subject")
    return config


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("folder", type=pathlib.Path)
    arguments.add_argument("--cohort", type=pathlib.Path, default=DATA / "synthea-meds-torch-data")
    arguments.add_argument("--meds", type=pathlib.Path, default=DATA / "synthea-meds")
    arguments.add_argument("--count", type=int, default=200)
    arguments.add_argument("--seed", type=int, default=1)
    arguments = arguments.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    tasks = sorted(p.name for p in (arguments.meds / "labels").glob("*"))
    rng = random.Random(arguments.seed)
    made = refused = 0
    while made < arguments.count:
        config, split = draw(rng), rng.choice(["train", "tuning", "held_out"])
        task = rng.choice(tasks) if tasks and config["seq_sampling_strategy"] == "to_end" and rng.random() < 0.5 else ""
        own = dict(config, tensorized_cohort_dir=str(arguments.cohort))
        if task:
            own["task_labels_dir"] = str(arguments.meds / "labels" / task)
        try:
            dataset = MEDSPytorchDataset(MEDSTorchDataConfig(**own), split=split)
            items = [rng.randrange(len(dataset)) for _ in range(rng.randint(1, 8))]
            batch = dataset.collate([dataset[i] for i in items])
        except Exception as error:  # meds-torch-data refuses the configuration, so there is nothing to compare with.
            refused += 1
            print(f"refused: {split} {config} {task}: {type(error).__name__}: {error}")
            continue
        metadata = {
            "config": json.dumps(config),
            "split": split,
            "labels": task,
            "items": json.dumps(items),
            "index_subject_start_end": json.dumps([[int(n) for n in dataset.index[i]] for i in items]),
        }
        tensors = {name: np.ascontiguousarray(tensor.numpy()) for name, tensor in batch.items()}
        save_file(tensors, arguments.folder / f"{made:04}.safetensors", metadata)
        made += 1
    print(f"{made} batches; {refused} configurations were refused")


if __name__ == "__main__":
    main()

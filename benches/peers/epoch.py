"""Compares one epoch of padded batches by Serrate, nested_ragged_tensors and numpy code.

Every engine reads the same file, shuffles the patients, takes at most the first 256 events of each patient,
and builds five tensors per batch of 64: t [B, W], code and value [B, W, M], and the two masks.
The sum of the bits of all cells must be the same for all engines.
"""

import os

import numpy as np
from common import arguments, bits, machine, run_json, seconds, table, training_file
from nested_ragged_tensors.ragged_numpy import JointNestedRaggedTensorDict
from safetensors.numpy import load_file

BATCH, WINDOW, SEED = 64, 256, 7


def batches(rows):
    order = np.random.default_rng(SEED).permutation(rows)
    return [order[i : i + BATCH] for i in range(0, rows, BATCH)]


def library(path, in_memory, consume):
    """Builds batches like a data set and its collate function: takes a window of each row, stacks and pads them."""
    rows = JointNestedRaggedTensorDict(tensors_fp=path)
    if in_memory:
        rows = JointNestedRaggedTensorDict(processed_tensors=load_file(path))
    for batch in batches(len(rows)):
        items = [rows[int(i), 0:WINDOW] for i in batch]
        consume(JointNestedRaggedTensorDict.vstack(items).to_dense())


def by_hand(path, consume):
    """Builds each batch from flat arrays and offsets, and writes its cells through boolean masks."""
    tensors = load_file(path)
    t, code, value = (tensors[k] for k in ("dim1/t", "dim2/code", "dim2/value"))
    events = np.concatenate(([0], tensors["dim1/bounds"]))
    leaves = np.concatenate(([0], tensors["dim2/bounds"]))
    for rows in batches(len(events) - 1):
        start = events[rows]
        count = np.minimum(events[rows + 1] - start, WINDOW)
        width = int(count.max())
        event_mask = np.arange(width) < count[:, None]
        event = np.repeat(start - np.concatenate(([0], np.cumsum(count)[:-1])), count) + np.arange(count.sum())
        dense_t = np.zeros(event_mask.shape, t.dtype)
        dense_t[event_mask] = t[event]
        lengths = np.zeros(event_mask.shape, np.int64)
        lengths[event_mask] = leaves[event + 1] - leaves[event]
        deep = int(lengths.max())
        mask = np.arange(deep) < lengths[..., None]
        # The values of a window of events are contiguous.
        first, last = leaves[start], leaves[start + count]
        dense_code = np.zeros(mask.shape, code.dtype)
        dense_code[mask] = np.concatenate([code[a:b] for a, b in zip(first, last)])
        dense_value = np.zeros(mask.shape, value.dtype)
        dense_value[mask] = np.concatenate([value[a:b] for a, b in zip(first, last)])
        consume({"t": dense_t, "code": dense_code, "value": dense_value, "dim1/mask": event_mask, "dim2/mask": mask})


def fill(path, consume, shapes=[]):
    """Only writes arrays of the same sizes to new memory, which is the least cost of padded batches."""
    if not shapes:
        by_hand(path, lambda d: shapes.append([(a.shape, a.dtype) for a in d.values()]))
    for batch in shapes:
        consume({i: np.full(shape, 1, dtype) for i, (shape, dtype) in enumerate(batch)})


def main():
    args = arguments()
    path = training_file(args.data, args.work)
    cores = os.cpu_count()
    engines = {
        "nested_ragged_tensors, from disk": lambda c: library(path, False, c),
        "nested_ragged_tensors, in memory": lambda c: library(path, True, c),
        "numpy by hand, in memory": lambda c: by_hand(path, c),
        "numpy: fill as many fresh bytes": lambda c: fill(path, c),
    }
    example = [args.bin / "examples" / "epoch", path, "--batch", BATCH, "--window", WINDOW, "--seed", SEED]
    example += ["--sampling", "start", "--json"]
    ours = {
        "**Serrate, from disk**, 1 thread": ["--threads", 1],
        f"**Serrate, from disk**, {cores} threads": ["--threads", cores],
        f"Serrate, bucketed, {cores} threads": ["--threads", cores, "--bucket"],
        f"Serrate, packed, {cores} threads": ["--threads", cores, "--packed"],
    }

    times = {name: [] for name in (*engines, *ours)}
    size, sums, extra = {}, {}, {}
    engines["numpy: fill as many fresh bytes"](lambda d: None)
    for _ in range(args.rounds):
        for name, epoch in engines.items():
            times[name].append(seconds(lambda: epoch(lambda d: None))[0])
        for name, options in ours.items():
            extra[name] = run_json(*example, *options)
            times[name].append(extra[name]["open_seconds"] + extra[name]["seconds"])
    for name, epoch in engines.items():
        total = [0, 0]

        def consume(dense):
            total[0] += sum(a.nbytes for a in dense.values())
            total[1] = (total[1] + bits(dense.values())) % 2**64

        epoch(consume)
        size[name], sums[name] = total
    for name, result in extra.items():
        size[name], sums[name] = result["dense_bytes"], result["checksum"]

    print(f"## One epoch: {path.name}, batches of {BATCH}, windows of at most {WINDOW} events\n")
    print(f"{machine()}; best of {args.rounds} rounds, all engines in turn in each.\n")
    hand, lib = (min(times[n]) for n in ("numpy by hand, in memory", "nested_ragged_tensors, from disk"))
    table(
        ["engine", "seconds", "median", "GB made", "GB/s", "x of the library from disk", "x of numpy by hand"],
        [
            [
                name,
                f"{min(own):.3f}",
                f"{sorted(own)[len(own) // 2]:.3f}",
                f"{size[name] / 1e9:.3f}",
                f"{size[name] / 1e9 / min(own):.1f}",
                f"{lib / min(own):.1f}",
                f"{hand / min(own):.1f}",
            ]
            for name, own in times.items()
        ],
    )
    padded = {n: s for n, s in sums.items() if "fill" not in n and "packed" not in n}
    if len(set(padded.values())) != 1:
        raise SystemExit(f"the engines made different values: {padded}")
    print(f"All padded epochs hold the same values (sum of bits {next(iter(padded.values())):#018x}).\n")


if __name__ == "__main__":
    main()

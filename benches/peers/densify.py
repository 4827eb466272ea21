"""Compares Serrate with nested_ragged_tensors and numpy code at padding 64 patients to their full length."""

import numpy as np
from common import arguments, bits, machine, run_json, seconds, table, training_file
from nested_ragged_tensors.ragged_numpy import JointNestedRaggedTensorDict
from safetensors.numpy import load_file

ROWS = 64


def by_hand(tensors):
    events = np.concatenate(([0], tensors["dim1/bounds"]))
    leaves = np.concatenate(([0], tensors["dim2/bounds"]))
    count, deep = np.diff(events), np.diff(leaves)
    event_mask = np.arange(count.max()) < count[:, None]
    lengths = np.zeros(event_mask.shape, np.int64)
    lengths[event_mask] = deep
    mask = np.arange(deep.max()) < lengths[..., None]
    dense = {"dim1/mask": event_mask, "dim2/mask": mask, "t": np.zeros(event_mask.shape, np.float32)}
    dense["t"][event_mask] = tensors["dim1/t"]
    for name in ("code", "value"):
        dense[name] = np.zeros(mask.shape, tensors[f"dim2/{name}"].dtype)
        dense[name][mask] = tensors[f"dim2/{name}"]
    return dense


def main():
    args = arguments()
    path = training_file(args.data, args.work)
    rows = JointNestedRaggedTensorDict(processed_tensors=load_file(path))[0:ROWS]
    shapes = [(a.shape, a.dtype) for a in rows.to_dense().values()]
    engines = {
        "nested_ragged_tensors to_dense": rows.to_dense,
        "numpy by hand": lambda: by_hand(rows.tensors),
        "numpy: fill as many fresh bytes": lambda: {i: np.full(s, 1, d) for i, (s, d) in enumerate(shapes)},
    }
    times = {name: [] for name in engines}
    ours, sums = {}, {}
    for _ in range(args.rounds):
        for name, run in engines.items():
            times[name].append(seconds(run)[0])
        for result in run_json("cargo", "bench", "--quiet", "--bench", "peers", "--", "densify", path, "--rows", ROWS, target=args.bin.parent):
            times.setdefault(result["name"], []).append(result["seconds"])
            ours[result["name"]] = int(result["checksum"], 16)
    for name in ("nested_ragged_tensors to_dense", "numpy by hand"):
        sums[name] = bits(engines[name]().values())
    sums |= ours
    size = sum(int(np.prod(s)) * d.itemsize for s, d in shapes)
    first = min(times["nested_ragged_tensors to_dense"])
    floor = min(times["numpy: fill as many fresh bytes"])
    print(f"## {ROWS} patients at full length, padded: {size / 1e6:.0f} MB\n")
    print(f"{machine()}; in memory, best of {args.rounds} rounds.\n")
    table(
        ["engine", "ms", "x faster than the library", "x the time of a fill"],
        [[n, f"{min(t) * 1e3:.1f}", f"{first / min(t):.1f}", f"{min(t) / floor:.2f}"] for n, t in times.items()],
    )
    if len(set(sums.values())) != 1:
        raise SystemExit(f"the engines made different values: {sums}")


if __name__ == "__main__":
    main()

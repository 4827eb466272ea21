"""Compares batched operations of Serrate with numpy code, on 65,536 samples of up to 256 entries.

The numpy code works either on the entries without padding or on padded tensors.
"""

import os

import numpy as np
from common import arguments, bits, machine, run_json, seconds, table
from safetensors.numpy import save_file

SAMPLES, MOST = 65_536, 256


def make(path):
    """Writes and returns the input: per sample, a size, entries, distinct random positions, and a flag per entry."""
    random = np.random.default_rng(1)
    sizes = random.integers(0, MOST + 1, SAMPLES)
    counts = (random.random(SAMPLES) * (sizes + 1)).astype(np.int64)
    place = np.arange(MOST)
    order = np.where(place < sizes[:, None], random.random((SAMPLES, MOST)), 2.0).argsort(1)
    ends, index_ends = (np.concatenate(([0], np.cumsum(n))).astype(np.int64) for n in (sizes, counts))
    data = {
        "values": random.uniform(-1, 1, ends[-1]).astype(np.float32),
        "ends": ends,
        "indices": order[place < counts[:, None]].astype(np.int64),
        "index_ends": index_ends,
        "mask": random.random(ends[-1]) < 0.5,
    }
    save_file(data, path)
    return data


def main():
    args = arguments()
    path = args.work / "batching.safetensors"
    d = make(path)
    values, ends, ids, id_ends, flags = (d[n] for n in ("values", "ends", "indices", "index_ends", "mask"))
    sizes, counts = np.diff(ends), np.diff(id_ends)
    width, id_width = sizes.max(), counts.max()
    exists = np.arange(width) < sizes[:, None]
    id_exists = np.arange(id_width) < counts[:, None]
    padded = np.zeros(exists.shape, np.float32)
    padded[exists] = values
    padded_ids = np.zeros(id_exists.shape, np.int64)
    padded_ids[id_exists] = ids
    padded_flags = np.zeros(exists.shape, bool)
    padded_flags[exists] = flags
    taken = values[np.repeat(ends[:-1], counts) + ids]
    padded_taken = np.zeros(id_exists.shape, np.float32)
    padded_taken[id_exists] = taken

    def scatter():
        out = values.copy()
        out[np.repeat(ends[:-1], counts) + ids] = taken
        return out

    def padded_scatter():
        out = padded.copy()
        rows = np.repeat(np.arange(SAMPLES), counts)
        out[rows, padded_ids[id_exists]] = padded_taken[id_exists]
        return out

    def rows_of_filler():
        out = np.zeros(SAMPLES * width, np.float32)
        out[np.repeat(np.arange(SAMPLES) * width, counts) + ids] = taken
        return out

    def padded_filter():
        kept = padded_flags & exists
        count = kept.sum(1)
        out_exists = np.arange(count.max()) < count[:, None]
        out = np.zeros(out_exists.shape, np.float32)
        out[out_exists] = padded[kept]
        return out

    def pad():
        out = np.zeros(exists.shape, np.float32)
        out[np.arange(width) < sizes[:, None]] = values
        return out

    # The name of the operation in Serrate, numpy on the entries, numpy on padded tensors.
    by_hand = [
        (
            "gather",
            lambda: values[np.repeat(ends[:-1], counts) + ids],
            lambda: np.where(id_exists, np.take_along_axis(padded, padded_ids, 1), np.float32(0)),
        ),
        ("scatter", scatter, padded_scatter),
        ("scatter into rows of filler", rows_of_filler, None),
        ("filter by mask", lambda: values[flags], padded_filter),
        ("padded tensor", None, pad),
    ]
    times, sums = {}, {}
    for _ in range(args.rounds):
        for name, *engines in by_hand:
            for kind, run in zip(("entries", "padded"), engines):
                if run:
                    time, answer = seconds(run)
                    times.setdefault((name, kind), []).append(time)
                    sums[name, kind] = bits([answer])
        command = ("cargo", "bench", "--quiet", "--no-default-features", "--features", "batching", "--bench", "batching", "--", "--peer", path)
        for result in run_json(*command, target=os.environ.get("CARGO_TARGET_DIR", args.bin.parent)):
            times.setdefault((result["name"], "serrate"), []).append(result["seconds"])
            sums[result["name"], "serrate"] = int(result["checksum"], 16)
    best = {key: min(t) * 1e3 for key, t in times.items()}
    print(f"## {SAMPLES} samples of up to {MOST} entries: {len(values)} entries, {len(ids)} indices\n")
    print(f"{machine()}; in memory, best of {args.rounds} rounds, in ms.\n")
    rows = []
    for name, *_ in by_hand:
        ours = best[name, "serrate"]
        cell = lambda kind: f"{best[name, kind]:.1f} ({best[name, kind] / ours:.1f}x)" if (name, kind) in best else ""
        rows.append([name, cell("entries"), cell("padded"), f"**{ours:.1f}**"])
    table(["operation", "numpy, entries", "numpy, padded", "Serrate"], rows)
    for name, *_ in by_hand:
        found = {kind: sums[name, kind] for kind in ("entries", "padded", "serrate") if (name, kind) in sums}
        if len(set(found.values())) != 1:
            raise SystemExit(f"the engines made different values of {name}: {found}")


if __name__ == "__main__":
    main()

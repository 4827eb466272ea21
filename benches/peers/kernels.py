"""Compares awkward and Serrate on one thread: reductions, arithmetic and filters on the lists of 1,250 patients."""

import os

import awkward as ak
import numpy as np
from common import arguments, machine, run_json, seconds, table
from safetensors.numpy import load_file, save_file


def make(data, path):
    """Writes and returns the measurements of each event, with random numbers, a validity mask, and a filter mask.

    A tenth of the numbers is invalid.
    """
    tensors = load_file(data)
    outer, inner = (
        np.concatenate(([0], tensors[name])).astype(np.int64) for name in ("dim1/bounds", "dim2/bounds")
    )
    random = np.random.default_rng(1)
    values = random.uniform(-1, 1, inner[-1]).astype(np.float32)
    made = {
        "outer": outer,
        "inner": inner,
        "values": values,
        "valid": random.random(inner[-1]) < 0.9,
        "mask": values > 0,
    }
    save_file(made, path)
    return made


def main():
    args = arguments()
    path = args.work / "kernels.safetensors"
    d = make(args.data, path)

    def lists(content):
        offsets = (ak.index.Index32(d[name].astype(np.int32)) for name in ("inner", "outer"))
        for o in offsets:
            content = ak.contents.ListOffsetArray(o, content)
        return ak.Array(content)

    numbers = ak.contents.NumpyArray(d["values"])
    v = lists(numbers)
    holes = lists(ak.contents.ByteMaskedArray(ak.index.Index8(d["valid"].view(np.int8)), numbers, valid_when=True))
    mask = lists(ak.contents.NumpyArray(d["mask"]))
    # benches/kernels.rs uses the same names.
    asked = [
        ("sum, innermost", lambda: ak.sum(v, axis=-1)),
        ("max, innermost", lambda: ak.max(v, axis=-1)),
        ("mean, innermost", lambda: ak.mean(v, axis=-1)),
        ("sum, a tenth null", lambda: ak.sum(holes, axis=-1)),
        ("max, a tenth null", lambda: ak.max(holes, axis=-1)),
        ("sum of whole rows", lambda: ak.sum(ak.flatten(v, axis=2), axis=1)),
        ("max of whole rows", lambda: ak.max(ak.flatten(v, axis=2), axis=1)),
        ("sum over events (axis 1)", lambda: ak.sum(v, axis=1)),
        ("max over events (axis 1)", lambda: ak.max(v, axis=1)),
        ("mean over events (axis 1)", lambda: ak.mean(v, axis=1)),
        ("v * 2 + 1", lambda: v * np.float32(2) + np.float32(1)),
        ("v > 0.5", lambda: v > np.float32(0.5)),
        ("filter by v > 0", lambda: v[mask]),
    ]
    times, totals, floors, copies = {}, {}, {}, {}
    for i in range(args.rounds):
        for name, run in asked:
            time, answer = seconds(run)
            times.setdefault((name, "awkward"), []).append(time)
            if i == 0:
                cells = np.asarray(ak.drop_none(ak.flatten(answer, axis=None))).astype(np.float64)
                totals[name, "awkward"] = len(cells), cells.sum(), np.abs(cells).sum()
        command = ("cargo", "bench", "--quiet", "--no-default-features", "--bench", "kernels", "--", "--peer", path)
        for found in run_json(*command, target=os.environ.get("CARGO_TARGET_DIR", args.bin.parent)):
            name = found["name"]
            times.setdefault((name, "serrate"), []).append(found["seconds"])
            floors.setdefault(name, []).append(found["floor"])
            copies.setdefault(name, []).append(found["copied"])
            totals[name, "serrate"] = found["values"], found["total"], found["absolute"]
    best = {key: min(t) * 1e3 for key, t in times.items()}
    leaves, inner = len(d["values"]), len(d["inner"]) - 1
    print(f"## {leaves} float32 leaves in {inner} lists of {len(d['outer']) - 1} rows\n")
    print(f"{machine()}, awkward {ak.__version__}; in memory, one thread each, best of {args.rounds} rounds, in ms.\n")
    rows = []
    for name, _ in asked:
        theirs, ours, floor = best[name, "awkward"], best[name, "serrate"], min(floors[name]) * 1e3
        copied = min(copies[name]) * 1e3
        rows.append(
            [name, f"{theirs:.1f} ({theirs / ours:.1f}x)", f"**{ours:.2f}**", f"{floor:.2f}", f"{100 * copied / ours:.0f} %"]
        )
    table(["operation", "awkward", "Serrate", "floor: bytes read and written", "of the speed of a copy"], rows)
    for name, _ in asked:
        (a_count, a_total, scale), (b_count, b_total, _) = totals[name, "awkward"], totals[name, "serrate"]
        # awkward adds float32 in float32.
        if a_count != b_count or abs(a_total - b_total) > 1e-5 * scale:
            raise SystemExit(f"the engines made different values of {name}: {totals[name, 'awkward']}, {totals[name, 'serrate']}")


if __name__ == "__main__":
    main()

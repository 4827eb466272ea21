"""Compares formats of a patient data set: size on disk, and time per item, batch and epoch.

This repeats the comparison in the documentation of nested_ragged_tensors: 1,250 patients, items of at most 256
events, batches of 64. An item has the first events of one patient, in a form that depends on the format; `collate`
builds padded batches of t, code, value and the masks.
"""

import pickle
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from common import arguments, machine, run_json, seconds, table, training_file
from nested_ragged_tensors.ragged_numpy import JointNestedRaggedTensorDict
from safetensors.numpy import load_file, safe_open, save_file

BATCH, WINDOW = 64, 256


def offsets(tensors, axis):
    return np.concatenate(([0], tensors[f"dim{axis}/bounds"]))


def patients(tensors):
    """Yields, per patient, t, a list of code arrays, and a list of value arrays."""
    events, leaves = offsets(tensors, 1), offsets(tensors, 2)
    t, code, value = (tensors[k] for k in ("dim1/t", "dim2/code", "dim2/value"))
    for first, last in zip(events, events[1:]):
        cuts = list(zip(leaves[first:last], leaves[first + 1 : last + 1]))
        yield t[first:last], [code[a:b] for a, b in cuts], [value[a:b] for a, b in cuts]


def head(tensor):
    """Reads the window of a tensor in a file, in which slices past the end are errors."""
    return tensor[: min(WINDOW, tensor.get_shape()[0])]


def place(shape, rows):
    """Copies each array [E, M] to the beginning of one row of a padded array [B, W, M]."""
    dense = np.zeros(shape, rows[0].dtype)
    for i, row in enumerate(rows):
        dense[(i, *(slice(0, n) for n in row.shape))] = row
    return dense


def collate_dense(items):
    width = max(len(i["t"]) for i in items)
    deep = max(i["code"].shape[1] for i in items)
    shapes = {"t": (width,), "code": (width, deep), "value": (width, deep), "mask": (width, deep)}
    dense = {k: place((len(items), *s), [i[k] for i in items]) for k, s in shapes.items()}
    dense["dim1/mask"] = np.arange(width) < np.array([len(i["t"]) for i in items])[:, None]
    return dense


def collate_nested(items):
    """Copies lists of lists to padded arrays, list by list."""
    width = max(len(i["t"]) for i in items)
    deep = max((len(c) for i in items for c in i["code"]), default=0)
    shape = (len(items), width, deep)
    t, event_mask = np.zeros(shape[:2], np.float32), np.zeros(shape[:2], bool)
    code, value, mask = np.zeros(shape, np.uint16), np.zeros(shape, np.float32), np.zeros(shape, bool)
    for row, item in enumerate(items):
        n = len(item["t"])
        t[row, :n], event_mask[row, :n] = item["t"], True
        for event, (c, v) in enumerate(zip(item["code"], item["value"])):
            code[row, event, : len(c)], value[row, event, : len(c)], mask[row, event, : len(c)] = c, v, True
    return {"t": t, "code": code, "value": value, "dim1/mask": event_mask, "dim2/mask": mask}


class Dense:
    """One file per patient, with arrays that are padded to the longest event of the patient."""

    name = "dense, a safetensors file a patient (numpy)"

    def write(self, folder, tensors):
        for i, (t, code, value) in enumerate(patients(tensors)):
            deep = max((len(c) for c in code), default=0)
            lengths = np.array([len(c) for c in code])
            mask = np.arange(deep) < lengths[:, None]
            arrays = {"t": t, "code": np.zeros(mask.shape, np.uint16), "value": np.zeros(mask.shape, np.float32)}
            if len(code):
                arrays["code"][mask], arrays["value"][mask] = np.concatenate(code), np.concatenate(value)
            save_file({**arrays, "mask": mask}, folder / f"{i}.safetensors")

    def open(self, folder):
        self.folder = folder

    def item(self, i):
        with safe_open(self.folder / f"{i}.safetensors", framework="numpy") as file:
            return {k: head(file.get_slice(k)) for k in file.keys()}

    def collate(self, items):
        return collate_dense(items)


class Pickled:
    """One file per patient, with pickled lists of lists."""

    name = "plain nested lists, a pickle a patient (Python)"

    def write(self, folder, tensors):
        for i, (t, code, value) in enumerate(patients(tensors)):
            item = {"t": t.tolist(), "code": [c.tolist() for c in code], "value": [v.tolist() for v in value]}
            (folder / f"{i}.pkl").write_bytes(pickle.dumps(item, pickle.HIGHEST_PROTOCOL))

    def open(self, folder):
        self.folder = folder

    def item(self, i):
        item = pickle.loads((self.folder / f"{i}.pkl").read_bytes())
        return {k: v[:WINDOW] for k, v in item.items()}

    def collate(self, items):
        return collate_nested(items)


class Named:
    """One file per patient, with one named tensor per event and column."""

    name = "named safetensors, a tensor an event (numpy)"

    def write(self, folder, tensors):
        for i, (t, code, value) in enumerate(patients(tensors)):
            named = {f"code/{e}": c for e, c in enumerate(code)} | {f"value/{e}": v for e, v in enumerate(value)}
            save_file({"t": t, **named}, folder / f"{i}.safetensors")

    def open(self, folder):
        self.folder = folder

    def item(self, i):
        with safe_open(self.folder / f"{i}.safetensors", framework="numpy") as file:
            t = head(file.get_slice("t"))
            lists = {k: [file.get_tensor(f"{k}/{e}") for e in range(len(t))] for k in ("code", "value")}
            return {"t": t, **lists}

    def collate(self, items):
        return collate_nested(items)


class Library:
    """One `.nrt` file, which nested_ragged_tensors reads lazily."""

    name = "`.nrt` (nested_ragged_tensors)"

    def write(self, folder, tensors):
        save_file(tensors, folder / "all.nrt")

    def open(self, folder):
        self.rows = JointNestedRaggedTensorDict(tensors_fp=folder / "all.nrt")

    def item(self, i):
        return self.rows[i, 0:WINDOW]

    def collate(self, items):
        return JointNestedRaggedTensorDict.vstack(items).to_dense()


class Parquet:
    """One Parquet file of list columns with zstd, which pyarrow reads into memory."""

    name = "Parquet, zstd (pyarrow)"

    def write(self, folder, tensors):
        events, leaves = offsets(tensors, 1), offsets(tensors, 2)
        nested = lambda k: pa.ListArray.from_arrays(
            pa.array(events, pa.int32()), pa.ListArray.from_arrays(pa.array(leaves, pa.int32()), pa.array(tensors[k]))
        )
        columns = {
            "t": pa.ListArray.from_arrays(pa.array(events, pa.int32()), pa.array(tensors["dim1/t"])),
            "code": nested("dim2/code"),
            "value": nested("dim2/value"),
        }
        pq.write_table(pa.table(columns), folder / "all.parquet", compression="zstd")

    def open(self, folder):
        self.table = pq.read_table(folder / "all.parquet").combine_chunks()

    def item(self, i):
        item = {}
        for name in ("t", "code", "value"):
            window = self.table[name].chunk(0)[i].values[:WINDOW]
            if name == "t":
                item[name] = window.to_numpy(zero_copy_only=False)
            else:
                cuts = window.offsets.to_numpy()
                flat = window.values.to_numpy(zero_copy_only=False)
                item[name] = [flat[a:b] for a, b in zip(cuts, cuts[1:])]
        return item

    def collate(self, items):
        return collate_nested(items)


def measure(store, folder, tensors, rounds):
    rows = len(tensors["dim1/bounds"])
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    store.write(folder, tensors)
    disk = sum(f.stat().st_size for f in folder.iterdir())
    store.open(folder)
    opened = min(seconds(lambda: store.open(folder))[0] for _ in range(rounds))
    best = None
    for _ in range(rounds):
        order = np.random.default_rng(7).permutation(rows)
        items, collates = [], []
        for i in range(0, rows, BATCH):
            batch = []
            for row in order[i : i + BATCH]:
                took, item = seconds(lambda: store.item(int(row)))
                items.append(took)
                batch.append(item)
            collates.append(seconds(lambda: store.collate(batch))[0])
        total = sum(items) + sum(collates)
        if best is None or total < best["epoch_seconds"]:
            best = {
                "item_seconds": float(np.median(items)),
                "collate_seconds": float(np.mean(collates)),
                "epoch_seconds": total,
            }
    shutil.rmtree(folder)
    return {"name": store.name, "disk_bytes": disk, "open_seconds": opened, **best}


def human(s):
    for unit, scale in (("s", 1), ("ms", 1e3), ("us", 1e6)):
        if s * scale >= 1:
            return f"{s * scale:.3g} {unit}"
    return f"{s * 1e9:.0f} ns"


def main():
    args = arguments()
    path = training_file(args.data, args.work)
    tensors = load_file(path)
    rows = [
        measure(store, args.work / "store", tensors, args.rounds)
        for store in (Dense(), Pickled(), Named(), Library(), Parquet())
    ]
    command = ["cargo", "bench", "--quiet", "--bench", "peers", "--", "storage", path]
    rows += run_json(*command, "--batch", BATCH, "--window", WINDOW, "--rounds", args.rounds, target=args.bin.parent)
    print(f"## A data set of {len(tensors['dim1/bounds']):,} patients, by the way it is stored\n")
    print(f"{machine()}; items: median of one access; the epoch: best of {args.rounds}.\n")
    table(
        ["store", "disk MB", "open", "one item", "collate 64", "epoch"],
        [
            [
                r["name"],
                f"{r['disk_bytes'] / 1e6:,.1f}",
                human(r["open_seconds"]),
                human(r["item_seconds"]),
                human(r["collate_seconds"]),
                human(r["epoch_seconds"]),
            ]
            for r in rows
        ],
    )


if __name__ == "__main__":
    main()

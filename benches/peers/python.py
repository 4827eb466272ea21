"""Compares the Python package with nested_ragged_tensors, meds-torch-data and the same calls in Rust.

Engines take turns in every round, and the fastest round counts. The batches of both classes must have the same
sum of the bits of all cells; the tests of the package compare the batches of meds-torch-data.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time

import numpy as np
from common import arguments, bits, machine, run_json, seconds, table, training_file
from nested_ragged_tensors import ragged_numpy

import serrate

BATCH, WINDOW, SEED = 64, 256, 7
MEDS_BATCH, MEDS_WINDOW = 256, 512
STATEMENTS = ["SELECT 1 AS a", "SELECT x FROM t"]


def in_turn(rounds, **runs):
    """Runs the functions in turn and returns the seconds of the fastest run of each."""
    best = dict.fromkeys(runs, float("inf"))
    for _ in range(rounds):
        for name, run in runs.items():
            best[name] = min(best[name], seconds(run)[0])
    return best


def duration(s):
    return f"{s * 1e6:.1f} µs" if s < 1e-3 else f"{s * 1e3:.2f} ms" if s < 1 else f"{s:.3f} s"


def calls(args):
    path = training_file(args.data, args.work)
    theirs, ours = ragged_numpy.JointNestedRaggedTensorDict, serrate.JointNestedRaggedTensorDict
    files = {c: c(tensors_fp=path) for c in (theirs, ours)}
    order = [int(i) for i in np.random.default_rng(SEED).permutation(len(files[ours]))]

    def items(c, rows=order[:256]):
        return [files[c][i, 0:WINDOW] for i in rows]

    def epoch(c):
        total = 0
        for start in range(0, len(order), BATCH):
            dense = c.vstack(items(c, order[start : start + BATCH])).to_dense()
            total += len(dense)
        return total

    parts = {c: items(c, order[:BATCH]) for c in (theirs, ours)}
    sums = {bits(c.vstack(parts[c]).to_dense().values()) for c in (theirs, ours)}
    if len(sums) != 1:
        raise SystemExit(f"the classes made different values: {sums}")
    rows = ",".join(map(str, order[:BATCH]))
    call = ["cargo", "bench", "--quiet", "--bench", "python_calls", "--", path, "--rows", rows, "--window", WINDOW]
    stack, rust = {}, {"stack": float("inf"), "statements": dict.fromkeys(STATEMENTS, float("inf"))}
    for _ in range(args.rounds):
        found = run_json(*call, target=args.bin.parent)
        rust["stack"] = min(rust["stack"], found["stack"])
        for text, s in found["statements"].items():
            rust["statements"][text] = min(rust["statements"][text], s)
        found = in_turn(20, ours=lambda: ours.vstack(parts[ours]).to_dense())
        found |= in_turn(2, theirs=lambda: theirs.vstack(parts[theirs]).to_dense())
        stack = {name: min(s, stack.get(name, s)) for name, s in found.items()}
    item = in_turn(args.rounds, theirs=lambda: items(theirs), ours=lambda: items(ours))
    item = {name: s / 256 for name, s in item.items()}
    whole = in_turn(min(args.rounds, 3), theirs=lambda: epoch(theirs), ours=lambda: epoch(ours))
    print(f"## The class of nested_ragged_tensors: {path.name}, batches of {BATCH}, {WINDOW} events\n")
    table(
        ["call", "nested_ragged_tensors", "Serrate", "times as fast", "the same in Rust", "x of Rust"],
        [
            ["item from disk", duration(item["theirs"]), duration(item["ours"]), f"{item['theirs'] / item['ours']:.1f}", "", ""],
            [
                f"vstack({BATCH}) and to_dense",
                duration(stack["theirs"]),
                duration(stack["ours"]),
                f"{stack['theirs'] / stack['ours']:.1f}",
                duration(rust["stack"]),
                f"{stack['ours'] / rust['stack']:.2f}",
            ],
            ["epoch from disk", duration(whole["theirs"]), duration(whole["ours"]), f"{whole['theirs'] / whole['ours']:.1f}", "", ""],
        ],
    )
    statements(args, rust["statements"])


def statements(args, rust):
    session = serrate.connect(threads=1)
    session.register("t", serrate.RaggedTable({"x": np.arange(1000)}))
    rows = []
    for text in STATEMENTS:
        session.sql(text).numpy()
        ours = in_turn(40 * args.rounds, ours=lambda text=text: session.sql(text).numpy())["ours"]
        rows.append([f"`{text}`", duration(rust[text]), duration(ours), duration(ours - rust[text])])
    print("## Statements, planned and run\n")
    table(["statement", "Rust", "Python, to numpy", "more"], rows)
    code = "import numpy, time; start = time.perf_counter(); import serrate; print(time.perf_counter() - start)"
    runs = [float(subprocess.check_output([sys.executable, "-c", code])) for _ in range(2 * args.rounds)]
    print(f"`import serrate` after `import numpy`: {duration(min(runs))}.\n")


def their_epoch(cohort, mode):
    """Prints the seconds of the fastest of three epochs of meds-torch-data; the first one opens its files."""
    import torch
    from meds_torchdata import MEDSPytorchDataset, MEDSTorchDataConfig

    torch.set_num_threads(1)
    config = MEDSTorchDataConfig(
        tensorized_cohort_dir=cohort,
        max_seq_len=MEDS_WINDOW,
        seq_sampling_strategy="random",
        static_inclusion_mode="omit",
        batch_mode=mode,
    )
    data = MEDSPytorchDataset(config, split="train")
    best = float("inf")
    for _ in range(3):
        torch.manual_seed(SEED)
        start = time.perf_counter()
        for _ in data.get_dataloader(batch_size=MEDS_BATCH, shuffle=True, num_workers=0):
            pass
        best = min(best, time.perf_counter() - start)
    which = ragged_numpy.JointNestedRaggedTensorDict.__module__
    print(json.dumps({"seconds": best, "class": which}))


def our_epoch(cohort, mode, trust):
    """Prints the seconds of the fastest of 20 epochs of `MedsLoader` with torch tensors; the first allocates memory."""
    loader = serrate.MedsLoader(
        cohort,
        split="train",
        batch_size=MEDS_BATCH,
        max_seq_len=MEDS_WINDOW,
        unit="measurement" if mode == "SM" else "event",
        statics="omit",
        shuffle=True,
        seed=SEED,
        trust_padding=trust == "yes",
    )
    best = float("inf")
    for _ in range(20):
        start = time.perf_counter()
        for _ in loader:
            pass
        best = min(best, time.perf_counter() - start)
    print(json.dumps({"seconds": best}))


def training(args):
    meds, cohort = args.work / "meds-1250", args.work / "cohort-mtd"
    if not meds.exists():
        serrate.meds.generate(meds, 1250, seed=7, shards=5)
    if not cohort.exists():
        with tempfile.TemporaryDirectory() as folder:
            command = [sys.executable, "-m", "serrate.patch", "MTD_preprocess"]
            command += [f"MEDS_dataset_dir={meds.resolve()}", f"output_dir={cohort.resolve()}"]
            # MTD_preprocess starts other commands of this environment by name.
            path = os.pathsep.join((os.path.dirname(sys.executable), os.environ["PATH"]))
            done = subprocess.run(command, cwd=folder, env=os.environ | {"PATH": path}, capture_output=True, text=True)
        if done.returncode != 0:
            shutil.rmtree(cohort, ignore_errors=True)
            raise SystemExit(f"MTD_preprocess failed with exit code {done.returncode}:\n{done.stderr}")
    example = [args.bin / "examples" / "meds_epoch", cohort, "--split", "train", "--batch", MEDS_BATCH]
    example += ["--len", MEDS_WINDOW, "--static", "omit", "--seed", SEED, "--json", "--no-checksum", "--epochs", 20]
    rows, own = [], []
    for mode, unit in (("SM", "measurement"), ("SEM", "event")):
        python = [sys.executable, __file__]
        patched = [sys.executable, "-m", "serrate.patch", *python]
        best = {}

        def keep(name, found, best=best):
            best[name] = min(found, best.get(name, found))

        for _ in range(min(args.rounds, 3)):
            plain = run_json(*python, "--their-epoch", cohort, mode)
            ours = run_json(*patched, "--their-epoch", cohort, mode)
            assert (plain["class"], ours["class"]) == ("nested_ragged_tensors.ragged_numpy", "serrate.joint")
            keep("plain", plain["seconds"])
            keep("patched", ours["seconds"])
            for trust, option in (("no", ["--write-padding"]), ("yes", [])):
                keep(f"loader {trust}", run_json(*python, "--our-epoch", cohort, mode, trust)["seconds"])
                command = [str(c) for c in (*example, "--unit", unit, *option)]
                done = subprocess.run(command, capture_output=True, text=True, check=True)
                keep(f"rust {trust}", min(json.loads(line)["seconds"] for line in done.stdout.splitlines()))
        rows.append([mode, duration(best["plain"]), duration(best["patched"]), f"{best['plain'] / best['patched']:.1f}"])
        for trust, padding in (("no", "written in every batch"), ("yes", "trusted")):
            ours, rust = best[f"loader {trust}"], best[f"rust {trust}"]
            own.append([f"{mode}, padding {padding}", duration(rust), duration(ours), f"{rust / ours:.2f}"])
    print(f"## An epoch of the train split: batches of {MEDS_BATCH}, random windows of {MEDS_WINDOW}\n")
    table(["meds-torch-data", "unchanged", "under `serrate.patch`", "times as fast"], rows)
    table(["batches", "loader in Rust", "`MedsLoader`, torch tensors", "of the rate in Rust"], own)


def main():
    if sys.argv[1:2] == ["--their-epoch"]:
        return their_epoch(*sys.argv[2:])
    if sys.argv[1:2] == ["--our-epoch"]:
        return our_epoch(*sys.argv[2:])
    args = arguments()
    print(f"# In Python\n\n{machine()}; best of {args.rounds} rounds.\n")
    calls(args)
    training(args)


if __name__ == "__main__":
    main()

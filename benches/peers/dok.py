"""Compares look-ups of 5 million keys among 10 million: joins, a binary search, hash maps, and Serrate.

A key has three integers.
"""

import duckdb
import numpy as np
import polars as pl
from common import arguments, bits, machine, run_json, seconds, table
from safetensors.numpy import load_file, save_file

KEYS, ASKED, SIDE = 10_000_000, 5_000_000, 1 << 12


def file(work):
    """Writes distinct random keys, their values, and the keys to look up, half of which are present."""
    path = work / "dok.safetensors"
    if not path.exists():
        rng = np.random.default_rng(7)
        places = np.unique(rng.integers(0, SIDE**3, KEYS + KEYS // 10))
        places = rng.permutation(places)[:KEYS]
        asked = rng.permutation(
            np.concatenate([rng.choice(places, ASKED // 2), rng.integers(0, SIDE**3, ASKED - ASKED // 2)])
        )
        axes = lambda p: np.stack([p // SIDE**2, p // SIDE % SIDE, p % SIDE], axis=1)
        save_file({"keys": axes(places), "values": rng.random(KEYS), "asked": axes(asked)}, path)
    return path


def main():
    args = arguments()
    path = file(args.work)
    data = load_file(path)
    keys, values, asked = data["keys"], data["values"], data["asked"]

    def columns(rows):
        return {name: np.ascontiguousarray(rows[:, i]) for i, name in enumerate("ijk")}

    entries = pl.DataFrame(columns(keys) | {"value": values})
    looked = pl.DataFrame(columns(asked) | {"row": np.arange(len(asked))})
    con = duckdb.connect()
    con.execute("CREATE TABLE entries AS SELECT * FROM entries")
    con.execute("CREATE TABLE looked AS SELECT * FROM looked")
    linear = lambda rows: (rows[:, 0] * SIDE + rows[:, 1]) * SIDE + rows[:, 2]
    order = np.argsort(linear(keys))
    ordered, by_place = linear(keys)[order], values[order]

    def joined_by_duckdb():
        out = con.execute(
            "SELECT row, value FROM looked LEFT JOIN entries USING (i, j, k)"
        ).fetchnumpy()
        return out

    def joined_by_polars():
        return looked.join(entries, on=["i", "j", "k"], how="left")

    def searched():
        places = linear(asked)
        at = np.minimum(np.searchsorted(ordered, places), len(ordered) - 1)
        return np.where(ordered[at] == places, by_place[at], 0.0)

    engines = {
        "DuckDB, join": joined_by_duckdb,
        "Polars, join": joined_by_polars,
        "numpy, searchsorted in sorted keys": searched,
    }
    times, sums = {}, {}
    for _ in range(args.rounds):
        for name, run in engines.items():
            took, answer = seconds(run)
            times.setdefault(name, []).append(took)
            if name.startswith("DuckDB"):
                answer = np.ma.filled(answer["value"], 0.0)
            elif name.startswith("Polars"):
                answer = answer["value"].fill_null(0.0).to_numpy()
            sums[name] = bits([answer.astype(np.float64)])
        command = ["cargo", "bench", "--quiet", "--bench", "peers", "--", "dok", path]
        for result in run_json(*command, target=args.bin.parent):
            times.setdefault(result["name"], []).append(result["seconds"])
            if not result["name"].endswith("build"):
                sums[result["name"]] = int(result["checksum"], 16)
    print(f"## {ASKED:,} look-ups among {KEYS:,} keys of three int64, half of them there\n")
    print(f"{machine()}; in memory, best of {args.rounds} rounds. Joins build their tables in that time; maps are built before.\n")
    ours = min(times["**Serrate**, all threads"])
    table(
        ["engine", "ms", "x the time of Serrate"],
        [[n, f"{min(t) * 1e3:.0f}", f"{min(t) / ours:.1f}"] for n, t in times.items()],
    )
    if len(set(sums.values())) != 1:
        raise SystemExit(f"the engines found different values: {sums}")


if __name__ == "__main__":
    main()

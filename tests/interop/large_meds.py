"""Writes a MEDS folder of random patients, for runs of `serrate report` on more subjects than the test data have.

    python3 tests/interop/large_meds.py FOLDER --subjects 1000000 --shards 20

Needs numpy and pyarrow (requirements.txt). The same arguments give the same measurements. A subject has about 22 rows:
three without a time, a birth, and a number of measurements that differs by orders of magnitude. Numbers are NULL for
codes without numbers, and rarely NaN or infinite.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

DAY = 86_400_000_000
NO_TIME = -(2**62)
UNITS = ["mg/dL", "mmol/L", "K/uL", "%", "g/dL", "mEq/L"]
# Kinds of codes with a time: their share of the measurements, whether they have numbers, and their codes.
KINDS = [
    (0.42, True, [f"LAB//{50800 + 7 * i}//{UNITS[i % 6]}" for i in range(300)]),
    (0.25, True, [f"VITAL//{n}" for n in ("HEART_RATE//bpm", "SBP//mmHg", "DBP//mmHg", "TEMPERATURE//C", "SPO2//%")]),
    (0.12, False, [f"DIAGNOSIS//ICD10CM//{'ABCDEFGHIJKLMN'[i // 180]}{i // 6 % 30:02d}.{i % 6}" for i in range(2520)]),
    (0.13, False, [f"MEDICATION//RxNorm//{197000 + 11 * i}//{route}" for i in range(800) for route in ("PO", "IV")]),
    (0.03, False, [f"PROCEDURE//ICD10PCS//{i:05d}ZZ" for i in range(1500)]),
    (0.05, False, ["HOSPITAL_ADMISSION//EW EMER.//EMERGENCY ROOM", "HOSPITAL_DISCHARGE//SKILLED NURSING FACILITY",
                   "ICU_ADMISSION//Medical Intensive Care Unit (MICU)", "ICU_DISCHARGE//Surgical Intensive Care Unit"]),
]  # fmt: skip
STATIC = [
    ["GENDER//F", "GENDER//M"],
    ["RACE//WHITE", "RACE//ASIAN", "RACE//UNKNOWN"],
    ["LANGUAGE//ENGLISH", "LANGUAGE//OTHER"],
]
BIRTH, DEATH = "MEDS_BIRTH", "MEDS_DEATH"

SCHEMA = pa.schema([
    pa.field("subject_id", pa.int64(), nullable=False),
    pa.field("time", pa.timestamp("us")),
    pa.field("code", pa.string(), nullable=False),
    pa.field("numeric_value", pa.float32()),
])  # fmt: skip


class Codes:
    def __init__(self, rng):
        self.names, shares, self.has_number = [], [], []
        for share, has_number, names in KINDS:
            weights = 1 / np.arange(1, len(names) + 1)
            shares.extend(share * weights / weights.sum())
            self.names.extend(names)
            self.has_number.extend([has_number] * len(names))
        self.shares = np.array(shares) / sum(shares)
        self.names.extend(name for group in STATIC for name in group)
        self.names.extend([BIRTH, DEATH])
        self.has_number = np.array(self.has_number)
        self.means = rng.lognormal(3, 1.2, len(self.shares))

    def find(self, name):
        return self.names.index(name)


def write_shard(path, codes, ids, rng):
    n = len(ids)
    counts = np.minimum(rng.lognormal(2.3, 1.1, n), 6000).astype(int)
    subject = np.repeat(np.arange(n), counts)
    total = len(subject)
    # Measurements of a subject share the times of its visits.
    visit = (rng.random(total) * np.maximum(1, counts // 3)[subject]).astype(int)
    birth = rng.integers(-10950, 14600, n)
    start = np.maximum(birth + 1, rng.integers(12000, 16000, n))
    share = ((subject * 2654435761 + visit * 40503) % 1000003) / 1000003
    days = np.minimum(start[subject] + share * rng.exponential(1200, n)[subject], 20400)
    time = (days * 86400).astype(np.int64) * 1_000_000
    code = rng.choice(len(codes.shares), total, p=codes.shares)
    value = np.abs(codes.means[code] * (1 + 0.18 * rng.standard_normal(total)))
    is_null = ~codes.has_number[code] | (rng.random(total) < 0.02)
    value[rng.random(total) < 0.001] = np.nan
    value[rng.random(total) < 0.00001] = np.inf

    last = birth * DAY
    np.maximum.at(last, subject, time)
    dead = np.flatnonzero(rng.random(n) < 0.06)
    parts = [(subject, time, code), (np.arange(n), birth * DAY, codes.find(BIRTH))]
    parts.append((dead, last[dead] + DAY, codes.find(DEATH)))
    for names in STATIC:
        parts.append((np.arange(n), NO_TIME, codes.find(names[0]) + rng.integers(0, len(names), n)))
    subjects = np.concatenate([p[0] for p in parts])
    times = np.concatenate([np.broadcast_to(p[1], len(p[0])) for p in parts])
    found = np.concatenate([np.broadcast_to(p[2], len(p[0])) for p in parts]).astype(np.int32)
    values = np.zeros(len(subjects), np.float32)
    values[:total] = value
    nulls = np.ones(len(subjects), bool)
    nulls[:total] = is_null
    order = np.lexsort((found, times, subjects))
    times = times[order]
    columns = [
        pa.array(ids[subjects[order]]),
        pa.array(times, mask=times == NO_TIME).cast(pa.timestamp("us")),
        pa.DictionaryArray.from_arrays(pa.array(found[order]), pa.array(codes.names)).cast(pa.string()),
        pa.array(values[order], mask=nulls[order]),
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns, schema=SCHEMA), path, compression="zstd")
    return len(subjects)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--subjects", type=int, default=1_000_000)
    parser.add_argument("--shards", type=int, default=20)
    args = parser.parse_args()
    rng = np.random.default_rng(5)
    codes = Codes(rng)
    ids = 10_000_000 + 7 * np.arange(args.subjects)
    splits = []
    rows = 0
    for shard, part in enumerate(np.array_split(ids, args.shards)):
        share = shard / args.shards
        split = "train" if share < 0.8 else "tuning" if share < 0.9 else "held_out"
        rows += write_shard(args.folder / "data" / split / f"{shard}.parquet", codes, part, rng)
        splits.append(pa.table({"subject_id": part, "split": [split] * len(part)}))
    metadata = args.folder / "metadata"
    metadata.mkdir(exist_ok=True)
    pq.write_table(pa.concat_tables(splits), metadata / "subject_splits.parquet")
    described = {"code": codes.names, "description": [f"Description of {name}" for name in codes.names]}
    described["parent_codes"] = pa.nulls(len(codes.names), pa.list_(pa.string()))
    pq.write_table(pa.table(described), metadata / "codes.parquet")
    about = {"dataset_name": "Random", "dataset_version": "1", "meds_version": "0.4.1"}
    (metadata / "dataset.json").write_text(json.dumps(about))
    print(f"wrote {rows:,} rows")


main()

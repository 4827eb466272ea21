"""Measures one epoch of 1,000 to 100,000 patients, to see whether time and memory grow linearly."""

import os
import subprocess

from common import arguments, machine, run_json, table, training_file

PATIENTS = [1_000, 10_000, 100_000]


def main():
    args = arguments()
    rows = []
    for patients in PATIENTS:
        path = args.work / f"patients-{patients}.nrt"
        if not path.exists():
            command = [args.bin / "serrate", "generate", "--patients", patients, "--seed", 7, "-o", path]
            subprocess.run([str(c) for c in command], check=True)
        example = [args.bin / "examples" / "epoch", path, "--batch", 64, "--window", 256, "--seed", 7, "--json"]
        example += ["--threads", os.cpu_count()]
        example += ["--columns", "time_delta_days,code,numeric_value"]
        runs = [run_json(*example) for _ in range(args.rounds)]
        best = min(runs, key=lambda r: r["seconds"])
        rows.append(
            [
                f"{patients:,}",
                f"{path.stat().st_size / 1e6:,.0f}",
                f"{best['seconds']:.3f}",
                f"{best['batches']:,}",
                f"{best['dense_bytes'] / 1e9:.2f}",
                f"{best['dense_bytes'] / 1e9 / best['seconds']:.1f}",
                f"{best['seconds'] / patients * 1e6:.1f}",
                f"{max(r['peak_rss_bytes'] for r in runs) / 1e6:,.0f}",
            ]
        )
    print("## An epoch of 1 k, 10 k and 100 k patients\n")
    print(f"{machine()}; best of {args.rounds} rounds.\n")
    table(
        ["patients", "file MB", "seconds", "batches", "GB made", "GB/s", "us a patient", "peak MB, the mapped file included"],
        rows,
    )


if __name__ == "__main__":
    main()

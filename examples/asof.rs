//! Reads the last events before each label, and prints the time and memory that this takes.
//!
//! ```text
//! cargo run --release --no-default-features --features parquet --example asof -- DIR LABELS \
//!     [--events 10] [--column code_id]
//! ```
//!
//! `DIR` is a MEDS data set or a tensorized cohort. Lists are built for 1,000 labels at a time,
//! counted and dropped.

use std::time::Instant;

use serrate::io::meds::{AsOf, Labels, MedsDataset};
use serrate::io::meds_torch::TensorizedCohort;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut events, mut column, mut paths) = (10, "code_id".to_owned(), Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--events" => events = arguments.next().ok_or("--events wants a number")?.parse()?,
            "--column" => column = arguments.next().ok_or("--column wants a name")?,
            _ => paths.push(argument),
        }
    }
    let [root, labels] = paths.as_slice() else {
        return Err("a folder and labels are wanted: DIR LABELS".into());
    };
    let start = Instant::now();
    let shards = if TensorizedCohort::is_at(root) {
        let cohort = TensorizedCohort::open(root)?;
        (0..cohort.shards().len()).map(|i| cohort.read_meds(i)).collect::<Result<Vec<_>, _>>()?
    } else {
        let data = MedsDataset::open(root)?;
        data.shards().map(|s| s.read(&Default::default())).collect::<Result<_, _>>()?
    };
    println!("read           {:.3} s", start.elapsed().as_secs_f64());

    let start = Instant::now();
    let rows = AsOf::try_new(shards, &Labels::read(labels)?)?;
    println!(
        "places         {:.3} s for {} labels ({} of unknown subjects)",
        start.elapsed().as_secs_f64(),
        rows.len(),
        rows.unknown()
    );

    let start = Instant::now();
    let (mut values, mut first) = (0, 0);
    while first < rows.len() {
        let part = first..rows.len().min(first + 1000);
        first = part.end;
        values += rows.last(&column, events, part)?.leaves().len();
    }
    println!(
        "last {events:<9} {:.3} s for {values} values of {column}",
        start.elapsed().as_secs_f64()
    );
    if let Ok(status) = std::fs::read_to_string("/proc/self/status")
        && let Some(peak) = status.lines().find(|l| l.starts_with("VmHWM"))
    {
        println!("peak resident {}", peak.trim_start_matches("VmHWM:").trim());
    }
    Ok(())
}

//! Converts a MEDS data set to a tensorized cohort, and prints the time.
//!
//! ```text
//! cargo run --release --no-default-features --features parquet --example tensorize -- MEDS OUT \
//!     [--normalize] [--jobs N]
//! ```

use std::ops::ControlFlow;
use std::time::Instant;

use serrate::io::meds::MedsDataset;
use serrate::io::meds_torch::{Normalize, TensorizeOptions, tensorize};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut options = TensorizeOptions { overwrite: true, ..TensorizeOptions::default() };
    let mut folders = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--normalize" => options.normalize = Normalize::Compatible,
            "--jobs" => options.jobs = arguments.next().ok_or("--jobs wants a number")?.parse()?,
            _ => folders.push(argument),
        }
    }
    let [root, out] = folders.as_slice() else {
        return Err("two folders are wanted: MEDS OUT".into());
    };
    let start = Instant::now();
    let report =
        tensorize(&MedsDataset::open(root)?, out, &options, |_| ControlFlow::Continue(()))?;
    println!(
        "{} subjects, {} events, {} measurements, {} codes in {:.3} s",
        report.subjects(),
        report.events(),
        report.measurements(),
        report.codes,
        start.elapsed().as_secs_f64()
    );
    if report.unknown_measurements() > 0 {
        println!(
            "{} measurements of {} codes that are not in the vocabulary",
            report.unknown_measurements(),
            report.unknown.len()
        );
    }
    Ok(())
}

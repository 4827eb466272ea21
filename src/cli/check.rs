//! `serrate check`: what is wrong with a data set.

use std::path::PathBuf;

use clap::Args;

use super::convert::println;
use super::error::{Failure, Outcome};
use super::output::grouped;
use crate::audit::{Audit, CheckOptions, Severity, ShardFacts, check};

const EXAMPLES: &str = "\
Examples:
  serrate check meds/                    a MEDS data set with its labels
  serrate check cohort/ --labels tasks/  a tensorized cohort, and labels that lie elsewhere
  serrate check meds/ --json             one object, for programs

Exit codes: 0 nothing is wrong, 1 something is (with --strict, warnings count).";

/// Arguments of `serrate check`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct CheckArgs {
    /// MEDS folder, or a folder as meds-torch-data writes it.
    #[arg(value_name = "DIR")]
    path: PathBuf,
    /// Folder of labels [default: labels in DIR, if there is one].
    #[arg(long, value_name = "DIR")]
    labels: Option<PathBuf>,
    /// Fail on warnings as well.
    #[arg(long)]
    strict: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &CheckArgs) -> Outcome {
    let audit = check(&args.path, &CheckOptions { labels: args.labels.clone() })?;
    if args.json {
        let text = serde_json::to_string_pretty(&audit)
            .map_err(|e| Failure::message(format!("the findings cannot be written: {e}")))?;
        println(&text)?;
    } else {
        for finding in &audit.findings {
            let severity = match finding.severity {
                Severity::Error => "error",
                Severity::Warning => "warning",
            };
            println(&format!("{severity}: {finding}"))?;
        }
        summary(&audit)?;
    }
    let failed = audit.errors() + if args.strict { audit.warnings() } else { 0 };
    match failed {
        0 => Ok(()),
        1 => Err(Failure::message(format!("{}: 1 finding", args.path.display()))),
        n => Err(Failure::message(format!("{}: {n} findings", args.path.display()))),
    }
}

fn summary(audit: &Audit) -> Outcome {
    let sum = |part: fn(&ShardFacts) -> u64| -> u64 { audit.shards.iter().map(part).sum() };
    let measurements = sum(|s| s.measurements);
    println(&format!(
        "{}: {} shards, {} subjects, {} measurements, {} static facts, {} labels",
        audit.kind,
        grouped(audit.shards.len()),
        grouped(sum(|s| s.subjects)),
        grouped(measurements),
        grouped(sum(|s| s.statics)),
        grouped(audit.labels)
    ))?;
    println(&format!(
        "numbers: {} missing, {} NaN, {} infinite",
        share(sum(|s| s.missing), measurements),
        share(sum(|s| s.nan), measurements),
        share(sum(|s| s.infinite), measurements)
    ))?;
    println(&format!("{} errors, {} warnings", audit.errors(), audit.warnings()))
}

/// Parts of a hundred, in whole numbers so that few among many are not none.
fn share(part: u64, whole: u64) -> String {
    let thousandths = u128::from(part) * 100_000 / u128::from(whole.max(1));
    format!("{} ({}.{:03} %)", grouped(part), thousandths / 1000, thousandths % 1000)
}

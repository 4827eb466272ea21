//! `serrate check`: finds faults in a data set.

use std::path::PathBuf;

use clap::Args;

use super::command_failure::{Failure, Outcome};
use super::output::{choose_plural, find_terminal_width, group_digits, print_line, print_sentence};
use crate::audit::{Audit, CheckOptions, Finding, KINDS, Severity, ShardFacts, check};
use crate::functions::wrap_words;

const EXAMPLES: &str = "\
Examples:
  serrate check meds/                    a MEDS data set with its labels
  serrate check cohort/ --labels tasks/  a tensorized cohort, labels elsewhere
  serrate check meds/ --json             one object, for programs

Exit codes: 0 no errors, 1 errors (with --strict, errors or warnings).";

const HELP_WIDTH: usize = 80;

/// Arguments of `serrate check`.
#[derive(Args, Debug)]
#[command(after_help = build_help())]
pub(super) struct CheckArgs {
    /// MEDS folder, or tensorized cohort as meds-torch-data writes it.
    #[arg(value_name = "DIR")]
    path: PathBuf,
    /// Folder of labels [default: labels in DIR, if it exists].
    #[arg(long, value_name = "DIR")]
    labels: Option<PathBuf>,
    /// Fail on warnings, too.
    #[arg(long)]
    strict: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

fn build_help() -> String {
    let width = KINDS.iter().map(|k| k.name.len()).max().unwrap_or(0);
    // In each line, two spaces, the severity (7 columns), two spaces, the name (`width` columns)
    // and two spaces precede `meaning`. Further lines of `meaning` are indented by this width.
    let indent = width + 13;
    let mut help = format!("{EXAMPLES}\n\nFindings (`check` in --json; see docs/check.md):\n");
    for kind in KINDS {
        let severity = name_severity(kind.severity);
        let line = format!("  {severity:<7}  {:<width$}  {}", kind.name, kind.meaning);
        help.push_str(&wrap_words(&line, HELP_WIDTH, indent));
        help.push('\n');
    }
    help
}

fn name_severity(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    }
}

pub(super) fn run(args: &CheckArgs) -> Outcome {
    let audit = check(&args.path, &CheckOptions { labels: args.labels.clone() })?;
    if args.json {
        let text = serde_json::to_string_pretty(&audit).map_err(|e| {
            Failure::from_message(format!(
                "internal error: the findings cannot be written as JSON ({e}); please report it"
            ))
        })?;
        print_line(&text)?;
    } else {
        for finding in &audit.findings {
            print_finding(finding)?;
        }
        print_summary(&audit)?;
    }
    let failed = audit.errors() + if args.strict { audit.warnings() } else { 0 };
    match failed {
        0 => Ok(()),
        1 => Err(Failure::from_message(format!("{}: 1 finding", args.path.display()))),
        n => Err(Failure::from_message(format!("{}: {n} findings", args.path.display()))),
    }
}

/// Prints a finding in one line: severity, path, kind and description. On a terminal, where lines
/// are wrapped, the kind comes before the path, because a long path would push it to the next line.
fn print_finding(finding: &Finding) -> Outcome {
    let severity = name_severity(finding.severity);
    let text = finding.to_string();
    let kind = format!("[{}] ", finding.check);
    match text.split_once(&kind).filter(|_| find_terminal_width().is_some()) {
        Some((place, found)) => print_sentence(&format!("{severity} {kind}{place}{found}")),
        None => print_line(&format!("{severity}: {text}")),
    }
}

fn print_summary(audit: &Audit) -> Outcome {
    let sum = |part: fn(&ShardFacts) -> u64| -> u64 { audit.shards.iter().map(part).sum() };
    let measurements = sum(|s| s.measurements);
    print_sentence(&format!(
        "{}: {} shards, {} subjects, {} measurements, {} static facts, {} labels",
        audit.kind,
        group_digits(audit.shards.len()),
        group_digits(sum(|s| s.subjects)),
        group_digits(measurements),
        group_digits(sum(|s| s.statics)),
        group_digits(audit.labels)
    ))?;
    print_sentence(&format!(
        "numbers: {} missing, {} NaN, {} infinite",
        format_share(sum(|s| s.missing), measurements),
        format_share(sum(|s| s.nan), measurements),
        format_share(sum(|s| s.infinite), measurements)
    ))?;
    let (errors, warnings) = (audit.errors(), audit.warnings());
    print_sentence(&format!(
        "{errors} {}, {warnings} {}",
        choose_plural(errors, "error", "errors"),
        choose_plural(warnings, "warning", "warnings")
    ))
}

/// Formats `part` and its percentage of `whole`, such as `1,234 (0.123 %)`. A part above 0 that
/// rounds to 0.000 % is written as `<0.001`, and a part below `whole` that rounds to 100.000 % as
/// `>99.999`.
fn format_share(part: u64, whole: u64) -> String {
    let (part, whole) = (u128::from(part), u128::from(whole.max(1)));
    let thousandths = (part * 200_000 / whole).div_ceil(2);
    let percent = match thousandths {
        0 | 1 if part > 0 && part * 100_000 < whole => "<0.001".to_owned(),
        100_000 if part < whole => ">99.999".to_owned(),
        n => format!("{}.{:03}", n / 1000, n % 1000),
    };
    format!("{} ({percent} %)", group_digits(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_help_fits_into_80_columns() {
        let help = build_help();
        let long: Vec<&str> = help.lines().filter(|l| l.chars().count() > HELP_WIDTH).collect();
        assert!(long.is_empty(), "{long:#?}");
        for kind in KINDS {
            let words = help.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words.contains(&format!("{} {}", kind.name, kind.meaning)), "{}", kind.name);
        }
    }

    #[test]
    fn shares_are_rounded() {
        let shares = [(0, 7), (1, 3), (2, 3), (1, 1_000_000), (999_999, 1_000_000), (5, 5), (0, 0)];
        assert_eq!(
            shares.map(|(part, whole)| format_share(part, whole)),
            [
                "0 (0.000 %)",
                "1 (33.333 %)",
                "2 (66.667 %)",
                "1 (<0.001 %)",
                "999,999 (>99.999 %)",
                "5 (100.000 %)",
                "0 (0.000 %)"
            ]
        );
    }
}

//! The part of `serrate inspect` for MEDS data: splits, shards and codes.

use std::collections::HashMap;
use std::io::Write;

use serde_json::{Map, Value, json};

use super::chart::{ChartBar, ChartCanvas, write_bars};
use crate::access;
use crate::cli::code_prefixes::count_prefixes;
use crate::cli::command_failure::Outcome;
use crate::cli::output::{
    TextTable, compute_safe_ratio, format_percent, format_rounded, group_digits, to_json_number,
};
use crate::io::meds::{CodeSummary, MedsSummary, PartSummary, descriptions};
use crate::io::meds_torch::MedsFolder;

/// Number of the most frequent code prefixes that get a bar each; one more bar sums up all others.
const SHOWN_PREFIXES: usize = 9;

pub(super) struct MedsReport {
    summary: MedsSummary,
    names: HashMap<String, String>,
}

impl MedsReport {
    pub(super) fn new(folder: &MedsFolder, summary: MedsSummary) -> Outcome<Self> {
        let path = folder.root().join("metadata").join("codes.parquet");
        let names = if access::exists(&path) { descriptions(&path)? } else { HashMap::new() };
        Ok(Self { summary, names })
    }

    pub(super) fn write_tables(&self, n: usize, out: &mut impl Write) -> Outcome {
        let splits = self.summary.splits();
        let mut all = splits.clone();
        if splits.len() > 1 {
            all.push(self.summary.total());
        }
        write_parts("split", &all, out)?;
        if self.summary.shards().len() > splits.len() {
            write_parts("shard", self.summary.shards(), out)?;
        }
        let codes = self.summary.codes();
        if n == 0 || codes.is_empty() {
            return Ok(());
        }
        let total = self.summary.total();
        let total = total.measurements + total.statics;
        let has_names = codes.iter().take(n).any(|c| self.names.contains_key(&c.code));
        let texts = if has_names { vec!["code", "name"] } else { vec!["code"] };
        let numbers = ["occurrences", "share", "with a number", "without a time"];
        let mut rows = TextTable::new(&[&texts[..], &numbers].concat(), texts.len());
        for CodeSummary { code, occurrences } in codes.iter().take(n) {
            let all = occurrences.measurements + occurrences.statics;
            let mut row = vec![code.clone()];
            row.extend(has_names.then(|| self.names.get(code).cloned().unwrap_or_default()));
            row.extend([
                group_digits(all),
                format_percent(compute_safe_ratio(all, total)),
                format_percent(compute_safe_ratio(occurrences.values, all)),
                group_digits(occurrences.statics),
            ]);
            rows.add_row(row);
        }
        match codes.len() {
            all if all > n => {
                writeln!(out, "\nthe {n} most frequent of {} codes", group_digits(all))?
            }
            all => writeln!(out, "\n{} codes", group_digits(all))?,
        }
        rows.write(out)
    }

    pub(super) fn write_prefixes(&self, canvas: ChartCanvas, out: &mut impl Write) -> Outcome {
        let codes = self.summary.codes();
        let counts = codes
            .iter()
            .map(|c| (c.code.as_str(), c.occurrences.measurements + c.occurrences.statics));
        let bars: Vec<ChartBar> = count_prefixes(counts, SHOWN_PREFIXES)
            .into_iter()
            .map(|(label, count)| ChartBar { label, count })
            .collect();
        write_bars("occurrences by code prefix", &bars, false, canvas, out)
    }

    pub(super) fn to_json(&self, n: usize) -> Map<String, Value> {
        let part = |p: &PartSummary| {
            json!({
                "name": p.name,
                "shards": p.shards,
                "subjects": p.subjects,
                "events": p.events,
                "measurements": p.measurements,
                "statics": p.statics,
                "most_events": p.most_events,
                "most_measurements": p.most_measurements,
                "most_measurements_of_an_event": p.longest_event,
                "padded_sm_bytes": to_json_number(p.padded_measurements()),
                "padded_sem_bytes": to_json_number(p.padded_events()),
            })
        };
        let codes = self.summary.codes();
        let listed = codes.iter().take(n).map(|c| {
            json!({
                "code": c.code,
                "description": self.names.get(&c.code),
                "measurements": c.occurrences.measurements,
                "statics": c.occurrences.statics,
                "values": c.occurrences.values,
            })
        });
        let mut map = Map::new();
        map.insert("splits".into(), self.summary.splits().iter().map(part).collect());
        map.insert("shards".into(), self.summary.shards().iter().map(part).collect());
        map.insert("distinct_codes".into(), codes.len().into());
        map.insert("codes".into(), listed.collect());
        map
    }
}

/// Writes counts of splits or shards (`what`) as two tables, because one would exceed 80 columns.
fn write_parts(what: &str, parts: &[PartSummary], out: &mut impl Write) -> Outcome {
    let header = [what, "subjects", "events", "measurements", "static facts"];
    let mut counts = TextTable::new(&header, 1);
    let header = [what, "most events", "most measurements", "padded SM", "padded SEM"];
    let mut sizes = TextTable::new(&header, 1);
    for p in parts {
        counts.add_row([
            p.name.clone(),
            group_digits(p.subjects),
            group_digits(p.events),
            group_digits(p.measurements),
            group_digits(p.statics),
        ]);
        sizes.add_row([
            p.name.clone(),
            group_digits(p.most_events),
            group_digits(p.most_measurements),
            format_rounded(p.padded_measurements()),
            format_rounded(p.padded_events()),
        ]);
    }
    writeln!(out, "\n{what}s")?;
    counts.write(out)?;
    writeln!(out, "\n{what}s: longest subjects, and sizes if all subjects are padded to them")?;
    sizes.write(out)
}

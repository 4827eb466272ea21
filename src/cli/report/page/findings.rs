//! Writes the section with the findings of `serrate check`: a table, errors before warnings.

use super::card_table::HtmlTableWriter;
use super::find_rows;
use crate::audit::{Audit, Severity};
use crate::cli::output::{choose_plural, group_digits};
use crate::cli::report::Report;
use crate::cli::report::html::HtmlWriter;

const MAX_LISTED: usize = 200;

fn find_audit(report: &Report) -> Option<&Audit> {
    find_rows(report)?.audit.as_ref()
}

pub(super) fn has_content(report: &Report) -> bool {
    find_audit(report).is_some()
}

pub(super) fn write_finding_section(html: &mut HtmlWriter, report: &Report) {
    let Some(audit) = find_audit(report) else { return };
    let (errors, warnings) = (audit.errors(), audit.warnings());
    let mut text = format!(
        "serrate check finds {errors} {} and {warnings} {}.",
        choose_plural(errors, "error", "errors"),
        choose_plural(warnings, "warning", "warnings")
    );
    if audit.findings.len() > MAX_LISTED {
        text.push_str(&format!(" The first {MAX_LISTED} are listed."));
    }
    html.write_element("p", &[], text);
    if audit.findings.is_empty() {
        return;
    }
    let header = ["severity", "kind", "file", "position", "found", "expected", "times"];
    let mut table = HtmlTableWriter::open(html, "Findings, errors first", &header, 6);
    for finding in audit.findings.iter().take(MAX_LISTED) {
        let severity = match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let file = finding.file.strip_prefix(&report.path).unwrap_or(&finding.file);
        let cells = [
            severity.to_owned(),
            finding.check.to_owned(),
            file.display().to_string(),
            finding.position.clone(),
            finding.found.clone(),
            finding.expected.clone(),
            group_digits(finding.count),
        ];
        table.write_row(html, &cells);
    }
    table.close(html);
}

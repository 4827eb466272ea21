//! Writes the results in templates if `SERRATE_BLESS=1` is set.

use std::fs;
use std::path::Path;

use sqllogictest::{DefaultColumnType, Record, RecordOutput, Runner, parse_with_name};

use super::Session;
use super::templates::{FamilyAnswer, RecordTemplate};

/// Runs the records of a template for each of its functions, if the name of the script contains
/// `only`, and writes the results that the template lacks or that are wrong. Panics if a wrong
/// result is derived by `---- same` or is an error message, because those are written by hand.
pub(crate) async fn write_answers(path: &Path, only: &str) {
    let mut template = RecordTemplate::read(path);
    for (function, operator) in template.functions() {
        let name = format!("{} for {function}", path.display());
        if !name.contains(only) {
            continue;
        }
        let mut runner = Runner::new(|| async { Ok(Session(serrate::sql::session())) });
        for position in template.paragraphs_of(&function) {
            let text = template.expand(position, &function, &operator);
            let records: Vec<Record<DefaultColumnType>> =
                parse_with_name(&text, name.as_str()).unwrap_or_else(|e| panic!("{e}"));
            for record in records {
                let outcome = runner.run_async(record.clone()).await;
                if outcome.is_ok() && !template.lacks_answer(position, &function) {
                    continue;
                }
                let written = template.paragraphs[position].has_written_answers();
                match runner.apply_record(record).await {
                    RecordOutput::Nothing => {}
                    RecordOutput::Query { rows, error: None, .. } if written => {
                        let rows = rows.iter().map(|columns| columns.join(" "));
                        set_answer(&mut template, position, &function, rows);
                    }
                    _ => panic!(
                        "{name}: name {function} only in the lines `functions` above records that \
                         hold for it, and write its others to sql/slt/{function}.slt\n{}",
                        outcome.map_or_else(|e| e.display(false).to_string(), |_| text.clone())
                    ),
                }
            }
        }
    }
    write_template(&template);
}

/// Adds a function to the first line `functions` of a template.
pub(crate) fn add_function(path: &Path, function: &str) {
    let mut template = RecordTemplate::read(path);
    let mut paragraphs = template.paragraphs.iter_mut();
    let family = paragraphs.find(|p| p.lines[0].starts_with("functions ")).unwrap();
    family.lines[0].push_str(&format!(" {function}"));
    write_template(&template);
}

/// Replaces the result of the record at `position` for a function.
fn set_answer(
    template: &mut RecordTemplate,
    position: usize,
    function: &str,
    rows: impl Iterator<Item = String>,
) {
    let rows: Vec<_> = rows.map(|row| row.replace(function, "{function}")).collect();
    let answers = &mut template.paragraphs[position].answers;
    // Results without names apply to all functions that are not named, so that they are kept.
    answers.retain_mut(|answer| {
        let is_common = answer.names.is_empty();
        answer.names.retain(|name| name != function);
        is_common || !answer.names.is_empty()
    });
    match answers.iter_mut().find(|answer| answer.rows == rows) {
        Some(answer) if answer.names.is_empty() => {}
        Some(answer) => answer.names.push(function.to_owned()),
        None => answers.push(FamilyAnswer { names: vec![function.to_owned()], rows }),
    }
}

fn write_template(template: &RecordTemplate) {
    let mut paragraphs = Vec::new();
    for paragraph in &template.paragraphs {
        let mut lines = paragraph.lines.clone();
        for answer in &paragraph.answers {
            lines.push([vec!["----".to_owned()], answer.names.clone()].concat().join(" "));
            lines.extend(answer.rows.iter().cloned());
        }
        paragraphs.push(lines.join("\n"));
    }
    // Renaming a complete file replaces the template at once, because other tests read it at the
    // same time.
    let whole = template.path.with_extension("temp");
    fs::write(&whole, paragraphs.join("\n\n") + "\n").unwrap();
    fs::rename(&whole, &template.path).unwrap();
}

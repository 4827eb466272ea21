//! `serrate cohort`: finds a cohort by criteria and writes its labels.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{ArrayRef, AsArray, BooleanArray, RecordBatch};
use arrow::datatypes::{Int64Type, TimestampMicrosecondType};
use clap::Args;
use rayon::prelude::*;

use super::command_failure::{Failure, Outcome};
use super::files::{FileFormat, NewFolders, check_name};
use super::interrupt;
use super::output::{group_digits, print_line, print_sentence, print_wrapped};
use super::progress::Progress;
use crate::access;
use crate::cohorts::{Attrition, Cohort, CohortColumn, CohortCriteria, CohortRows};
use crate::io::meds::{LabelKind, Labels};
use crate::io::meds_torch::MedsFolder;
use crate::io::parquet::{ParquetTableWriter, ParquetWriteOptions};
use crate::sql::quote_text;
use serrate_core::internal::AtomicFiles;

const EXAMPLES: &str = "\
Examples:
  serrate cohort meds/ task.yaml                   how many remain per criterion
  serrate cohort meds/ task.yaml -o labels.parquet
  serrate cohort meds/ task.yaml -o labels/        a file of labels per shard
  serrate cohort meds/ task.yaml --predicates mimic.yaml -o labels/
  serrate cohort meds/ task.yaml --explain         what is searched

CONFIG is a configuration of ACES: predicates, a trigger, windows. A label has
subject_id, prediction_time (the index_timestamp of a window) and boolean_value
(whether the window with a label contains its predicate), as `serrate batches
--labels` reads it. In SQL, meds_cohort('DATA', 'CONFIG') also returns the ends
and the counts of all windows; docs/guide/cohorts.md describes both.";

/// Number of subjects that a thread searches at a time.
const BLOCK_SUBJECTS: usize = 256;
/// Maximum number of shards in memory at a time.
const MAX_LOADED_SHARDS: usize = 8;
/// Maximum width of a line of the printed table of criteria, in characters.
const MAX_LINE_WIDTH: usize = 80;

/// Arguments of `serrate cohort`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct CohortArgs {
    /// MEDS folder, or tensorized cohort.
    #[arg(value_name = "DATA")]
    input: PathBuf,
    /// Criteria: a YAML file in the language of ACES.
    #[arg(value_name = "CONFIG")]
    config: PathBuf,
    /// YAML file whose predicates replace those of CONFIG with the same names.
    #[arg(long, value_name = "FILE")]
    predicates: Option<PathBuf>,
    /// Labels to write: one .parquet file, or a folder with a file per shard.
    #[arg(short, long, value_name = "OUT")]
    pub(super) output: Option<PathBuf>,
    /// Print what is searched, and the query that returns the same labels, instead of searching.
    #[arg(long, conflicts_with = "output")]
    explain: bool,
    /// Replace existing files.
    #[arg(long, alias = "force")]
    overwrite: bool,
}

pub(super) fn run(args: &CohortArgs) -> Outcome {
    let is_yaml = |path: &Path| path.extension().is_some_and(|e| e == "yaml" || e == "yml");
    if is_yaml(&args.input) && !is_yaml(&args.config) {
        return Err(Failure::from_usage(format!(
            "{} is a configuration; give the folder of the data first: serrate cohort DATA CONFIG",
            args.input.display()
        )));
    }
    let criteria = CohortCriteria::read_config(&args.config, args.predicates.as_deref())?;
    if args.explain {
        return explain_criteria(args, &criteria);
    }
    if let Some(output) = &args.output {
        check_output(args, output, &criteria)?;
    }
    let progress = Progress::new(1);
    criteria.notes.iter().for_each(|note| progress.show_note(note));
    let cohort = Cohort::new(MedsFolder::open(&args.input)?, criteria);
    let (attrition, labels) = search_shards(&cohort, args.output.is_some(), &progress)?;
    if let Some(note) = attrition.describe_unmatched(&cohort.criteria) {
        progress.show_note(&note);
    }
    if let Some(output) = &args.output {
        write_labels(args, output, &cohort, &labels)?;
    }
    progress.finish();
    print_attrition(&attrition)?;
    let rows: usize = labels.iter().map(CohortRows::len).sum();
    match &args.output {
        None => Ok(()),
        Some(output) => {
            print_line(&format!("wrote {} labels to {}", group_digits(rows), output.display()))
        }
    }
}

fn check_output(args: &CohortArgs, output: &Path, criteria: &CohortCriteria) -> Outcome {
    match FileFormat::from_path(output) {
        Some(FileFormat::Parquet) if !access::is_dir(output) => {
            if access::exists(output) && !args.overwrite {
                return Err(crate::Error::Exists(output.to_path_buf()).into());
            }
        }
        _ => check_name(output, None, "a folder of labels")?,
    }
    if criteria.has_index_timestamp() {
        return Ok(());
    }
    Err(Failure::from_message(format!(
        "{}: no window has the key index_timestamp, so labels would have no prediction time; add `index_timestamp: end` (or start) to a window, or leave out -o to count only",
        criteria.path().display()
    )))
}

fn list_label_columns(criteria: &CohortCriteria) -> Vec<CohortColumn> {
    let mut columns = vec![CohortColumn::Subject, CohortColumn::IndexTimestamp];
    columns.extend(criteria.has_label().then_some(CohortColumn::Label));
    columns
}

/// Searches all shards for triggers that meet all criteria. A trigger is an event that matches the
/// predicate under the key `trigger` of the configuration. Returns how many subjects and triggers
/// remain after each criterion, and one row per trigger found. If `wanted` is false, the caller
/// needs only the counts, and the rows have no columns.
fn search_shards(
    cohort: &Cohort,
    wanted: bool,
    progress: &Progress,
) -> Outcome<(Attrition, Vec<CohortRows>)> {
    let columns = if wanted { list_label_columns(&cohort.criteria) } else { Vec::new() };
    let mut attrition = Attrition::new(&cohort.criteria);
    let mut labels = Vec::new();
    let shards: Vec<usize> = (0..cohort.folder.num_shards()).collect();
    for some in shards.chunks(rayon::current_num_threads().clamp(1, MAX_LOADED_SHARDS)) {
        interrupt::check_interrupt()?;
        let found = some
            .par_iter()
            .map(|shard| search_shard(cohort, *shard, &columns))
            .collect::<crate::Result<Vec<_>>>()?;
        for (own, rows) in found {
            attrition.merge(&own);
            progress.add_rows(rows.len());
            labels.push(rows);
        }
    }
    Ok((attrition, labels))
}

fn search_shard(
    cohort: &Cohort,
    shard: usize,
    columns: &[CohortColumn],
) -> crate::Result<(Attrition, CohortRows)> {
    let shard = cohort.read(shard, false)?;
    let subjects = shard.num_subjects();
    let blocks: Vec<usize> = (0..subjects).step_by(BLOCK_SUBJECTS).collect();
    let found = blocks
        .into_par_iter()
        .map(|first| {
            let block = first..(first + BLOCK_SUBJECTS).min(subjects);
            cohort.search_subjects(&shard, block, columns)
        })
        .collect::<crate::Result<Vec<_>>>()?;
    let mut attrition = Attrition::new(&cohort.criteria);
    attrition.add_shard(&shard);
    let mut all = CohortRows::new(&cohort.criteria, columns);
    for (rows, own) in found {
        attrition.merge(&own);
        all.extend(rows);
    }
    Ok((attrition, all))
}

/// Converts the rows that [`search_shards`] found to labels in the MEDS format: the subject, the
/// prediction time and, if a window has a key `label: PREDICATE`, whether PREDICATE occurs in this
/// window.
fn to_labels(cohort: &Cohort, rows: &CohortRows) -> Outcome<RecordBatch> {
    let columns = list_label_columns(&cohort.criteria);
    let batch = rows.to_batch(&cohort.criteria, &columns)?;
    let values = match batch.columns().get(2) {
        None => Vec::new(),
        Some(counts) => {
            let counts = counts.as_primitive::<Int64Type>();
            let positive = BooleanArray::from_iter(counts.values().iter().map(|n| Some(*n > 0)));
            vec![(LabelKind::Boolean, Arc::new(positive) as ArrayRef)]
        }
    };
    let subjects = batch.column(0).as_primitive::<Int64Type>().clone();
    let times = batch.column(1).as_primitive::<TimestampMicrosecondType>().clone();
    Ok(Labels::try_new(subjects, times, values)?.to_batch()?)
}

fn write_labels(
    args: &CohortArgs,
    output: &Path,
    cohort: &Cohort,
    labels: &[CohortRows],
) -> Outcome {
    let _folders = NewFolders::from_targets([output]);
    let is_file =
        FileFormat::from_path(output) == Some(FileFormat::Parquet) && !access::is_dir(output);
    let options =
        ParquetWriteOptions { overwrite: args.overwrite, ..ParquetWriteOptions::default() };
    if is_file {
        let beside = output.parent().filter(|p| !p.as_os_str().is_empty());
        create_folder(beside.unwrap_or(Path::new(".")))?;
        return write_file(output, cohort, labels, &options);
    }
    let staged = AtomicFiles::create(output, args.overwrite)?;
    for (shard, rows) in labels.iter().enumerate() {
        let path = staged.path().join(format!("{}.parquet", cohort.format_shard_name(shard)));
        create_folder(path.parent().unwrap_or(staged.path()))?;
        write_file(&path, cohort, std::slice::from_ref(rows), &options)?;
    }
    Ok(staged.commit()?)
}

fn create_folder(path: &Path) -> Outcome {
    Ok(access::create_dir_all(path).map_err(|e| crate::Error::io(path, e))?)
}

fn write_file(
    path: &Path,
    cohort: &Cohort,
    labels: &[CohortRows],
    options: &ParquetWriteOptions,
) -> Outcome {
    let none = CohortRows::new(&cohort.criteria, &list_label_columns(&cohort.criteria));
    let schema = to_labels(cohort, &none)?.schema();
    let mut writer = ParquetTableWriter::create(path, &schema, options)?;
    for rows in labels {
        interrupt::check_interrupt()?;
        writer.write_batch(&to_labels(cohort, rows)?)?;
    }
    Ok(writer.finish()?)
}

fn explain_criteria(args: &CohortArgs, criteria: &CohortCriteria) -> Outcome {
    for line in criteria.explain_plan() {
        // The lines below a window are indented by 2 or 4 spaces more than the window. Continued
        // parts of a line get 6 more, to differ from these lines.
        let own = line.len() - line.trim_start().len();
        print_wrapped(&line, own + 6)?;
    }
    for note in &criteria.notes {
        print_sentence(&format!("note: {note}"))?;
    }
    let mut selected = vec!["subject_id"];
    selected.extend(criteria.has_index_timestamp().then_some("index_timestamp AS prediction_time"));
    selected.extend(criteria.has_label().then_some("label > 0 AS boolean_value"));
    let quote = |path: &Path| quote_text(&path.display().to_string());
    let mut from = vec![quote(&args.input), quote(&args.config)];
    from.extend(args.predicates.iter().map(|path| format!("predicates => {}", quote(path))));
    print_line("query:")?;
    print_line(&format!("  SELECT {}", selected.join(",\n         ")))?;
    print_line(&format!("  FROM meds_cohort({})", from.join(",\n                   ")))
}

/// Prints a table with one row per criterion: how many subjects and how many triggers (column
/// `realizations`) satisfy this and all previous criteria.
fn print_attrition(attrition: &Attrition) -> Outcome {
    let mut lines = vec![[
        "criterion".to_owned(),
        "rule".to_owned(),
        "subjects".to_owned(),
        "realizations".to_owned(),
    ]];
    for step in &attrition.steps {
        let indent = if step.is_part { "  " } else { "" };
        lines.push([
            format!("{indent}{}", step.name),
            step.rule.clone(),
            group_digits(step.subjects),
            step.realizations.map(group_digits).unwrap_or_default(),
        ]);
    }
    let width = |c: usize| lines.iter().map(|l| l[c].chars().count()).max().unwrap_or(0);
    let (subjects, realizations) = (width(2), width(3));
    let texts = MAX_LINE_WIDTH.saturating_sub(subjects + realizations + 6);
    let name = width(0).min(texts / 2);
    let rule = width(1).min(texts - name);
    for [own_name, own_rule, own_subjects, own_realizations] in &lines {
        let line = format!(
            "{:name$}  {:rule$}  {own_subjects:>subjects$}  {own_realizations:>realizations$}",
            shorten_text(own_name, name),
            shorten_text(own_rule, rule)
        );
        print_line(line.trim_end())?;
    }
    Ok(())
}

fn shorten_text(text: &str, width: usize) -> String {
    match text.chars().count() <= width {
        true => text.to_owned(),
        false => text.chars().take(width.saturating_sub(1)).chain(['…']).collect(),
    }
}

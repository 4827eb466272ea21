//! `serrate report`: writes one HTML page about a file or folder. The page needs no network.
//!
//! [`profile`], [`padding`], [`codes`], [`timeline`] and [`batches`] compute what the page shows,
//! [`svg`] draws, [`html`] escapes, and [`page`] arranges the sections.

mod batches;
mod chart_times;
mod codes;
mod html;
mod padding;
mod page;
mod profile;
mod row_statistics;
mod sketch;
mod source_table;
mod svg;
mod tensors;
mod timeline;

use std::collections::HashMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Args;

use self::batches::{BatchLayout, BatchStatistics};
use self::codes::{CodeOverview, count_trend};
use self::profile::TableProfile;
use self::row_statistics::RowStatistics;
use self::source_table::register_source;
use self::tensors::{TensorFacts, TensorFiles};
use self::timeline::read_timelines;
use super::arguments::parse_up_to;
use super::command_failure::{Failure, Outcome};
use super::files::{DeclaredTypes, InputSource};
use super::output::print_sentence;
use super::progress::Progress;
use super::stats::{ColumnGroup, collect_stats};
use crate::access;
use crate::audit::{CheckOptions, check};
use crate::io::meds::{MedsSummary, descriptions};
use serrate_core::internal::AtomicFile;

const EXAMPLES: &str = "\
Examples:
  serrate report meds/ -o report.html
  serrate report cohort/ --labels tasks/ -o cohort.html --overwrite
  serrate report patients.nrt -o patients.html --subjects 20
  serrate report train/ -o batches.html      a folder of batches

The page shows lengths per axis, the elements lost if lists are cut, the share
of padding, columns, the most frequent codes over time, the timelines of the
first subjects, and the findings of serrate check. For training batches it shows
the padding of each batch, and the rest without it. It leaves out what the data
do not have. It is one file that loads nothing. The same data give the same
page, except that the finding `future-time` depends on the day.

Reads what serrate inspect reads. Memory holds a shard of MEDS data, or a batch
of other files, and statistics whose size is bounded.";

/// Arguments of `serrate report`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct ReportArgs {
    /// File or folder to describe.
    #[arg(value_name = "FILE|DIR")]
    path: PathBuf,
    /// Page to write. It appears only if everything succeeds.
    #[arg(short, long, value_name = "FILE.html")]
    pub(in crate::cli) output: PathBuf,
    /// Replace an existing page.
    #[arg(long, alias = "force")]
    overwrite: bool,
    /// Number of most frequent codes to show.
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = parse_up_to(MAX_CODES))]
    codes: usize,
    /// Number of subjects whose timelines are shown; the first ones are taken.
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = parse_up_to(MAX_SUBJECTS))]
    subjects: usize,
    /// Folder of labels to check [default: labels in DIR, if it exists].
    #[arg(long, value_name = "DIR", conflicts_with = "no_check")]
    labels: Option<PathBuf>,
    /// Do not check MEDS data for faults; a check reads the data once more.
    #[arg(long)]
    no_check: bool,
    /// Line to show below the title, such as a date.
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
    #[command(flatten)]
    declared: DeclaredTypes,
}

/// Maximum of `--codes` and of `--subjects`. A browser cannot show many more on one page.
const MAX_CODES: usize = 200;
const MAX_SUBJECTS: usize = 100;
/// Maximum number of files read at a time to count codes by period ([`codes::CodeTrend`]).
const MAX_READ_FILES: usize = 4;
/// Name under which SQL reads the input of the report.
const TABLE: &str = "report_source";

struct Report {
    name: String,
    /// Path as the user gave it. If it is a folder, the page names its files without this prefix.
    path: PathBuf,
    format: &'static str,
    files: usize,
    bytes: u64,
    note: Option<String>,
    content: ReportContent,
}

enum ReportContent {
    Rows(Box<RowStatistics>),
    Tensors(Box<TensorStatistics>),
}

struct TensorStatistics {
    tensors: Vec<TensorFacts>,
    /// Statistics of the values in a folder of batches. `None` for a single file, and for a folder
    /// whose batches have no [`BatchLayout`].
    batches: Option<BatchStatistics>,
    /// The reason why a folder of batches has no statistics; otherwise `None`.
    unread: Option<&'static str>,
}

pub(super) fn run(args: &ReportArgs) -> Outcome {
    check_output(&args.output)?;
    // Creates the file before the data are read, to report early that a path cannot be written.
    let mut file = AtomicFile::create(&args.output, args.overwrite)?;
    let report = read_report(args)?;
    let page = page::render_page(&report);
    file.write_all(page.as_bytes())?;
    file.commit()?;
    let sections = page::list_headings(&report).join(", ").to_lowercase();
    print_sentence(&format!("wrote {sections} to {}", args.output.display()))
}

fn check_output(path: &Path) -> Outcome {
    let extension = path.extension().map(|e| e.to_string_lossy().to_ascii_lowercase());
    match extension.as_deref() {
        Some("html" | "htm") => Ok(()),
        _ => Err(Failure::from_usage(format!(
            "a report is an HTML page, but the name {} does not end in .html; use a name that ends in .html",
            path.display()
        ))),
    }
}

fn read_report(args: &ReportArgs) -> Outcome<Report> {
    let absolute = std::path::absolute(&args.path).unwrap_or_else(|_| args.path.clone());
    let name = absolute.file_name().unwrap_or(args.path.as_os_str()).to_string_lossy().into_owned();
    let report = |format, files, bytes, content| Report {
        name,
        path: args.path.clone(),
        format,
        files,
        bytes,
        note: args.note.clone(),
        content,
    };
    if let Some(found) = tensors::read_tensors(&args.path)? {
        if args.labels.is_some() {
            return Err(refuse_labels());
        }
        let (files, bytes) = (found.files.len(), found.bytes);
        let format = if found.is_folder { "training batches" } else { "safetensors" };
        let content = ReportContent::Tensors(Box::new(read_batches(args, found)?));
        return Ok(report(format, files, bytes, content));
    }
    let mut source = InputSource::open(&args.path)?;
    source.declare_types(&args.declared)?;
    if source.meds.is_none() && args.labels.is_some() {
        return Err(refuse_labels());
    }
    let rows = ReportContent::Rows(Box::new(read_rows(args, &source)?));
    Ok(report(source.format.name(), source.shards.len(), source.count_bytes()?, rows))
}

fn refuse_labels() -> Failure {
    Failure::from_usage(
        "--labels requires MEDS data, but the input is neither a MEDS folder nor a tensorized cohort; remove --labels",
    )
}

fn read_batches(args: &ReportArgs, found: TensorFiles) -> Outcome<TensorStatistics> {
    let TensorFiles { files, is_folder, tensors, .. } = found;
    let mut statistics = TensorStatistics { tensors, batches: None, unread: None };
    if is_folder {
        match BatchLayout::find_layout(&files, &statistics.tensors)? {
            Ok(layout) => statistics.batches = Some(layout.read_all(&files, args.codes)?),
            Err(reason) => statistics.unread = Some(reason),
        }
    }
    Ok(statistics)
}

fn read_rows(args: &ReportArgs, source: &InputSource) -> Outcome<RowStatistics> {
    let progress = Progress::new(source.shards.len());
    let (groups, summary) = collect_stats::<TableProfile>(source, &progress)?;
    progress.finish();
    let codes = read_codes(args, source, &groups, &summary)?;
    let timelines = read_timelines(source, &groups, args.subjects)?;
    let audit = match &source.meds {
        Some(_) if !args.no_check => {
            Some(check(&args.path, &CheckOptions { labels: args.labels.clone() })?)
        }
        _ => None,
    };
    let mut splits = summary.splits();
    if splits.len() > 1 {
        splits.push(summary.total());
    }
    Ok(RowStatistics { groups, codes, timelines, splits, audit })
}

fn read_codes(
    args: &ReportArgs,
    source: &InputSource,
    groups: &[ColumnGroup<TableProfile>],
    summary: &MedsSummary,
) -> Outcome<Option<CodeOverview>> {
    let Some(group) = groups.first().filter(|_| args.codes > 0) else { return Ok(None) };
    let codes = match &source.meds {
        Some(folder) => {
            let path = folder.root().join("metadata").join("codes.parquet");
            let names = if access::exists(&path) { descriptions(&path)? } else { HashMap::new() };
            CodeOverview::from_meds(summary, &names, args.codes)
        }
        None => CodeOverview::from_table(&group.profile, args.codes),
    };
    let Some(mut codes) = codes else { return Ok(None) };
    let context = crate::sql::session();
    register_source(&context, TABLE, source, MAX_READ_FILES)?;
    let trend = count_trend(&context, TABLE, &group.profile, &mut codes);
    // `block_on` is allowed here, because a command on files runs on a thread for blocking work.
    tokio::runtime::Handle::current().block_on(trend)?;
    Ok(Some(codes))
}

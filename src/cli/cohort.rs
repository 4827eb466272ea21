//! `serrate convert MEDS OUT --to meds-torch-data`.

use std::ops::ControlFlow;
use std::path::Path;

use clap::{Args, ValueEnum};

use super::args::{THREADS, up_to};
use super::convert::println;
use super::error::{Failure, Outcome};
use super::files::check_name;
use super::interrupt;
use super::output::grouped;
use super::progress::Progress;
use crate::io::meds::MedsDataset;
use crate::io::meds_torch::{
    Normalize, TensorizeOptions, TensorizeReport, TensorizedCohort, Unknown, VocabularyFrom,
    tensorize,
};

/// How a MEDS data set becomes a tensorized cohort.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "Options of --to meds-torch-data")]
pub(super) struct CohortArgs {
    /// What is done with codes that are not in the vocabulary [default: drop].
    #[arg(long, value_enum, value_name = "WHAT")]
    unknown: Option<UnknownArg>,
    /// Scale numbers as (value - mean) / std of their code. `compatible` (the default) does so to
    /// the bit as meds-torch-data, in 32 bits; `exact` in 64; `file` by metadata/codes.parquet alone.
    #[arg(long, value_enum, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "compatible")]
    normalize: Option<NormalizeArg>,
    /// Where the vocabulary comes from [default: codes.parquet when it has code/vocab_index, else
    /// train].
    #[arg(long, value_enum, value_name = "WHERE")]
    vocabulary: Option<VocabularyArg>,
    /// Shards worked on at a time [default: one per core, at most 8].
    #[arg(long, value_name = "N", value_parser = up_to(THREADS))]
    jobs: Option<usize>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum UnknownArg {
    /// Leave such measurements out.
    Drop,
    /// Give them the token 0.
    Zero,
    /// Stop at the first.
    Error,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum NormalizeArg {
    Compatible,
    Exact,
    File,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum VocabularyArg {
    /// metadata/codes.parquet.
    File,
    /// The codes of the train split, in order.
    Train,
}

impl CohortArgs {
    /// Whether any of them was given.
    pub(super) fn given(&self) -> bool {
        self.unknown.is_some()
            || self.normalize.is_some()
            || self.vocabulary.is_some()
            || self.jobs.is_some()
    }

    fn options(self, overwrite: bool) -> TensorizeOptions {
        TensorizeOptions {
            vocabulary: match self.vocabulary {
                None => VocabularyFrom::FileOrTrain,
                Some(VocabularyArg::File) => VocabularyFrom::File,
                Some(VocabularyArg::Train) => VocabularyFrom::Train,
            },
            unknown: match self.unknown {
                None | Some(UnknownArg::Drop) => Unknown::Drop,
                Some(UnknownArg::Zero) => Unknown::Zero,
                Some(UnknownArg::Error) => Unknown::Refuse,
            },
            normalize: match self.normalize {
                None => Normalize::No,
                Some(NormalizeArg::Compatible) => Normalize::Compatible,
                Some(NormalizeArg::Exact) => Normalize::Exact,
                Some(NormalizeArg::File) => Normalize::ByFile,
            },
            overwrite,
            jobs: self.jobs.unwrap_or(0),
        }
    }
}

pub(super) fn convert(input: &Path, output: &Path, args: CohortArgs, overwrite: bool) -> Outcome {
    check_name(output, None, "the folders of a tensorized cohort")?;
    if TensorizedCohort::is_at(input) {
        return Err(Failure::message(format!(
            "{} is a tensorized cohort already",
            input.display()
        )));
    }
    let dataset = MedsDataset::open(input)?;
    let progress = Progress::new(dataset.shards().len());
    let options = args.options(overwrite);
    let report = tensorize(&dataset, output, &options, |shards| {
        for shard in shards {
            progress.file(Path::new(&shard.name));
            progress.rows(shard.subjects);
        }
        match interrupt::check() {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    });
    interrupt::check()?;
    let report = report.map_err(Failure::from)?;
    notes(&report, options.unknown).iter().for_each(|note| progress.note(note));
    progress.finish();
    println(&format!(
        "wrote {} subjects, {} events, {} measurements and {} static facts in {} shards to {}",
        grouped(report.subjects()),
        grouped(report.events()),
        grouped(report.measurements()),
        grouped(report.statics()),
        grouped(report.shards.len()),
        output.display()
    ))?;
    let unknown = report.unknown_measurements();
    if unknown == 0 {
        return println(&format!("{} codes", grouped(report.codes)));
    }
    println(&format!(
        "{} codes; {} measurements of {} others {}: {}",
        grouped(report.codes),
        grouped(unknown),
        grouped(report.unknown.len()),
        if options.unknown == Unknown::Zero { "have the token 0" } else { "were dropped" },
        most(&report)
    ))
}

/// The unknown codes that occur most.
fn most(report: &TensorizeReport) -> String {
    let mut codes: Vec<(&String, &u64)> = report.unknown.iter().collect();
    codes.sort_by_key(|(_, n)| std::cmp::Reverse(**n));
    let shown: Vec<String> =
        codes.iter().take(5).map(|(code, n)| format!("{code} ({})", grouped(**n))).collect();
    let more = if codes.len() > shown.len() { ", .." } else { "" };
    format!("{}{more}", shown.join(", "))
}

fn notes(report: &TensorizeReport, unknown: Unknown) -> Vec<String> {
    let mut notes = Vec::new();
    let empty: usize = report.shards.iter().map(|s| s.without_events).sum();
    if empty > 0 {
        notes.push(format!("{} subjects have no event: their rows are empty", grouped(empty)));
    }
    if !report.unsorted.is_empty() {
        notes.push(format!(
            "{} shards were not in the order of subject and time and were sorted: {}",
            grouped(report.unsorted.len()),
            report.unsorted.iter().take(5).cloned().collect::<Vec<_>>().join(", ")
        ));
    }
    if report.no_splits {
        notes.push(
            "nothing says which subjects are for training: there is neither a folder train nor a metadata/subject_splits.parquet; a Dataset of a split will find none".to_owned(),
        );
    }
    if unknown == Unknown::Zero && report.unknown_measurements() > 0 {
        notes.push("the token 0 is that of padding as well".to_owned());
    }
    notes
}

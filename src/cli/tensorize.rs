//! `serrate convert MEDS OUT --to meds-torch-data`: converts a MEDS data set to a tensorized
//! cohort in the format of meds-torch-data.

use std::ops::ControlFlow;
use std::path::Path;

use clap::{Args, ValueEnum};

use super::arguments::{MAX_THREADS, parse_up_to};
use super::command_failure::{Failure, Outcome};
use super::files::check_name;
use super::interrupt;
use super::output::{group_digits, print_sentence};
use super::progress::Progress;
use crate::io::meds::MedsDataset;
use crate::io::meds_torch::{
    Normalize, TensorizeOptions, TensorizeReport, TensorizedCohort, UnknownCodes, VocabularyFrom,
    tensorize,
};

/// Options for tensorizing a MEDS data set.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "Options of --to meds-torch-data")]
pub(super) struct TensorizeArgs {
    /// Treatment of codes that are not in the vocabulary [default: drop].
    #[arg(long, value_enum, value_name = "WHAT")]
    unknown: Option<UnknownArg>,
    /// Scale numbers to (value - mean) / std of their code. `compatible` (the default) computes in
    /// 32 bits and agrees with meds-torch-data up to one or two units in the last place, because
    /// the sums of meds-torch-data depend on its number of threads; `exact` computes in 64 bits;
    /// `file` uses metadata/codes.parquet only.
    #[arg(long, value_enum, value_name = "HOW", num_args = 0..=1, require_equals = true, default_missing_value = "compatible")]
    normalize: Option<NormalizeArg>,
    /// Source of the vocabulary [default: file if metadata/codes.parquet has code/vocab_index,
    /// otherwise train].
    #[arg(long, value_enum, value_name = "WHERE")]
    vocabulary: Option<VocabularyArg>,
    /// Number of shards converted at a time [default: one per core, at most 8].
    #[arg(long, value_name = "N", value_parser = parse_up_to(MAX_THREADS))]
    jobs: Option<usize>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum UnknownArg {
    /// Leave out measurements whose code is not in the vocabulary.
    Drop,
    /// Give codes that are not in the vocabulary the token 0.
    Zero,
    /// Stop at the first code that is not in the vocabulary.
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
    /// The codes of metadata/codes.parquet.
    File,
    /// The sorted codes of the train split.
    Train,
}

impl TensorizeArgs {
    /// Returns the name of the first of these options that the user has set, for an error: only one
    /// output format accepts them. Returns `None` if none is set.
    pub(super) fn find_given(&self) -> Option<&'static str> {
        let given = [
            ("--unknown", self.unknown.is_some()),
            ("--normalize", self.normalize.is_some()),
            ("--vocabulary", self.vocabulary.is_some()),
            ("--jobs", self.jobs.is_some()),
        ];
        given.into_iter().find(|(_, given)| *given).map(|(name, _)| name)
    }

    fn to_options(self, overwrite: bool) -> TensorizeOptions {
        TensorizeOptions {
            vocabulary: match self.vocabulary {
                None => VocabularyFrom::FileOrTrain,
                Some(VocabularyArg::File) => VocabularyFrom::File,
                Some(VocabularyArg::Train) => VocabularyFrom::Train,
            },
            unknown: match self.unknown {
                None | Some(UnknownArg::Drop) => UnknownCodes::Drop,
                Some(UnknownArg::Zero) => UnknownCodes::Zero,
                Some(UnknownArg::Error) => UnknownCodes::Refuse,
            },
            normalize: match self.normalize {
                None => Normalize::No,
                Some(NormalizeArg::Compatible) => Normalize::Compatible,
                Some(NormalizeArg::Exact) => Normalize::Exact,
                Some(NormalizeArg::File) => Normalize::ByFile,
            },
            overwrite,
            jobs: self.jobs.unwrap_or(0),
            shared_subjects: false,
        }
    }
}

pub(super) fn convert_cohort(
    input: &Path,
    output: &Path,
    args: TensorizeArgs,
    overwrite: bool,
) -> Outcome {
    check_name(output, None, "the folders of a tensorized cohort")?;
    if TensorizedCohort::is_at(input) {
        return Err(Failure::from_message(format!(
            "{} is already a tensorized cohort; give a MEDS folder",
            input.display()
        )));
    }
    let dataset = MedsDataset::open(input)?;
    let progress = Progress::new(dataset.shards().len());
    let options = args.to_options(overwrite);
    let report = tensorize(&dataset, output, &options, |shards| {
        for shard in shards {
            progress.show_file(Path::new(&shard.name));
            progress.add_rows(shard.subjects);
        }
        match interrupt::check_interrupt() {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    });
    interrupt::check_interrupt()?;
    let report = report.map_err(Failure::from)?;
    describe_notes(&report, options.unknown).iter().for_each(|note| progress.show_note(note));
    progress.finish();
    print_sentence(&format!(
        "wrote {} subjects, {} events, {} measurements and {} static facts in {} shards to {}",
        group_digits(report.subjects()),
        group_digits(report.events()),
        group_digits(report.measurements()),
        group_digits(report.statics()),
        group_digits(report.shards.len()),
        output.display()
    ))?;
    let unknown = report.unknown_measurements();
    if unknown == 0 {
        return print_sentence(&format!("{} codes", group_digits(report.codes)));
    }
    print_sentence(&format!(
        "{} codes; {} measurements of {} others {}: {}",
        group_digits(report.codes),
        group_digits(unknown),
        group_digits(report.unknown.len()),
        if options.unknown == UnknownCodes::Zero { "have the token 0" } else { "were dropped" },
        list_most_frequent(&report)
    ))
}

fn list_most_frequent(report: &TensorizeReport) -> String {
    let mut codes: Vec<(&String, &u64)> = report.unknown.iter().collect();
    codes.sort_by_key(|(_, n)| std::cmp::Reverse(**n));
    let shown: Vec<String> =
        codes.iter().take(5).map(|(code, n)| format!("{code} ({})", group_digits(**n))).collect();
    let more = if codes.len() > shown.len() { ", .." } else { "" };
    format!("{}{more}", shown.join(", "))
}

fn describe_notes(report: &TensorizeReport, unknown: UnknownCodes) -> Vec<String> {
    let mut notes = Vec::new();
    let empty: usize = report.shards.iter().map(|s| s.without_events).sum();
    if empty > 0 {
        notes.push(format!(
            "{} subjects have no events, so their rows are empty",
            group_digits(empty)
        ));
    }
    if !report.unsorted.is_empty() {
        notes.push(format!(
            "{} shards were not sorted by subject and time, so they were sorted: {}",
            group_digits(report.unsorted.len()),
            report.unsorted.iter().take(5).cloned().collect::<Vec<_>>().join(", ")
        ));
    }
    if report.no_splits {
        notes.push(
            "no subjects are assigned to training: there is neither a folder named train nor a metadata/subject_splits.parquet; a Dataset of a split will be empty".to_owned(),
        );
    }
    if unknown == UnknownCodes::Zero && report.unknown_measurements() > 0 {
        notes.push("the token 0 is also the token of padding".to_owned());
    }
    notes
}

//! `serrate generate`: writes health records of synthetic patients.

use std::path::PathBuf;

use clap::Args;

use super::arguments::{MAX_PATIENTS, MAX_SHARDS};
use super::command_failure::{Failure, Outcome};
use super::convert_files::{StagedOutput, list_formats, names_folder, print_written_rows};
use super::files::{FileFormat, NewFolders, OutputFile, SinkOptions, check_absent, describe_times};
use super::interrupt;
use super::output::{format_count, print_line};
use super::progress::Progress;
use crate::access;
use crate::generate::{MedsWriteOptions, SyntheticPatients};
use crate::io::parquet::ParquetWriteOptions;
use crate::table::RaggedTable;
use serrate_core::internal::AtomicFiles;

const EXAMPLES: &str = "\
Examples:
  serrate generate --patients 1000 -o synthetic.nrt
  serrate generate --patients 1000000 --seed 7 -o synthetic.parquet
  serrate generate --patients 10000 --to meds -o synthetic-meds/
  serrate generate --patients 100000 --shards 8 --to nrt -o synthetic/

The same number of patients and seed give the same patients, whatever the format
and the number of shards.";

/// Arguments of `serrate generate`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct GenerateArgs {
    /// Number of patients.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(..=MAX_PATIENTS))]
    patients: u64,
    /// Seed; different seeds give different patients [default: 0].
    #[arg(long, value_name = "S", default_value_t = 0, hide_default_value = true)]
    seed: u64,
    /// File to write, or a folder for shards.
    #[arg(short, long, value_name = "OUT")]
    pub(super) output: PathBuf,
    /// Format to write [default: by the name of OUT; required for folders].
    #[arg(long, value_name = "FORMAT", value_parser = list_formats(FileFormat::MedsTorchData))]
    to: Option<FileFormat>,
    /// Number of files in a folder (approximate for MEDS, which has splits).
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(1..=MAX_SHARDS))]
    shards: Option<u64>,
    /// Replace existing files.
    #[arg(long, alias = "force")]
    overwrite: bool,
}

pub(super) fn run(args: &GenerateArgs) -> Outcome {
    let by_name = FileFormat::from_path(&args.output);
    let format = args.to.or(by_name).ok_or_else(|| {
        Failure::from_usage(format!(
            "{}: the format is unknown; set --to FORMAT, or use a name such as out.nrt or out.parquet",
            args.output.display()
        ))
    })?;
    if format == FileFormat::Meds {
        return write_meds(args);
    }
    let folder = by_name.is_none() || names_folder(&args.output);
    let shards = args.shards.unwrap_or(1);
    if !folder && shards > 1 {
        return Err(Failure::from_usage(format!(
            "{} is one file, but --shards {shards} requires a folder; name a folder, and set --to FORMAT",
            args.output.display()
        )));
    }
    let targets: Vec<PathBuf> = match folder {
        false => vec![args.output.clone()],
        true => {
            (0..shards).map(|i| args.output.join(format!("{i}.{}", format.extension()))).collect()
        }
    };
    targets.iter().try_for_each(|target| check_absent(target, args.overwrite))?;
    let progress = Progress::from_rows(args.patients);
    let patients = SyntheticPatients::new(args.seed, args.patients)?;
    let mut patients = PatientWriter { patients, rest: None, progress: &progress };
    let schema = SyntheticPatients::new(args.seed, 1)?
        .next()
        .ok_or_else(|| {
            Failure::from_message("internal error: no patient was generated; please report it")
        })??
        .arrow_schema()?;
    if format == FileFormat::Nrt {
        describe_times(&schema).iter().for_each(|note| progress.show_note(note));
    }
    let options = SinkOptions { overwrite: args.overwrite, ..SinkOptions::default() };
    let _folders = NewFolders::from_targets(&targets);
    let temporary = match folder {
        true => Some(AtomicFiles::create(&args.output, args.overwrite)?),
        false => None,
    };
    let staged = StagedOutput::new(&args.output, temporary);
    for (i, target) in targets.iter().enumerate() {
        let path = staged.find_path(target);
        // The numbers of patients per file differ by at most one.
        let extra = u64::from((i as u64) < args.patients % shards);
        let rows = usize::try_from(args.patients / shards + extra).map_err(|_| {
            Failure::from_message(format!(
                "--patients {} is too large for the address space; use fewer patients",
                args.patients
            ))
        })?;
        OutputFile::create(&path, format, &schema, &options)
            .and_then(|file| patients.write_file(file, rows))
            .map_err(|failure| failure.with_target_name(&path, target))?;
    }
    staged.commit()?;
    progress.finish();
    print_written_rows(args.patients, &args.output, folder.then_some(targets.len()))
}

/// Writes synthetic patients to one file after another.
struct PatientWriter<'a> {
    patients: SyntheticPatients,
    /// Patients that were drawn with those of the last file, and belong to the next one.
    rest: Option<RaggedTable>,
    progress: &'a Progress,
}

impl PatientWriter<'_> {
    fn write_file(&mut self, mut file: OutputFile, patients: usize) -> Outcome {
        let mut left = patients;
        while left > 0 {
            interrupt::check_interrupt()?;
            let drawn = self.rest.take().map(Ok).or_else(|| self.patients.next());
            let Some(chunk) = drawn.transpose()? else { break };
            let count = left.min(chunk.num_rows());
            file.write(&chunk.slice(0, count)?.to_batch()?)?;
            if count < chunk.num_rows() {
                self.rest = Some(chunk.slice(count, chunk.num_rows() - count)?);
            }
            left -= count;
            self.progress.add_rows(count);
        }
        file.finish()?;
        Ok(())
    }
}

fn write_meds(args: &GenerateArgs) -> Outcome {
    if access::is_file(&args.output) {
        let path = args.output.display();
        return Err(Failure::from_message(format!(
            "{path} is a file, but a MEDS data set needs a folder; \
         choose another name"
        )));
    }
    let mut options = MedsWriteOptions {
        files: ParquetWriteOptions { overwrite: args.overwrite, ..ParquetWriteOptions::default() },
        ..MedsWriteOptions::default()
    };
    if let Some(shards) = args.shards {
        options.shard_subjects = args.patients.div_ceil(shards).max(1);
    }
    let progress = Progress::from_rows(args.patients);
    let done = |patients| {
        progress.set_position(patients);
        Ok(())
    };
    SyntheticPatients::new(args.seed, args.patients)?.write_meds(&args.output, &options, done)?;
    progress.finish();
    let patients = format_count(args.patients, "patient", "patients");
    print_line(&format!("wrote {patients} to {}", args.output.display()))
}

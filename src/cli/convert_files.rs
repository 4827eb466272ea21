//! `serrate convert`: converts a file or folder from any supported format to any other.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use arrow::datatypes::SchemaRef;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};

use super::command_failure::{Failure, Outcome};
use super::files::{
    DeclaredTypes, FileFormat, InputShard, InputSource, MedsPart, NewFolders, OutputFile,
    SinkOptions, check_absent, check_name, describe_losses, describe_times, find_format,
};
use super::interrupt;
use super::output::{format_count, group_digits, print_line};
use super::progress::Progress;
use super::tensorize::{self, TensorizeArgs};
use crate::access;
use crate::array::leaf_type;
use crate::dense::TableDenseOptions;
use crate::io::ExistingTarget;
use crate::io::meds::Vocabulary;
use serrate_core::internal::AtomicFiles;

const EXAMPLES: &str = "\
Examples:
  serrate convert patients.nrt patients.parquet
  serrate convert shards/ all.nrt             one file, shards in order
  serrate convert shards/ out/ --to parquet   one file per shard, same names
  serrate convert meds/ patients.nrt          codes as tokens, listed in
                                              patients.codes.parquet
  serrate convert x.json x.nrt --schema time=timestamp --schema code=uint16[]
  serrate convert meds/ cohort/ --to meds-torch-data --normalize
                                              readable by MEDSPytorchDataset
  serrate convert small.nrt batch.safetensors
                                              dense, padded to the longest lists

Formats: .nrt, .parquet, .arrow (.ipc, .feather), .json, .ndjson (.jsonl), and
tensorized cohorts. MEDS folders are only read, and .safetensors files (dense
tensors) are only written.";

/// Arguments of `serrate convert`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct ConvertArgs {
    /// File or folder to read.
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// File to write, or folder for one file per input file. OUT is a folder if it ends in `/`, or
    /// if it has no extension and is not an existing file.
    #[arg(value_name = "OUT")]
    pub(super) output: PathBuf,
    /// Format to write [default: by the name of OUT; required for folders].
    #[arg(long, value_name = "FORMAT", value_parser = list_formats(FileFormat::Meds))]
    to: Option<FileFormat>,
    #[command(flatten)]
    declared: DeclaredTypes,
    /// Keep NaN. By default, NaN of .nrt files becomes NULL in formats that have NULL, as in SQL,
    /// and NaN of any file becomes null in JSON.
    #[arg(long)]
    keep_nan: bool,
    /// Omit the ids (`subject_id`) from .nrt files.
    #[arg(long)]
    plain: bool,
    /// Replace existing files.
    #[arg(long, alias = "force")]
    overwrite: bool,
    #[command(flatten)]
    cohort: TensorizeArgs,
}

pub(super) fn run(args: &ConvertArgs) -> Outcome {
    if args.to == Some(FileFormat::MedsTorchData) {
        return tensorize::convert_cohort(&args.input, &args.output, args.cohort, args.overwrite);
    }
    if let Some(option) = args.cohort.find_given() {
        return Err(Failure::from_usage(format!(
            "{option} requires --to meds-torch-data; add --to meds-torch-data, or remove {option}"
        )));
    }
    let mut source = InputSource::open(&args.input)?;
    source.declare_types(&args.declared)?;
    if args.to.is_none() && names_csv(&args.output) {
        return Err(suggest_sql(&source, &args.output));
    }
    let plan = OutputPlan::new(args, &source)?;
    let _folders = NewFolders::from_targets(plan.list_files());
    let staged = plan.stage_files(args)?;
    let progress = Progress::new(source.shards.len());
    let schema = select_content(args, plan.format, &mut source, &progress)?;
    let rows = plan.write_rows(args, &source, &schema, &staged, &progress)?;
    progress.finish();
    let vocabulary = match (&plan.vocabulary, &source.meds) {
        (Some(path), Some(folder)) => Some((path, folder.vocabulary()?)),
        _ => None,
    };
    if let Some((path, vocabulary)) = vocabulary {
        write_vocabulary(vocabulary, path, &staged, args.overwrite)?;
    }
    staged.commit()?;
    if let Some((path, vocabulary)) = vocabulary {
        let codes = group_digits(vocabulary.len());
        print_line(&format!("wrote {codes} codes to {}", path.display()))?;
    }
    print_written_rows(rows, &args.output, plan.to_folder.then_some(plan.targets.len()))
}

/// The files that a conversion writes.
struct OutputPlan {
    format: FileFormat,
    /// Whether the output is a folder, with one file for each input file.
    to_folder: bool,
    targets: Vec<PathBuf>,
    /// The file that lists the codes of the tokens in `targets`.
    vocabulary: Option<PathBuf>,
}

impl OutputPlan {
    /// Chooses the files to write for the input `source`. Returns an error if a file must not be
    /// written, for example if it exists.
    fn new(args: &ConvertArgs, source: &InputSource) -> Outcome<Self> {
        let by_name = FileFormat::from_path(&args.output);
        // If the input is a folder, the output is a folder, too, unless OUT has the extension of a
        // file format: then one file receives all rows.
        let to_folder = (source.is_folder() && by_name.is_none()) || names_folder(&args.output);
        let format = match args.to.or(by_name.filter(|_| !to_folder)) {
            Some(format) => format,
            None if to_folder => {
                return Err(Failure::from_usage(format!(
                    "{} is a folder, so its format is unknown; set --to FORMAT",
                    args.output.display()
                )));
            }
            None => find_format(&args.output)?,
        };
        if !to_folder && by_name.is_some() {
            let what = format!("data in the format {}", format.name());
            check_name(&args.output, Some(format), &what)?;
        }
        let targets: Vec<PathBuf> = match to_folder {
            false => vec![args.output.clone()],
            true => source
                .shards
                .iter()
                .map(|s| {
                    let mut name = args.output.join(&s.relative).into_os_string();
                    name.push(".");
                    name.push(format.extension());
                    name.into()
                })
                .collect(),
        };
        let vocabulary = find_vocabulary_path(source, &args.output, format, to_folder);
        let plan = Self { format, to_folder, targets, vocabulary };
        check_targets(plan.list_files(), source, args.overwrite)?;
        if let (Some(path), Some(dataset)) = (&plan.vocabulary, &source.meds) {
            check_vocabulary(path, dataset.vocabulary()?, &plan.targets, &args.output)?;
        }
        Ok(plan)
    }

    fn list_files(&self) -> impl Iterator<Item = &PathBuf> {
        self.targets.iter().chain(&self.vocabulary)
    }

    /// Creates a temporary folder for the files, unless the output is a single file. A file of
    /// tokens and its vocabulary belong together, like the files of a folder.
    fn stage_files<'a>(&self, args: &'a ConvertArgs) -> Outcome<StagedOutput<'a>> {
        let output = args.output.as_path();
        let (folder, temporary) = match (self.to_folder, &self.vocabulary) {
            (true, _) => (output, Some(AtomicFiles::create(output, args.overwrite)?)),
            (false, Some(_)) => {
                let folder = output.parent().unwrap_or(Path::new(""));
                let place = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
                access::create_dir_all(place).map_err(|e| crate::Error::io(place, e))?;
                (folder, Some(AtomicFiles::create(place, args.overwrite)?))
            }
            (false, None) => (output, None),
        };
        Ok(StagedOutput::new(folder, temporary))
    }

    /// Writes the rows of `source` to the targets. Returns the number of rows.
    fn write_rows(
        &self,
        args: &ConvertArgs,
        source: &InputSource,
        schema: &SchemaRef,
        staged: &StagedOutput<'_>,
        progress: &Progress,
    ) -> Outcome<u64> {
        let options = SinkOptions {
            overwrite: args.overwrite,
            plain: args.plain,
            nan_is_null: !args.keep_nan,
            dense: TableDenseOptions { tokens_as_i64: true, ..TableDenseOptions::default() },
        };
        let parts: Vec<&[InputShard]> = match self.to_folder {
            true => source.shards.chunks(1).collect(),
            false => vec![source.shards.as_slice()],
        };
        let mut rows = 0;
        for (shards, target) in parts.into_iter().zip(&self.targets) {
            let path = staged.find_path(target);
            rows += write_shards(shards, &path, self.format, schema, &options, progress)
                .map_err(|failure| failure.with_target_name(&path, target))?;
        }
        Ok(rows)
    }
}

/// The folder of the output files. They are written to the folder `temporary`, if any, and move to
/// `folder` only when all of them are complete.
pub(super) struct StagedOutput<'a> {
    folder: &'a Path,
    temporary: Option<AtomicFiles>,
}

impl<'a> StagedOutput<'a> {
    pub(super) fn new(folder: &'a Path, temporary: Option<AtomicFiles>) -> Self {
        Self { folder, temporary }
    }

    /// Returns the path at which the output file `target` is written first. If there is no
    /// temporary folder, or if `target` is not below `folder`, returns `target` itself.
    pub(super) fn find_path(&self, target: &Path) -> PathBuf {
        match (&self.temporary, target.strip_prefix(self.folder)) {
            (Some(temporary), Ok(relative)) => temporary.path().join(relative),
            _ => target.to_path_buf(),
        }
    }

    pub(super) fn commit(self) -> Outcome {
        match self.temporary {
            Some(temporary) => Ok(temporary.commit()?),
            None => Ok(()),
        }
    }
}

/// Selects what is read from `source` for a file of the format `format`. Returns the schema of the
/// rows. Shows a note about each part of the data that the format does not keep.
fn select_content(
    args: &ConvertArgs,
    format: FileFormat,
    source: &mut InputSource,
    progress: &Progress,
) -> Outcome<SchemaRef> {
    if source.meds.is_some() {
        let part = choose_part(format);
        describe_losses(&source.schema()?, part).iter().for_each(|note| progress.show_note(note));
        source.select_part(part);
    }
    if format.has_nulls() && !args.keep_nan {
        source.read_nan_as_null();
    }
    let schema = source.schema()?;
    if format == FileFormat::Nrt {
        check_strings(source, &schema)?;
        describe_times(&schema).iter().for_each(|note| progress.show_note(note));
    }
    Ok(schema)
}

fn write_vocabulary(
    vocabulary: &Vocabulary,
    path: &Path,
    staged: &StagedOutput<'_>,
    overwrite: bool,
) -> Outcome {
    let target = staged.find_path(path);
    if let Some(folder) = target.parent() {
        access::create_dir_all(folder).map_err(|e| crate::Error::io(folder, e))?;
    }
    vocabulary
        .write(&target, |_| None, ExistingTarget::from_overwrite(overwrite))
        .map_err(|e| Failure::from(e).with_target_name(&target, path))
}

/// Returns a parser for the names of file formats. It does not accept `unwritable`, a format that
/// the command cannot write.
pub(super) fn list_formats(unwritable: FileFormat) -> impl TypedValueParser<Value = FileFormat> {
    let formats = FileFormat::value_variants().iter().filter(|f| **f != unwritable);
    PossibleValuesParser::new(formats.filter_map(FileFormat::to_possible_value))
        .try_map(|name| FileFormat::from_str(&name, true))
}

fn names_csv(output: &Path) -> bool {
    let extension = output.extension().and_then(|e| e.to_str());
    extension.is_some_and(|e| e.eq_ignore_ascii_case("csv")) && !names_folder(output)
}

/// Returns the error for an output file `x.csv`: `convert` does not write CSV. The message suggests
/// SQL, which does.
fn suggest_sql(source: &InputSource, output: &Path) -> Failure {
    let input = source.path.display();
    let from = match (&source.meds, source.is_folder()) {
        (Some(_), _) => format!("meds('{input}')"),
        (None, true) => format!("'{}/'", input.to_string().trim_end_matches('/')),
        (None, false) => format!("'{input}'"),
    };
    let output = output.display();
    Failure::from_usage(format!(
        "{output}: convert does not write CSV; write it with SQL: serrate -c \"FROM {from}\" -o {output}"
    ))
}

/// Whether an output is a folder: an existing folder, a name that ends in a separator, or a name
/// without an extension that is not an existing file.
pub(super) fn names_folder(output: &Path) -> bool {
    let slash = output.as_os_str().to_string_lossy().ends_with(std::path::is_separator);
    access::is_dir(output) || slash || (output.extension().is_none() && !access::is_file(output))
}

/// Returns an error if the input is JSON and a column of `schema` has strings, which `.nrt` cannot
/// hold. The error says how to convert strings that are times.
fn check_strings(source: &InputSource, schema: &SchemaRef) -> Outcome {
    let json = matches!(source.format, FileFormat::Json | FileFormat::Ndjson);
    match schema.fields().iter().find(|f| leaf_type(f.data_type()).is_string()) {
        Some(f) if json => Err(Failure::from_message(format!(
            "{}: column {name:?} has strings, which .nrt cannot hold; if they are times, set --schema {name}=timestamp; if they are codes, replace them with integers first; .parquet and .arrow keep strings",
            source.path.display(),
            name = f.name()
        ))),
        _ => Ok(()),
    }
}

fn choose_part(format: FileFormat) -> MedsPart {
    match format {
        FileFormat::Parquet | FileFormat::Arrow => MedsPart::All,
        FileFormat::Json | FileFormat::Ndjson | FileFormat::Meds => MedsPart::Events,
        FileFormat::Nrt | FileFormat::Safetensors | FileFormat::MedsTorchData => MedsPart::Tokens,
    }
}

fn find_vocabulary_path(
    source: &InputSource,
    output: &Path,
    format: FileFormat,
    to_folder: bool,
) -> Option<PathBuf> {
    source.meds.as_ref().filter(|_| choose_part(format) == MedsPart::Tokens)?;
    Some(match to_folder {
        true => output.join("metadata").join("codes.parquet"),
        // The vocabulary is named after the output, because other files in the same folder may have
        // another vocabulary.
        false => output.with_extension("codes.parquet"),
    })
}

/// Returns an error if `path` holds a different vocabulary that is still in use, because writing
/// `vocabulary` there would replace it. The old vocabulary counts as in use if `folder` has a file
/// in the format of the output files `targets` that is not one of them: the integer tokens in this
/// file may refer to the old vocabulary.
fn check_vocabulary(
    path: &Path,
    vocabulary: &Vocabulary,
    targets: &[PathBuf],
    folder: &Path,
) -> Outcome {
    if !access::exists(path) || Vocabulary::read(path).is_ok_and(|v| v.id() == vocabulary.id()) {
        return Ok(());
    }
    let format = targets.first().and_then(|t| FileFormat::from_path(t));
    let kept = access::walk_folder(folder).flatten().find(|e| {
        e.file_type().is_file()
            && FileFormat::from_path(e.path()) == format
            && !targets.iter().any(|t| t == e.path())
    });
    match kept {
        None => Ok(()),
        Some(file) => Err(Failure::from_message(format!(
            "{codes_file} has the codes of another data set and is still needed by {input} in the same folder; write to another folder",
            codes_file = path.display(),
            input = file.path().display()
        ))),
    }
}

/// Prints a report such as `wrote 12 rows to OUTPUT`. If `output` is a folder, `files` is the
/// number of its files, and the report is `wrote 12 rows to 3 files in OUTPUT`.
pub(super) fn print_written_rows(rows: u64, output: &Path, files: Option<usize>) -> Outcome {
    let (rows, output) = (format_count(rows, "row", "rows"), output.display());
    match files {
        None => print_line(&format!("wrote {rows} to {output}")),
        Some(1) => print_line(&format!("wrote {rows} to 1 file in {output}")),
        Some(files) => print_line(&format!("wrote {rows} to {files} files in {output}")),
    }
}

fn write_shards(
    shards: &[InputShard],
    target: &Path,
    format: FileFormat,
    schema: &SchemaRef,
    options: &SinkOptions,
    progress: &Progress,
) -> Outcome<u64> {
    let mut sink = OutputFile::create(target, format, schema, options)?;
    for shard in shards {
        progress.show_file(&shard.path);
        for batch in shard.open_batches(Some(schema))? {
            interrupt::check_interrupt()?;
            let batch = batch?;
            sink.write(&batch)?;
            progress.add_rows(batch.num_rows());
        }
    }
    sink.finish()
}

/// Returns an error if two of the output files `targets` have the same path, or if one of them
/// exists. With `overwrite`, an existing file is an error only if it is also an input file.
fn check_targets<'a>(
    targets: impl Iterator<Item = &'a PathBuf>,
    source: &InputSource,
    overwrite: bool,
) -> Outcome {
    let mut seen = HashSet::new();
    for target in targets {
        if !seen.insert(target) {
            return Err(Failure::from_message(format!(
                "two input files would both be written to {}; rename one of them",
                target.display()
            )));
        }
        check_absent(target, overwrite)?;
        if !access::exists(target) {
            continue;
        }
        let same = |s: &InputShard| matches!((access::canonicalize_path(&s.path), access::canonicalize_path(target)), (Ok(a), Ok(b)) if a == b);
        if source.shards.iter().any(same) {
            return Err(Failure::from_message(format!(
                "{} is an input file and cannot also be the output; choose another name",
                target.display()
            )));
        }
    }
    Ok(())
}

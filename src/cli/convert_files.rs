//! `serrate convert`: converts a file or folder from any supported format to any other.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use arrow::datatypes::SchemaRef;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};

use super::command_failure::{Failure, Outcome};
use super::files::{
    DeclaredTypes, FileFormat, InputShard, InputSource, MedsPart, NewFolders, OutputFile,
    SinkOptions, check_name, describe_losses, describe_times, find_format,
};
use super::interrupt;
use super::output::{group_digits, print_line};
use super::progress::Progress;
use super::tensorize::{self, TensorizeArgs};
use crate::access;
use crate::array::leaf_type;
use crate::dense::TableDenseOptions;
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
    let by_name = FileFormat::from_path(&args.output);
    source.declare_types(&args.declared)?;
    if args.to.is_none() && names_csv(&args.output) {
        return Err(suggest_sql(&source, &args.output));
    }
    // If the input is a folder, the output is a folder, too, unless OUT has the extension of a file
    // format: then one file receives all rows.
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
    let options = SinkOptions {
        overwrite: args.overwrite,
        plain: args.plain,
        nan_is_null: !args.keep_nan,
        dense: TableDenseOptions { tokens_as_i64: true, ..TableDenseOptions::default() },
    };
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
    let mut written = targets.clone();
    let vocabulary = find_vocabulary_path(&source, &args.output, format, to_folder);
    written.extend(vocabulary.clone());
    check_targets(&written, &source, args.overwrite)?;
    if let (Some(path), Some(dataset)) = (&vocabulary, &source.meds) {
        check_vocabulary(path, dataset.vocabulary()?, &targets, &args.output)?;
    }
    let _folders = NewFolders::from_targets(&written);
    // A file of tokens and its vocabulary belong together. Like the files of a folder, both are
    // written to a temporary folder, and move to their paths only when both are complete.
    let (folder, staged) = match (to_folder, &vocabulary) {
        (true, _) => {
            (args.output.as_path(), Some(AtomicFiles::create(&args.output, args.overwrite)?))
        }
        (false, Some(_)) => {
            let folder = args.output.parent().unwrap_or(Path::new(""));
            let place = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            access::create_dir_all(place).map_err(|e| crate::Error::io(place, e))?;
            (folder, Some(AtomicFiles::create(place, args.overwrite)?))
        }
        (false, None) => (args.output.as_path(), None),
    };
    let progress = Progress::new(source.shards.len());
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
        check_strings(&source, &schema)?;
        describe_times(&schema).iter().for_each(|note| progress.show_note(note));
    }
    let rows = match targets.as_slice() {
        [target] if !to_folder => {
            let staged = find_staged_path(staged.as_ref(), folder, target);
            write_shards(&source.shards, &staged, format, &schema, &options, &progress)
                .map_err(|failure| failure.with_target_name(&staged, target))?
        }
        targets => {
            let mut rows = 0;
            for (shard, target) in source.shards.iter().zip(targets) {
                let one = std::slice::from_ref(shard);
                let staged = find_staged_path(staged.as_ref(), folder, target);
                rows += write_shards(one, &staged, format, &schema, &options, &progress)
                    .map_err(|failure| failure.with_target_name(&staged, target))?;
            }
            rows
        }
    };
    progress.finish();
    let mut codes = None;
    if let (Some(path), Some(dataset)) = (&vocabulary, &source.meds) {
        let target = find_staged_path(staged.as_ref(), folder, path);
        if let Some(folder) = target.parent() {
            access::create_dir_all(folder).map_err(|e| crate::Error::io(folder, e))?;
        }
        let vocabulary = dataset.vocabulary()?;
        vocabulary
            .write(&target, |_| None, args.overwrite)
            .map_err(|e| Failure::from(e).with_target_name(&target, path))?;
        codes = Some((vocabulary.len(), path));
    }
    if let Some(staged) = staged {
        staged.commit()?;
    }
    if let Some((codes, path)) = codes {
        print_line(&format!("wrote {} codes to {}", group_digits(codes), path.display()))?;
    }
    print_written_rows(rows, &args.output, to_folder.then_some(targets.len()))
}

/// Returns the path at which the output file `target` is written first. Files of the output folder
/// `folder` are written to the temporary folder `staged` until all of them are complete. If
/// `staged` is `None`, or if `target` is not below `folder`, returns `target` itself.
pub(super) fn find_staged_path(
    staged: Option<&AtomicFiles>,
    folder: &Path,
    target: &Path,
) -> PathBuf {
    match (staged, target.strip_prefix(folder)) {
        (Some(staged), Ok(relative)) => staged.path().join(relative),
        _ => target.to_path_buf(),
    }
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

pub(super) fn choose_part(format: FileFormat) -> MedsPart {
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
    let noun = if rows == 1 { "row" } else { "rows" };
    let (rows, output) = (group_digits(rows), output.display());
    match files {
        None => print_line(&format!("wrote {rows} {noun} to {output}")),
        Some(1) => print_line(&format!("wrote {rows} {noun} to 1 file in {output}")),
        Some(files) => print_line(&format!("wrote {rows} {noun} to {files} files in {output}")),
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
fn check_targets(targets: &[PathBuf], source: &InputSource, overwrite: bool) -> Outcome {
    let mut seen = HashSet::new();
    for target in targets {
        if !seen.insert(target) {
            return Err(Failure::from_message(format!(
                "two input files would both be written to {}; rename one of them",
                target.display()
            )));
        }
        if !access::exists(target) {
            continue;
        }
        if !overwrite {
            return Err(Failure::from_message(format!(
                "{} exists; use --overwrite to replace it",
                target.display()
            )));
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

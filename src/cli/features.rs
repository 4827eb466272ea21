//! `serrate features`: computes features of labels for tabular models, and writes them as a table
//! or as sparse files.

use std::path::{Path, PathBuf};

use clap::Args;
use rayon::prelude::*;

use super::arguments::{MAX_BATCH, parse_up_to, parse_value};
use super::batches::{describe_tasks, describe_unknown};
use super::command_failure::{Failure, Outcome};
use super::files::{FEATURE_FILES, FileFormat, NewFolders, OutputFile, SinkOptions, check_name};
use super::interrupt;
use super::output::{group_digits, print_line};
use super::progress::Progress;
use crate::access;
use crate::io::features::{
    FeatureAggregate, FeatureForm, FeatureKey, FeatureSpec, FeatureStore, FeatureWindow,
    LabelFeatures,
};
use crate::io::meds::Labels;
use crate::io::meds_torch::MedsFolder;
use crate::io::parquet::{ParquetTableWriter, ParquetWriteOptions};
use crate::io::safetensors::SaveOptions;
use crate::kernels::between::ClosedEnds;
use crate::sql::sources::features::find_feature_keys;
use arrow::array::RecordBatch;
use serrate_core::internal::AtomicFiles;

const EXAMPLES: &str = "\
Examples:
  serrate features meds/ --labels l/ --prefix LAB// --prefix DRUG// -o f.parquet
                      a column per prefix, window and aggregate
  serrate features meds/ --labels l/ -o features/
                      all codes of the vocabulary, sparse, as Parquet files
  serrate features meds/ --labels l/ -o f.safetensors
                      the same as one sparse matrix with a row per label
  serrate features held/ --labels l/ --vocabulary meds/ -o held-features/
                      the same features for other data

A file gets a row per label, in the order of the labels; `row` is the position
of the label. A folder gets values.parquet (row, feature, value),
features.parquet (feature, name, code, window, aggregate) and labels.parquet
(row, subject_id, ..). f.safetensors has the tensors `indices` and `values`;
f.features.parquet and f.labels.parquet are written next to it. Sparse output
leaves out features without measurements; in other tables, their counts and
sums are 0, the others NULL.";

/// Arguments of `serrate features`.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct FeaturesArgs {
    /// MEDS folder, or tensorized cohort.
    #[arg(value_name = "DATA")]
    input: PathBuf,
    /// File or folder of labels.
    #[arg(long, value_name = "LABELS")]
    labels: PathBuf,
    /// Output: a table (.parquet, .arrow, .ndjson, .json), a sparse matrix (.safetensors), or a
    /// folder of sparse Parquet files.
    #[arg(short, long, value_name = "OUT")]
    pub(super) output: PathBuf,
    /// Code to aggregate; may be given more than once [default, without --prefix and --vocabulary:
    /// all codes of DATA].
    #[arg(long = "code", value_name = "CODE")]
    codes: Vec<String>,
    /// Code prefix: all codes that start with it are aggregated together; may be given more than
    /// once.
    #[arg(long = "prefix", value_name = "PREFIX")]
    prefixes: Vec<String>,
    /// A codes.parquet, or a folder that contains one; each of its codes is aggregated.
    #[arg(long, value_name = "PATH")]
    vocabulary: Option<String>,
    /// Time windows before a label: 12h, 30d, 4w; `all` is all measurements before it, `static` the
    /// measurements without a time.
    #[arg(long, value_name = "W,..", value_delimiter = ',', default_value = "30d,365d,all", value_parser = parse_value::<FeatureWindow>)]
    windows: Vec<FeatureWindow>,
    /// Aggregates: count (of measurements), value_count (of measurements with a value), sum,
    /// sum_sqd (sum of squares), mean, min, max, first, last, slope (of the least-squares
    /// line, per day).
    #[arg(long, value_name = "A,..", value_delimiter = ',', default_value = "count,sum,mean,min,max,last,slope", value_parser = parse_value::<FeatureAggregate>)]
    aggregates: Vec<FeatureAggregate>,
    /// Ends of a window that belong to the window: `(]` includes the time of the label, `[)` the
    /// start of the window, `[]` both, `()` neither.
    #[arg(long, value_name = "ENDS", default_value = "(]", value_parser = parse_value::<ClosedEnds>)]
    closed: ClosedEnds,
    /// Columns of a table: `columns` (one per feature), `list` (one list with all features) or
    /// `sparse` (lists of the indices and values of the features that exist).
    #[arg(long, value_name = "FORM", default_value = "columns", value_parser = parse_value::<FeatureForm>)]
    form: FeatureForm,
    /// Number of labels whose features a thread computes at a time.
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = parse_up_to(MAX_BATCH))]
    block: usize,
    /// Replace existing files.
    #[arg(long, alias = "force")]
    overwrite: bool,
}

/// Kind of output. The extension of the output path determines the kind: a table, one sparse matrix
/// (`.safetensors`), or a folder with three files.
enum FeatureOutput {
    Table(FileFormat),
    Matrix,
    Folder,
}

pub(super) fn run(args: &FeaturesArgs) -> Outcome {
    let target = find_target(args)?;
    let written = list_outputs(args, &target);
    if let Some(exists) = written.iter().find(|path| access::exists(path) && !args.overwrite) {
        return Err(crate::Error::Exists(exists.clone()).into());
    }
    let folder = MedsFolder::open(&args.input)?;
    let (codes, prefixes) = (args.codes.clone(), args.prefixes.clone());
    let keys = find_feature_keys(&folder, codes, prefixes, args.vocabulary.as_deref())?;
    let spec = FeatureSpec::try_new(keys, args.windows.clone(), args.aggregates.clone())?;
    let labels = Labels::read(&args.labels)?;
    let tasks = Labels::tasks(&args.labels)?;
    let features = LabelFeatures::new(folder, labels, spec.closed(args.closed));
    if matches!(target, FeatureOutput::Table(_)) {
        // `schema` returns an error if the table would have too many columns. This call reports the
        // error before the data is read.
        features.schema(args.form)?;
    }
    let _folders = NewFolders::from_targets(&written);
    let beside = written.first().and_then(|path| path.parent());
    let beside = beside.filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    access::create_dir_all(beside).map_err(|e| crate::Error::io(beside, e))?;

    let progress = Progress::from_rows(features.labels().len() as u64);
    if !tasks.is_empty() {
        progress.show_note(&describe_tasks(&tasks));
    }
    let mut used = vec![false; features.spec().keys().len()];
    let store = fill_store(args, &features, beside, &progress, &mut used)?;
    if let Some(note) = describe_unused(args, &features, &used) {
        progress.show_note(&note);
    }
    let unknown = features.unknown().unwrap_or(0);
    if unknown > 0 {
        progress.show_note(&describe_unknown(unknown, None));
    }
    write_target(args, &target, beside, &features, &store)?;
    progress.finish();
    let rows = match target {
        FeatureOutput::Table(_) => features.labels().len() - unknown,
        FeatureOutput::Matrix | FeatureOutput::Folder => features.labels().len(),
    };
    print_line(&format!(
        "wrote {} values of {} features for {} labels to {}",
        group_digits(store.num_values()),
        group_digits(features.spec().num_features()),
        group_digits(rows),
        args.output.display()
    ))
}

fn find_target(args: &FeaturesArgs) -> Outcome<FeatureOutput> {
    let by_name = FileFormat::from_path(&args.output);
    let target = match by_name {
        None if args.output.extension().is_some() && !access::is_dir(&args.output) => {
            return Err(Failure::from_usage(format!(
                "{}: the name has no known extension; write .parquet, .arrow, .ndjson, .json or .safetensors, or a name without an extension for a folder",
                args.output.display()
            )));
        }
        None => FeatureOutput::Folder,
        Some(FileFormat::Safetensors) => FeatureOutput::Matrix,
        Some(FileFormat::Nrt) => {
            return Err(Failure::from_usage(
                ".nrt files cannot hold NULL, the value of an absent feature; write .parquet, .arrow, .ndjson, .json or .safetensors",
            ));
        }
        Some(format) => FeatureOutput::Table(format),
    };
    if matches!(target, FeatureOutput::Folder) {
        check_name(&args.output, None, "a folder of sparse files")?;
    }
    if !matches!(target, FeatureOutput::Table(_)) && args.form == FeatureForm::List {
        return Err(Failure::from_usage(format!(
            "--form list requires a table as output, but the output {} is sparse; give a name such as features.parquet, or another --form",
            args.output.display()
        )));
    }
    Ok(target)
}

/// Returns the paths of the files to write. A table is one file. A matrix or a folder is three
/// files: the values, a table that describes the features, and a table that describes the labels.
fn list_outputs(args: &FeaturesArgs, target: &FeatureOutput) -> Vec<PathBuf> {
    match target {
        FeatureOutput::Table(_) => vec![args.output.clone()],
        FeatureOutput::Matrix => vec![
            args.output.clone(),
            args.output.with_extension("features.parquet"),
            args.output.with_extension("labels.parquet"),
        ],
        FeatureOutput::Folder => FEATURE_FILES.map(|name| args.output.join(name)).to_vec(),
    }
}

fn fill_store(
    args: &FeaturesArgs,
    features: &LabelFeatures,
    folder: &Path,
    progress: &Progress,
    used: &mut [bool],
) -> Outcome<FeatureStore> {
    let mut store = FeatureStore::create(folder, features.labels().len())?;
    let spec = features.spec();
    let per_key = spec.windows().len().saturating_mul(spec.aggregates().len()).max(1);
    let threads = rayon::current_num_threads().max(1);
    for shard in 0..features.num_shards() {
        interrupt::check_interrupt()?;
        let shard = features.read(shard)?;
        for blocks in shard.blocks(args.block).chunks(threads) {
            interrupt::check_interrupt()?;
            let rows = blocks
                .par_iter()
                .map(|block| shard.features(block.clone()))
                .collect::<crate::Result<Vec<_>>>()?;
            for rows in rows {
                for feature in rows.iter().flat_map(|(_, features, _)| features) {
                    if let Some(used) = used.get_mut(*feature as usize / per_key) {
                        *used = true;
                    }
                }
                store.push(&rows)?;
                progress.add_rows(rows.len());
            }
        }
    }
    Ok(store)
}

/// Returns a note that names the values of `--code` and `--prefix` that matched no measurement of
/// any label, because the user may have misspelled them. Returns `None` if all of them matched.
/// `used` says for each code and prefix of `features` whether it matched.
fn describe_unused(args: &FeaturesArgs, features: &LabelFeatures, used: &[bool]) -> Option<String> {
    const MOST: usize = 5;
    let names = features.spec().keys().iter().zip(used).filter(|(_, used)| !**used);
    let given = args.codes.iter().chain(&args.prefixes).collect::<Vec<_>>();
    let is_given = |key: &FeatureKey| match key {
        FeatureKey::Code(code) => given.iter().any(|given| given.as_str() == code.as_ref()),
        FeatureKey::Prefix(prefix) => given.iter().any(|given| given.as_str() == prefix.as_ref()),
    };
    let names: Vec<String> =
        names.filter(|(key, _)| is_given(key)).map(|(key, _)| key.to_string()).collect();
    let more = match names.len().saturating_sub(MOST) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let shown = names.iter().take(MOST).cloned().collect::<Vec<_>>().join(", ");
    (!names.is_empty()).then(|| {
        format!("no label has a measurement of {shown}{more} in these windows; check the spelling")
    })
}

/// Writes the features in `store` to the files of `target`. `beside` is the folder that contains
/// the output.
fn write_target(
    args: &FeaturesArgs,
    target: &FeatureOutput,
    beside: &Path,
    features: &LabelFeatures,
    store: &FeatureStore,
) -> Outcome {
    let overwrite = args.overwrite;
    let parquet = ParquetWriteOptions { overwrite, ..ParquetWriteOptions::default() };
    match target {
        FeatureOutput::Table(format) => {
            let schema = features.schema(args.form)?;
            let columns: Vec<usize> = (0..schema.fields().len()).collect();
            let options = SinkOptions { overwrite, ..SinkOptions::default() };
            let mut file = OutputFile::create(&args.output, *format, &schema, &options)?;
            for labels in store.ranges(args.block) {
                interrupt::check_interrupt()?;
                file.write(&features.to_batch(&store.read(labels)?, args.form, &columns)?)?;
            }
            file.finish().map(|_| ())
        }
        FeatureOutput::Matrix => {
            let (names, labels) = describe_axes(features)?;
            // The files describe each other, so none of them is replaced before all are written.
            let staged = AtomicFiles::create(beside, overwrite)?;
            let matrix = staged.path().join(args.output.file_name().unwrap_or_default());
            write_table(&matrix.with_extension("features.parquet"), &names, &parquet)?;
            write_table(&matrix.with_extension("labels.parquet"), &labels, &parquet)?;
            let save = SaveOptions { overwrite, ..SaveOptions::default() };
            store.write_dok(&matrix, features.spec(), &save)?;
            Ok(staged.commit()?)
        }
        FeatureOutput::Folder => {
            let (names, labels) = describe_axes(features)?;
            let staged = AtomicFiles::create(&args.output, overwrite)?;
            write_table(&staged.path().join("features.parquet"), &names, &parquet)?;
            write_table(&staged.path().join("labels.parquet"), &labels, &parquet)?;
            store.write_parquet(staged.path().join("values.parquet"), &parquet)?;
            Ok(staged.commit()?)
        }
    }
}

/// Returns the descriptions of a sparse matrix: a table with one row per feature (column of the
/// matrix), and a table with one row per label (row of the matrix).
fn describe_axes(features: &LabelFeatures) -> Outcome<(RecordBatch, RecordBatch)> {
    Ok((features.spec().names()?, features.label_rows()?))
}

fn write_table(path: &Path, table: &RecordBatch, options: &ParquetWriteOptions) -> Outcome {
    let mut writer = ParquetTableWriter::create(path, table.schema_ref(), options)?;
    writer.write_batch(table)?;
    Ok(writer.finish()?)
}

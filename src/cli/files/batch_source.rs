//! Reads a file, or a folder of shards, as batches in source order.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, SchemaRef};

use super::meds::{MedsPart, select_part};
use super::{DeclaredTypes, FEATURE_FILES, FileFormat, find_format, unify_schemas};
use crate::access;
use crate::array::list_depth;
use crate::cli::command_failure::{Failure, Outcome};
use crate::cli::interrupt;
use crate::error::Error;
use crate::io::arrow_ipc::{IpcReadOptions, IpcTableReader};
use crate::io::json::{JsonOptions, NdjsonReader, read_json};
use crate::io::meds_torch::{MedsFolder, TensorizedCohort};
use crate::io::nrt::{NrtFile, ReadOptions};
use crate::io::parquet::{ParquetReadOptions, ParquetTableReader};
use crate::table::RaggedTable;
use serrate_core::internal::{is_hidden, make_natural_key};

/// Target number of leaf values per batch.
const BATCH_LEAVES: usize = 1 << 20;
const BATCH_ROWS: usize = 8192;

#[derive(Clone, Debug)]
pub(in crate::cli) struct InputShard {
    pub(in crate::cli) path: PathBuf,
    /// Path of the file relative to the input folder, without the extension. If the input is a
    /// single file, this is its name without the extension.
    pub(in crate::cli) relative: PathBuf,
    pub(in crate::cli) format: FileFormat,
    /// For MEDS data, the folder, the index of the shard in the folder, and the columns to read.
    meds: Option<(MedsFolder, usize, MedsPart)>,
    reading: ReadSettings,
}

#[derive(Clone, Debug, Default)]
struct ReadSettings {
    /// Whether NaN in `.nrt` files becomes null, as in SQL.
    nan_is_null: bool,
    declared: Arc<[(String, DataType)]>,
}

pub(in crate::cli) struct InputSource {
    pub(in crate::cli) path: PathBuf,
    pub(in crate::cli) format: FileFormat,
    pub(in crate::cli) shards: Vec<InputShard>,
    /// Folder with MEDS data or a tensorized cohort, if the input is one.
    pub(in crate::cli) meds: Option<MedsFolder>,
}

impl InputSource {
    /// Opens a file, or a folder of files of one format, sorted in natural order (`2` before `10`).
    pub(in crate::cli) fn open(path: &Path) -> Outcome<Self> {
        let metadata = access::metadata(path).map_err(|e| Error::io(path, e))?;
        if !metadata.is_dir() {
            return Self::open_file(path);
        }
        match TensorizedCohort::is_at(path) || is_meds(path) {
            true => Self::open_meds_folder(path),
            false => Self::open_folder(path),
        }
    }

    fn open_file(path: &Path) -> Outcome<Self> {
        let format = find_format(path)?;
        let shard = InputShard {
            path: path.to_path_buf(),
            relative: PathBuf::from(path.file_stem().unwrap_or_default()),
            format,
            meds: None,
            reading: ReadSettings::default(),
        };
        Ok(Self { path: path.to_path_buf(), format, shards: vec![shard], meds: None })
    }

    /// Opens a folder with MEDS data or a tensorized cohort.
    fn open_meds_folder(path: &Path) -> Outcome<Self> {
        let folder = MedsFolder::open(path)?;
        let (format, files): (_, Vec<(PathBuf, String)>) = match &folder {
            MedsFolder::Meds(data) => {
                let files = data.shards().map(|s| (s.path().to_path_buf(), s.name().to_owned()));
                (FileFormat::Meds, files.collect())
            }
            MedsFolder::Cohort(cohort) => {
                let files = cohort.shards().iter();
                let files = files.map(|s| (s.tensors_path().to_path_buf(), s.name().to_owned()));
                (FileFormat::MedsTorchData, files.collect())
            }
        };
        let shards = files
            .into_iter()
            .enumerate()
            .map(|(i, (path, name))| InputShard {
                path,
                relative: Path::new("data").join(name),
                format,
                meds: Some((folder.clone(), i, MedsPart::All)),
                reading: ReadSettings::default(),
            })
            .collect();
        Ok(Self { path: path.to_path_buf(), format, shards, meds: Some(folder) })
    }

    fn open_folder(path: &Path) -> Outcome<Self> {
        let mut shards = Vec::new();
        for entry in access::walk_folder(path) {
            let entry = entry?;
            let file = entry.path();
            let relative = file.strip_prefix(path).unwrap_or(file).with_extension("");
            // Skips metadata files, because they have no rows of data.
            if relative.starts_with("metadata") || is_hidden(&relative) {
                continue;
            }
            if let (true, Some(format)) = (entry.file_type().is_file(), FileFormat::from_path(file))
            {
                let path = file.to_path_buf();
                let reading = ReadSettings::default();
                shards.push(InputShard { path, relative, format, meds: None, reading });
            }
        }
        shards.sort_by_cached_key(|s| make_natural_key(&s.relative.to_string_lossy()));
        let Some(first) = shards.first() else {
            return Err(Failure::from_message(format!(
                "{}: the folder has no file of a known format; name a folder with files such as x.parquet, or see --help for the formats",
                path.display()
            )));
        };
        let format = first.format;
        if let Some(other) = shards.iter().find(|s| s.format != format) {
            return Err(Failure::from_message(format!(
                "{}: the folder has files of several formats, such as {} and {}; give a folder or file of one format",
                path.display(),
                first.path.display(),
                other.path.display()
            )));
        }
        Ok(Self { path: path.to_path_buf(), format, shards, meds: None })
    }

    pub(in crate::cli) fn is_folder(&self) -> bool {
        access::is_dir(&self.path)
    }

    /// Sets which columns are read from MEDS data. Does nothing for other formats.
    pub(in crate::cli) fn select_part(&mut self, part: MedsPart) {
        for (_, _, p) in self.shards.iter_mut().filter_map(|s| s.meds.as_mut()) {
            *p = part;
        }
    }

    pub(in crate::cli) fn read_nan_as_null(&mut self) {
        self.shards.iter_mut().for_each(|s| s.reading.nan_is_null = true);
    }

    /// Declares the types of JSON columns. Returns an error for other formats, which store their
    /// types.
    pub(in crate::cli) fn declare_types(&mut self, declared: &DeclaredTypes) -> Outcome {
        if declared.schema.is_empty() {
            return Ok(());
        }
        if !matches!(self.format, FileFormat::Json | FileFormat::Ndjson) {
            return Err(Failure::from_usage(format!(
                "--schema applies only to JSON files, because {} files store their types; remove the option",
                self.format.name()
            )));
        }
        let columns: Arc<[_]> = declared.schema.as_slice().into();
        self.shards.iter_mut().for_each(|s| s.reading.declared = Arc::clone(&columns));
        Ok(())
    }

    /// Returns one schema to which the rows of all shards can be cast, or an error if the shards
    /// have different columns or types without a common type.
    pub(in crate::cli) fn schema(&self) -> Outcome<SchemaRef> {
        if let (Some(folder), Some(shard)) = (&self.meds, self.shards.first())
            && let Some((_, _, part)) = &shard.meds
        {
            return Ok(select_part(&folder.schema()?, *part));
        }
        if self.has_features() {
            return Err(Failure::from_message(format!(
                "{}: the folder has the features of labels as three tables with different columns; name one of its files: {}",
                self.path.display(),
                FEATURE_FILES.join(", ")
            )));
        }
        let mut schema: Option<SchemaRef> = None;
        for shard in &self.shards {
            interrupt::check_interrupt()?;
            let next = shard.schema()?;
            schema = Some(match schema {
                None => next,
                Some(schema) => unify_schemas(&schema, &next, &shard.path)?,
            });
        }
        schema
            .ok_or_else(|| Failure::from_message("there are no input files; name a file or folder"))
    }

    /// Whether the files are the tables that `serrate features` writes to a folder.
    fn has_features(&self) -> bool {
        let has_file = |name: &&str| self.shards.iter().any(|s| s.path == self.path.join(name));
        self.shards.len() == FEATURE_FILES.len() && FEATURE_FILES.iter().all(has_file)
    }

    pub(in crate::cli) fn count_bytes(&self) -> Outcome<u64> {
        let size = |path: &Path| access::metadata(path).map_err(|e| Error::io(path, e));
        let schemas = match &self.meds {
            Some(MedsFolder::Cohort(cohort)) => cohort.shards(),
            _ => &[],
        };
        let files = self.shards.iter().map(|s| s.path.as_path());
        files.chain(schemas.iter().map(|s| s.schema_path())).map(|p| Ok(size(p)?.len())).sum()
    }
}

/// Whether a folder has MEDS data: the first of `data/**/*.parquet` has one measurement per row.
fn is_meds(path: &Path) -> bool {
    list_parquet(path).next().is_some_and(|file| has_measurements(&file))
}

/// Whether the folder `path` itself is a MEDS data set: its files `data/**/*.parquet` have
/// measurements. If the folder has a sub-folder `metadata`, checks only the first file, else all
/// files. Checking all of them excludes a folder `x` that only contains a data set `x/data/y`:
/// below `x/data` are also the metadata files of `y`, which have no measurements.
pub(in crate::cli) fn is_meds_root(path: &Path) -> bool {
    // Reads at most this many files, because the result only chooses the hint in an error message.
    const READ: usize = 64;
    let has_metadata = access::is_dir(path.join("metadata"));
    is_meds(path)
        && (has_metadata || list_parquet(path).take(READ).all(|file| has_measurements(&file)))
}

fn list_parquet(path: &Path) -> impl Iterator<Item = PathBuf> {
    let files = access::walk_folder(&path.join("data")).flatten().filter(move |e| {
        let relative = e.path().strip_prefix(path).unwrap_or(e.path());
        FileFormat::from_path(e.path()) == Some(FileFormat::Parquet) && !is_hidden(relative)
    });
    files.map(|e| e.path().to_path_buf())
}

fn has_measurements(file: &Path) -> bool {
    let Ok(reader) = ParquetTableReader::open(file, &ParquetReadOptions::default()) else {
        return false;
    };
    let schema = reader.schema();
    ["subject_id", "time", "code"]
        .iter()
        .all(|name| schema.field_with_name(name).is_ok_and(|f| list_depth(f.data_type()) == 0))
}

pub(in crate::cli) type RecordBatches = Box<dyn Iterator<Item = Outcome<RecordBatch>>>;

impl InputShard {
    /// Reads the schema. For JSON this reads the whole file, for other formats only the metadata.
    pub(in crate::cli) fn schema(&self) -> Outcome<SchemaRef> {
        match self.format {
            FileFormat::Nrt => Ok(self.open_nrt()?.schema()),
            FileFormat::Parquet => Ok(self.open_parquet()?.schema()),
            FileFormat::Arrow => Ok(self.open_arrow()?.schema()),
            FileFormat::Json => {
                Ok(read_json(&self.path, &self.build_json_options())?.arrow_schema()?)
            }
            FileFormat::Ndjson => {
                let mut schema: Option<SchemaRef> = None;
                for table in self.open_ndjson(self.build_json_options())? {
                    interrupt::check_interrupt()?;
                    let next = self.add_path(table)?.arrow_schema()?;
                    schema = Some(match schema {
                        None => next,
                        // `next` has more columns than the schema so far: a later record has
                        // columns that no earlier record has. The new columns extend the schema.
                        Some(s) if s.fields().len() < next.fields().len() => {
                            add_columns(&s, &next, &self.path)?
                        }
                        Some(s) => unify_schemas(&s, &next, &self.path)?,
                    });
                }
                schema.ok_or_else(|| self.make_file_error("the file is empty"))
            }
            FileFormat::Safetensors | FileFormat::Meds | FileFormat::MedsTorchData => {
                Err(self.make_write_only_error())
            }
        }
    }

    /// Returns the rows in batches, in the order of the file. Columns of JSON get the types in
    /// `schema` or, if it is `None`, those that `--schema` declares. Other formats ignore `schema`.
    pub(in crate::cli) fn open_batches(
        &self,
        schema: Option<&SchemaRef>,
    ) -> Outcome<RecordBatches> {
        let path = self.path.clone();
        let at_path = move |failure: Failure| failure.add_place(path.display());
        let options = || match schema {
            None => self.build_json_options(),
            Some(schema) => JsonOptions {
                schema: schema
                    .fields()
                    .iter()
                    .map(|f| (f.name().clone(), f.data_type().clone()))
                    .collect(),
                ..JsonOptions::default()
            },
        };
        Ok(match self.format {
            FileFormat::Nrt => {
                let file = self.open_nrt()?;
                let nan_is_null = self.reading.nan_is_null;
                let deepest = file.ndim() - 1;
                let mut next = 0;
                Box::new(std::iter::from_fn(move || {
                    let rows = next..file.num_rows();
                    if rows.is_empty() {
                        return None;
                    }
                    let read = file.rows_within(rows, deepest, BATCH_LEAVES).and_then(|n| {
                        let end = next + n.clamp(1, BATCH_ROWS);
                        let table = file.read(next..end.min(file.num_rows()), None)?;
                        next = end;
                        let table = if nan_is_null { table.nan_to_null()? } else { table };
                        table.to_batch()
                    });
                    if read.is_err() {
                        next = file.num_rows();
                    }
                    Some(read.map_err(Failure::from))
                }))
            }
            FileFormat::Parquet => {
                let mut reader = self.open_parquet()?;
                Box::new(std::iter::from_fn(move || {
                    Some(reader.next_batch()?.map_err(Failure::from))
                }))
            }
            FileFormat::Arrow => {
                let mut reader = self.open_arrow()?;
                Box::new(std::iter::from_fn(move || {
                    Some(reader.next_batch()?.map_err(Failure::from))
                }))
            }
            FileFormat::Json => {
                let table = read_json(&self.path, &options())?;
                Box::new(split_table(table)?)
            }
            FileFormat::Ndjson => {
                let reader = self.open_ndjson(options())?;
                Box::new(reader.map(move |table| {
                    table.and_then(|t| t.to_batch()).map_err(|e| at_path(e.into()))
                }))
            }
            FileFormat::Meds | FileFormat::MedsTorchData => match &self.meds {
                Some((folder, shard, part)) => {
                    let batch = part.read(folder, *shard)?;
                    Box::new(std::iter::once(Ok(batch)))
                }
                None => return Err(self.make_write_only_error()),
            },
            FileFormat::Safetensors => return Err(self.make_write_only_error()),
        })
    }

    fn build_json_options(&self) -> JsonOptions {
        JsonOptions { schema: self.reading.declared.to_vec(), ..JsonOptions::default() }
    }

    fn open_nrt(&self) -> Outcome<NrtFile> {
        Ok(NrtFile::open(&self.path, &ReadOptions::default())?)
    }

    fn open_parquet(&self) -> Outcome<ParquetTableReader> {
        Ok(ParquetTableReader::open(&self.path, &ParquetReadOptions::default())?)
    }

    fn open_arrow(&self) -> Outcome<IpcTableReader> {
        Ok(IpcTableReader::open(&self.path, &IpcReadOptions::default())?)
    }

    fn open_ndjson(&self, options: JsonOptions) -> Outcome<NdjsonReader<BufReader<File>>> {
        let file = access::open(&self.path).map_err(|e| Error::io(&self.path, e))?;
        Ok(NdjsonReader::new(BufReader::with_capacity(1 << 18, file), options))
    }

    fn add_path<T>(&self, result: crate::Result<T>) -> Outcome<T> {
        result.map_err(|e| Failure::from(e).add_place(self.path.display()))
    }

    fn make_file_error(&self, message: impl std::fmt::Display) -> Failure {
        Failure::from_message(format!("{}: {message}", self.path.display()))
    }

    fn make_write_only_error(&self) -> Failure {
        self.make_file_error(
            "files of dense tensors can only be written; read the file that they were made from",
        )
    }
}

fn add_columns(before: &SchemaRef, after: &SchemaRef, path: &Path) -> Outcome<SchemaRef> {
    let mut fields = before.fields().to_vec();
    for field in after.fields() {
        if before.field_with_name(field.name()).is_err() {
            fields.push(field.clone());
        }
    }
    let metadata = after.metadata().clone();
    unify_schemas(&arrow::datatypes::Schema::new_with_metadata(fields, metadata), after, path)
}

pub(in crate::cli) fn split_table(
    table: RaggedTable,
) -> Outcome<impl Iterator<Item = Outcome<RecordBatch>>> {
    let rows = table.num_rows();
    // If the table has no rows, yields one empty batch, so that the reader knows the columns.
    let starts = (0..rows.max(1)).step_by(BATCH_ROWS);
    Ok(starts.map(move |start| Ok(table.slice(start, BATCH_ROWS.min(rows - start))?.to_batch()?)))
}

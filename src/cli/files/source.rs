//! Reading: a file, or a folder of shards, as batches in source order.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, SchemaRef};
use walkdir::WalkDir;

use super::meds::{Part, part_schema};
use super::{Declared, FileFormat, format_of, unify};
use crate::array::list_depth;
use crate::cli::error::{Failure, Outcome};
use crate::cli::interrupt;
use crate::error::Error;
use crate::io::arrow_ipc::{IpcReadOptions, IpcTableReader};
use crate::io::json::{JsonOptions, NdjsonReader, read_json};
use crate::io::listing::is_hidden;
use crate::io::meds_torch::{MedsFolder, TensorizedCohort};
use crate::io::nrt::{NrtFile, ReadOptions};
use crate::io::order::natural;
use crate::io::parquet::{ParquetReadOptions, ParquetTableReader};
use crate::table::RaggedTable;

/// Leaf values that a batch aims at.
const BATCH_LEAVES: usize = 1 << 20;
/// Most rows of a batch.
const BATCH_ROWS: usize = 8192;

/// One file of a source.
#[derive(Clone, Debug)]
pub(in crate::cli) struct Shard {
    /// The file.
    pub(in crate::cli) path: PathBuf,
    /// Where it lies below the folder, without ending; its own name for a single file.
    pub(in crate::cli) relative: PathBuf,
    pub(in crate::cli) format: FileFormat,
    /// Of MEDS data, which shard it is, and what is wanted of it.
    meds: Option<(MedsFolder, usize, Part)>,
    reading: Reading,
}

/// How files are read.
#[derive(Clone, Debug, Default)]
struct Reading {
    /// NaN of `.nrt` files is null, as in SQL.
    nan_is_null: bool,
    /// Types of columns of JSON files.
    declared: Arc<[(String, DataType)]>,
}

/// Files with rows, in order.
pub(in crate::cli) struct Source {
    pub(in crate::cli) path: PathBuf,
    pub(in crate::cli) format: FileFormat,
    pub(in crate::cli) shards: Vec<Shard>,
    /// The folder, for MEDS data and the tensors made of it.
    pub(in crate::cli) meds: Option<MedsFolder>,
}

impl Source {
    /// A file, or a folder with all files of one format below it, ordered by name (`2` before `10`).
    pub(in crate::cli) fn open(path: &Path) -> Outcome<Self> {
        let metadata = std::fs::metadata(path).map_err(|e| Error::io(path, e))?;
        let path = path.to_path_buf();
        if !metadata.is_dir() {
            let format = format_of(&path)?;
            let relative = PathBuf::from(path.file_stem().unwrap_or_default());
            let shard = Shard {
                path: path.clone(),
                relative,
                format,
                meds: None,
                reading: Reading::default(),
            };
            return Ok(Self { path, format, shards: vec![shard], meds: None });
        }
        if TensorizedCohort::is_at(&path) || is_meds(&path) {
            let folder = MedsFolder::open(&path)?;
            let (format, files): (_, Vec<(PathBuf, String)>) = match &folder {
                MedsFolder::Meds(data) => {
                    let files =
                        data.shards().map(|s| (s.path().to_path_buf(), s.name().to_owned()));
                    (FileFormat::Meds, files.collect())
                }
                MedsFolder::Cohort(cohort) => {
                    let files = cohort.shards().iter();
                    let files =
                        files.map(|s| (s.tensors_path().to_path_buf(), s.name().to_owned()));
                    (FileFormat::MedsTorchData, files.collect())
                }
            };
            let shards = files
                .into_iter()
                .enumerate()
                .map(|(i, (path, name))| Shard {
                    path,
                    relative: Path::new("data").join(name),
                    format,
                    meds: Some((folder.clone(), i, Part::All)),
                    reading: Reading::default(),
                })
                .collect();
            return Ok(Self { path, format, shards, meds: Some(folder) });
        }
        let mut shards = Vec::new();
        for entry in WalkDir::new(&path).follow_links(true) {
            let entry = entry.map_err(|e| Failure::message(e.to_string()))?;
            let file = entry.path();
            let relative = file.strip_prefix(&path).unwrap_or(file).with_extension("");
            // What describes the data is not the data.
            if relative.starts_with("metadata") || is_hidden(&relative) {
                continue;
            }
            if let (true, Some(format)) = (entry.file_type().is_file(), FileFormat::of(file)) {
                let path = file.to_path_buf();
                let reading = Reading::default();
                shards.push(Shard { path, relative, format, meds: None, reading });
            }
        }
        shards.sort_by_cached_key(|s| natural(&s.relative.to_string_lossy()));
        let Some(first) = shards.first() else {
            return Err(Failure::message(format!(
                "{}: no file of a known format in this folder",
                path.display()
            )));
        };
        let format = first.format;
        if let Some(other) = shards.iter().find(|s| s.format != format) {
            return Err(Failure::message(format!(
                "{}: files of several formats, such as {} and {}; name a folder or file with one",
                path.display(),
                first.path.display(),
                other.path.display()
            )));
        }
        Ok(Self { path, format, shards, meds: None })
    }

    /// Whether it was given as a folder.
    pub(in crate::cli) fn is_folder(&self) -> bool {
        self.path.is_dir()
    }

    /// Of MEDS data, only what `part` says; nothing changes for other formats.
    pub(in crate::cli) fn take(&mut self, part: Part) {
        for (_, _, p) in self.shards.iter_mut().filter_map(|s| s.meds.as_mut()) {
            *p = part;
        }
    }

    /// Reads NaN of `.nrt` files as null, as SQL does.
    pub(in crate::cli) fn read_nan_as_null(&mut self) {
        self.shards.iter_mut().for_each(|s| s.reading.nan_is_null = true);
    }

    /// Reads columns of JSON files in the types given for them.
    ///
    /// # Errors
    /// When the files are no JSON: theirs say their types.
    pub(in crate::cli) fn declare(&mut self, declared: &Declared) -> Outcome {
        if declared.schema.is_empty() {
            return Ok(());
        }
        if !matches!(self.format, FileFormat::Json | FileFormat::Ndjson) {
            return Err(Failure::usage(format!(
                "--schema is for JSON; files of {} say their types",
                self.format.name()
            )));
        }
        let columns: Arc<[_]> = declared.schema.as_slice().into();
        self.shards.iter_mut().for_each(|s| s.reading.declared = Arc::clone(&columns));
        Ok(())
    }

    /// The columns and types that all shards fit in.
    pub(in crate::cli) fn schema(&self) -> Outcome<SchemaRef> {
        if let (Some(folder), Some(shard)) = (&self.meds, self.shards.first())
            && let Some((_, _, part)) = &shard.meds
        {
            return Ok(part_schema(&folder.schema()?, *part));
        }
        let mut schema: Option<SchemaRef> = None;
        for shard in &self.shards {
            interrupt::check()?;
            let next = shard.schema()?;
            schema = Some(match schema {
                None => next,
                Some(schema) => unify(&schema, &next, &shard.path)?,
            });
        }
        schema.ok_or_else(|| Failure::message("there is no file"))
    }

    /// Bytes of all files.
    pub(in crate::cli) fn bytes(&self) -> Outcome<u64> {
        let size = |path: &Path| std::fs::metadata(path).map_err(|e| Error::io(path, e));
        let schemas = match &self.meds {
            Some(MedsFolder::Cohort(cohort)) => cohort.shards(),
            _ => &[],
        };
        let files = self.shards.iter().map(|s| s.path.as_path());
        files.chain(schemas.iter().map(|s| s.schema_path())).map(|p| Ok(size(p)?.len())).sum()
    }
}

/// Whether a folder has `data/**/*.parquet` with one measurement per row.
fn is_meds(path: &Path) -> bool {
    let files = WalkDir::new(path.join("data")).sort_by_file_name().into_iter().flatten();
    let mut parquet = files.filter(|e| {
        let relative = e.path().strip_prefix(path).unwrap_or(e.path());
        FileFormat::of(e.path()) == Some(FileFormat::Parquet) && !is_hidden(relative)
    });
    parquet.next().is_some_and(|e| {
        let Ok(reader) = ParquetTableReader::open(e.path(), &ParquetReadOptions::default()) else {
            return false;
        };
        let schema = reader.schema();
        ["subject_id", "time", "code"]
            .iter()
            .all(|name| schema.field_with_name(name).is_ok_and(|f| list_depth(f.data_type()) == 0))
    })
}

/// Batches of a file.
pub(in crate::cli) type Batches = Box<dyn Iterator<Item = Outcome<RecordBatch>>>;

impl Shard {
    /// Its columns. Reads all of a JSON file; of the others, what stands at their ends.
    pub(in crate::cli) fn schema(&self) -> Outcome<SchemaRef> {
        match self.format {
            FileFormat::Nrt => Ok(self.nrt()?.schema()),
            FileFormat::Parquet => Ok(self.parquet()?.schema()),
            FileFormat::Arrow => Ok(self.arrow()?.schema()),
            FileFormat::Json => Ok(read_json(&self.path, &self.declared())?.arrow_schema()?),
            FileFormat::Ndjson => {
                let mut schema: Option<SchemaRef> = None;
                for table in self.ndjson(self.declared())? {
                    interrupt::check()?;
                    let next = self.named(table)?.arrow_schema()?;
                    schema = Some(match schema {
                        None => next,
                        // A column that turns up later is null before.
                        Some(s) if s.fields().len() < next.fields().len() => {
                            widen(&s, &next, &self.path)?
                        }
                        Some(s) => unify(&s, &next, &self.path)?,
                    });
                }
                schema.ok_or_else(|| self.wrong("the file is empty"))
            }
            FileFormat::Safetensors | FileFormat::Meds | FileFormat::MedsTorchData => {
                Err(self.written_only())
            }
        }
    }

    /// Its rows in order, with the types of `schema` where the format leaves them open; else as they
    /// are.
    pub(in crate::cli) fn batches(&self, schema: Option<&SchemaRef>) -> Outcome<Batches> {
        let path = self.path.clone();
        let place = move |failure: Failure| failure.at(path.display());
        let options = || match schema {
            None => self.declared(),
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
                let file = self.nrt()?;
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
                let mut reader = self.parquet()?;
                Box::new(std::iter::from_fn(move || {
                    Some(reader.next_batch()?.map_err(Failure::from))
                }))
            }
            FileFormat::Arrow => {
                let mut reader = self.arrow()?;
                Box::new(std::iter::from_fn(move || {
                    Some(reader.next_batch()?.map_err(Failure::from))
                }))
            }
            FileFormat::Json => {
                let table = read_json(&self.path, &options())?;
                Box::new(chunks(table)?)
            }
            FileFormat::Ndjson => {
                let reader = self.ndjson(options())?;
                Box::new(reader.map(move |table| {
                    table.and_then(|t| t.to_batch()).map_err(|e| place(e.into()))
                }))
            }
            FileFormat::Meds | FileFormat::MedsTorchData => match &self.meds {
                Some((folder, shard, part)) => {
                    let batch = part.read(folder, *shard)?;
                    Box::new(std::iter::once(Ok(batch)))
                }
                None => return Err(self.written_only()),
            },
            FileFormat::Safetensors => return Err(self.written_only()),
        })
    }

    /// JSON in the types that were declared.
    fn declared(&self) -> JsonOptions {
        JsonOptions { schema: self.reading.declared.to_vec(), ..JsonOptions::default() }
    }

    fn nrt(&self) -> Outcome<NrtFile> {
        Ok(NrtFile::open(&self.path, &ReadOptions::default())?)
    }

    fn parquet(&self) -> Outcome<ParquetTableReader> {
        Ok(ParquetTableReader::open(&self.path, &ParquetReadOptions::default())?)
    }

    fn arrow(&self) -> Outcome<IpcTableReader> {
        Ok(IpcTableReader::open(&self.path, &IpcReadOptions::default())?)
    }

    fn ndjson(&self, options: JsonOptions) -> Outcome<NdjsonReader<BufReader<File>>> {
        let file = File::open(&self.path).map_err(|e| Error::io(&self.path, e))?;
        Ok(NdjsonReader::new(BufReader::with_capacity(1 << 18, file), options))
    }

    fn named<T>(&self, result: crate::Result<T>) -> Outcome<T> {
        result.map_err(|e| Failure::from(e).at(self.path.display()))
    }

    fn wrong(&self, message: impl std::fmt::Display) -> Failure {
        Failure::message(format!("{}: {message}", self.path.display()))
    }

    fn written_only(&self) -> Failure {
        self.wrong("dense tensors are written but not read as tables")
    }
}

/// `after` has columns that `before` lacks.
fn widen(before: &SchemaRef, after: &SchemaRef, path: &Path) -> Outcome<SchemaRef> {
    let mut fields = before.fields().to_vec();
    for field in after.fields() {
        if before.field_with_name(field.name()).is_err() {
            fields.push(field.clone());
        }
    }
    let metadata = after.metadata().clone();
    unify(&arrow::datatypes::Schema::new_with_metadata(fields, metadata), after, path)
}

/// A table in memory as batches.
pub(in crate::cli) fn chunks(
    table: RaggedTable,
) -> Outcome<impl Iterator<Item = Outcome<RecordBatch>>> {
    let rows = table.num_rows();
    // One batch without rows keeps the columns of an empty table.
    let starts = (0..rows.max(1)).step_by(BATCH_ROWS);
    Ok(starts.map(move |start| {
        let end = rows.min(start + BATCH_ROWS);
        Ok(table.slice(start..end)?.to_batch()?)
    }))
}

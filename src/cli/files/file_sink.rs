//! Writes batches to one file of any format. The file appears only once it is complete.

use std::io::Write;
use std::path::{Path, PathBuf};

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef, TimeUnit};

use super::{FileFormat, conform_batch};
use crate::access;
use crate::array::{leaf_type, list_kind};
use crate::cli::command_failure::{Failure, Outcome};
use crate::dense::TableDenseOptions;
use crate::io::arrow_ipc::{IpcTableWriter, IpcWriteOptions};
use crate::io::json::NdjsonWriter;
use crate::io::nrt::{NrtSchema, NrtWriter, WriteOptions};
use crate::io::parquet::{ParquetTableWriter, ParquetWriteOptions};
use crate::io::safetensors::{SaveOptions, dense};
use crate::table::RaggedTable;
use serrate_core::internal::AtomicFile;

#[derive(Clone, Debug, Default)]
pub(in crate::cli) struct SinkOptions {
    pub(in crate::cli) overwrite: bool,
    /// Omit the ids (`subject_id` on axis 0) from `.nrt` files.
    pub(in crate::cli) plain: bool,
    /// Write NaN as null in JSON, because standard JSON has no NaN.
    pub(in crate::cli) nan_is_null: bool,
    pub(in crate::cli) dense: TableDenseOptions,
}

pub(in crate::cli) struct OutputFile {
    path: PathBuf,
    schema: SchemaRef,
    rows: u64,
    nan_is_null: bool,
    writer: OutputWriter,
}

enum OutputWriter {
    Nrt(Box<NrtWriter>),
    Parquet(Box<ParquetTableWriter>),
    Arrow(Box<IpcTableWriter>),
    Ndjson(Box<NdjsonWriter<AtomicFile>>),
    Json { file: Box<AtomicFile>, any: bool },
    Dense { tables: Vec<RaggedTable>, options: Box<SinkOptions> },
}

impl OutputFile {
    pub(in crate::cli) fn create(
        path: &Path,
        format: FileFormat,
        schema: &SchemaRef,
        options: &SinkOptions,
    ) -> Outcome<Self> {
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
        if let Some(folder) = folder {
            access::create_dir_all(folder)
                .map_err(|e| Failure::from_message(format!("{}: {e}", folder.display())))?;
        }
        let file = || AtomicFile::create(path, options.overwrite);
        let mut schema = schema.clone();
        let writer = match format {
            FileFormat::Nrt => {
                schema = convert_times_to_integers(&schema);
                // Builds a table with the columns of the file but no rows, to find the axes of the
                // file.
                let empty = to_table(&RecordBatch::new_empty(schema.clone()), path)?;
                let nrt = WriteOptions { overwrite: options.overwrite, plain: options.plain };
                let writer = NrtWriter::create(path, &NrtSchema::of_table(&empty), &nrt)?;
                OutputWriter::Nrt(Box::new(writer))
            }
            FileFormat::Parquet => {
                let parquet = ParquetWriteOptions {
                    overwrite: options.overwrite,
                    ..ParquetWriteOptions::default()
                };
                OutputWriter::Parquet(Box::new(ParquetTableWriter::create(
                    path, &schema, &parquet,
                )?))
            }
            FileFormat::Arrow => {
                let ipc =
                    IpcWriteOptions { overwrite: options.overwrite, ..IpcWriteOptions::default() };
                OutputWriter::Arrow(Box::new(IpcTableWriter::create(path, &schema, &ipc)?))
            }
            FileFormat::Ndjson => OutputWriter::Ndjson(Box::new(NdjsonWriter::new(file()?))),
            FileFormat::Json => {
                let mut file = file()?;
                file.write_all(b"[")?;
                OutputWriter::Json { file: Box::new(file), any: false }
            }
            FileFormat::Safetensors => {
                access::check_new(path, options.overwrite)?;
                OutputWriter::Dense { tables: Vec::new(), options: Box::new(options.clone()) }
            }
            FileFormat::Meds => {
                return Err(Failure::from_usage(
                    "only `serrate generate --to meds` writes MEDS; choose another \
                 format",
                ));
            }
            FileFormat::MedsTorchData => {
                return Err(Failure::from_usage(
                    "--to meds-torch-data requires a MEDS folder as input; use serrate convert MEDS OUT --to meds-torch-data",
                ));
            }
        };
        let nan_is_null = options.nan_is_null;
        Ok(Self { path: path.to_path_buf(), schema, rows: 0, nan_is_null, writer })
    }

    /// Casts the rows of `batch` to the schema of the file, and appends them to the file.
    pub(in crate::cli) fn write(&mut self, batch: &RecordBatch) -> Outcome {
        self.append_batch(batch).map_err(|e| e.with_file_name(&self.path))
    }

    fn append_batch(&mut self, batch: &RecordBatch) -> Outcome {
        if batch.num_rows() == 0 {
            return Ok(());
        }
        let batch = conform_batch(batch, &self.schema)?;
        self.rows += batch.num_rows() as u64;
        let path = &self.path;
        let nan_is_null = self.nan_is_null;
        let records = |batch: &RecordBatch| -> Outcome<RaggedTable> {
            let table = to_table(batch, path)?;
            Ok(if nan_is_null { table.nan_to_null()? } else { table })
        };
        match &mut self.writer {
            OutputWriter::Nrt(writer) => writer.write(&to_table(&batch, path)?)?,
            OutputWriter::Parquet(writer) => writer.write_batch(&batch)?,
            OutputWriter::Arrow(writer) => writer.write_batch(&batch)?,
            OutputWriter::Ndjson(writer) => writer.write(&records(&batch)?)?,
            OutputWriter::Json { file, any } => {
                let mut lines = NdjsonWriter::new(Vec::new());
                lines.write(&records(&batch)?)?;
                for line in lines.finish()?.split(|b| *b == b'\n').filter(|l| !l.is_empty()) {
                    file.write_all(if *any { b",\n" } else { b"\n" })?;
                    file.write_all(line)?;
                    *any = true;
                }
            }
            OutputWriter::Dense { tables, .. } => tables.push(to_table(&batch, path)?),
        }
        Ok(())
    }

    /// Completes the file, moves it to its path, and returns the number of rows.
    pub(in crate::cli) fn finish(self) -> Outcome<u64> {
        let path = self.path.clone();
        self.complete_file().map_err(|e| e.with_file_name(&path))
    }

    fn complete_file(self) -> Outcome<u64> {
        match self.writer {
            OutputWriter::Nrt(writer) => writer.finish()?,
            OutputWriter::Parquet(writer) => writer.finish()?,
            OutputWriter::Arrow(writer) => writer.finish()?,
            OutputWriter::Ndjson(writer) => writer.finish()?.commit()?,
            OutputWriter::Json { mut file, .. } => {
                file.write_all(b"\n]\n")?;
                file.commit()?;
            }
            OutputWriter::Dense { mut tables, options } => {
                if tables.is_empty() {
                    tables.push(to_table(&RecordBatch::new_empty(self.schema), &self.path)?);
                }
                let table = RaggedTable::concat(&tables)?;
                drop(tables);
                let tensors = table.to_dense_with(&options.dense)?;
                let save = SaveOptions { overwrite: options.overwrite, ..SaveOptions::default() };
                let named = tensors.iter().map(|(name, tensor)| (name.as_str(), tensor));
                dense::write(&self.path, named, &save)?;
            }
        }
        Ok(self.rows)
    }
}

fn to_table(batch: &RecordBatch, path: &Path) -> Outcome<RaggedTable> {
    RaggedTable::try_from_batch(batch).map_err(|e| Failure::from(e).add_place(path.display()))
}

/// Returns `schema` with each time type replaced by the integer type that stores it, because `.nrt`
/// has no time types.
fn convert_times_to_integers(schema: &SchemaRef) -> SchemaRef {
    let fields = schema.fields().iter().map(|f| {
        let data_type = convert_time_to_integer(f.data_type());
        f.as_ref().clone().with_data_type(data_type)
    });
    Schema::new_with_metadata(fields.collect::<Vec<Field>>(), schema.metadata().clone()).into()
}

fn convert_time_to_integer(data_type: &DataType) -> DataType {
    match list_kind(data_type) {
        Some((_, item)) => {
            let item = item
                .as_ref()
                .clone()
                .with_data_type(convert_time_to_integer(item.data_type()))
                .into();
            match data_type {
                DataType::LargeList(_) => DataType::LargeList(item),
                DataType::FixedSizeList(_, n) => DataType::FixedSizeList(item, *n),
                _ => DataType::List(item),
            }
        }
        None => match data_type {
            DataType::Timestamp(_, _) | DataType::Date64 | DataType::Duration(_) => DataType::Int64,
            DataType::Time64(_) => DataType::Int64,
            DataType::Date32 | DataType::Time32(_) => DataType::Int32,
            other => other.clone(),
        },
    }
}

pub(in crate::cli) fn describe_times(schema: &Schema) -> Vec<String> {
    let unit = |unit: &TimeUnit| match unit {
        TimeUnit::Second => "seconds",
        TimeUnit::Millisecond => "milliseconds",
        TimeUnit::Microsecond => "microseconds",
        TimeUnit::Nanosecond => "nanoseconds",
    };
    schema
        .fields()
        .iter()
        .filter_map(|f| {
            let meaning = match leaf_type(f.data_type()) {
                DataType::Timestamp(u, _) => format!("{} since 1970-01-01", unit(u)),
                DataType::Date32 => "days since 1970-01-01".into(),
                DataType::Date64 => "milliseconds since 1970-01-01".into(),
                DataType::Time32(u) | DataType::Time64(u) => format!("{} since midnight", unit(u)),
                DataType::Duration(u) => unit(u).into(),
                _ => return None,
            };
            Some(format!("{} is written as integers: {meaning}", f.name()))
        })
        .collect()
}

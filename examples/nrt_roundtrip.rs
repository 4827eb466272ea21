//! Converts between `.nrt` and Arrow IPC files: `nrt_roundtrip IN OUT [--plain-reads]`.
//!
//! The interoperability test in `tests/interop` runs it on files of the Python library.

use std::fs::File;
use std::path::Path;

use arrow::ipc::reader::FileReader;
use arrow::ipc::writer::FileWriter;
use serrate::io::nrt::{NrtFile, NrtSchema, NrtWriter, ReadOptions, WriteOptions};
use serrate::table::RaggedTable;
use serrate::{Error, Result};

/// The number of rows that are read and written at a time. It is small, so that small test files
/// are written in several chunks.
const ROWS: usize = 3;

fn main() -> Result<()> {
    let mut args: Vec<String> = std::env::args().skip(1).collect();
    let plain = args.iter().position(|a| a == "--plain-reads").map(|i| args.remove(i)).is_some();
    let [input, output] = args.as_slice() else {
        return Err(Error::invalid(
            "usage: nrt_roundtrip IN OUT [--plain-reads], each .nrt or .arrow",
        ));
    };
    let (input, output) = (Path::new(input), Path::new(output));
    let chunks = match extension(input) {
        "nrt" => {
            let options = ReadOptions { mmap: !plain, ..ReadOptions::default() };
            let file = NrtFile::open(input, &options)?;
            file.validate()?;
            let starts = (0..file.num_rows().max(1)).step_by(ROWS);
            starts
                .map(|start| file.read(start..file.num_rows().min(start + ROWS), None))
                .collect::<Result<Vec<_>>>()?
        }
        "arrow" => {
            let file = File::open(input).map_err(|e| Error::io(input, e))?;
            let batches = FileReader::try_new(file, None)?;
            batches.map(|b| RaggedTable::try_from_batch(&b?)).collect::<Result<Vec<_>>>()?
        }
        other => return Err(Error::invalid(format!("cannot read .{other}"))),
    };
    let Some(first) = chunks.first() else {
        return Err(Error::invalid("no record batch in the input"));
    };
    match extension(output) {
        "nrt" => {
            let options = WriteOptions { overwrite: true, ..WriteOptions::default() };
            let mut writer = NrtWriter::create(output, &NrtSchema::of_table(first), &options)?;
            for chunk in &chunks {
                writer.write(chunk)?;
            }
            writer.finish()
        }
        "arrow" => {
            let file = File::create(output).map_err(|e| Error::io(output, e))?;
            let mut writer = FileWriter::try_new(file, first.to_batch()?.schema().as_ref())?;
            for chunk in &chunks {
                writer.write(&chunk.to_batch()?)?;
            }
            Ok(writer.finish()?)
        }
        other => Err(Error::invalid(format!("cannot write .{other}"))),
    }
}

fn extension(path: &Path) -> &str {
    path.extension().and_then(|e| e.to_str()).unwrap_or_default()
}

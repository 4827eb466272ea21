//! Writes files for `tests/interop/read_parquet.py`, which reads them with other programs: `cargo
//! run --example write_formats -- DIR`.

use std::path::PathBuf;
use std::sync::Arc;

use arrow::array::{Array, AsArray, FixedSizeListArray, Float32Array, RecordBatch};
use arrow::datatypes::{DataType, Field, Schema, UInt16Type};
use serrate::arrow;
use serrate::generate::SyntheticPatients;
use serrate::io::arrow_ipc::{IpcTableWriter, IpcWriteOptions};
use serrate::io::parquet::{self, ParquetReadOptions, ParquetTableWriter, ParquetWriteOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = PathBuf::from(std::env::args().nth(1).ok_or("usage: write_formats DIR")?);
    std::fs::create_dir_all(&folder)?;
    let options =
        ParquetWriteOptions { overwrite: true, row_group_leaves: 1 << 16, ..Default::default() };
    let ipc = IpcWriteOptions { overwrite: true, ..Default::default() };

    let path = folder.join("table.parquet");
    SyntheticPatients::new(11, 40)?.with_chunk_rows(7)?.write_parquet(&path, &options, |_| ())?;
    let table = parquet::read(&path, &ParquetReadOptions::default())?;
    let mut writer =
        IpcTableWriter::create(folder.join("table.arrow"), &table.arrow_schema()?, &ipc)?;
    for start in (0..table.num_rows()).step_by(16) {
        writer.write(&table.slice(start, (table.num_rows() - start).min(16))?)?;
    }
    writer.finish()?;

    let codes = table.column("code")?.values().as_primitive::<UInt16Type>();
    let facts = serde_json::json!({
        "rows": table.num_rows(),
        "events": table.axis_len(1)?,
        "measurements": table.axis_len(2)?,
        "code_sum": codes.values().iter().map(|c| u64::from(*c)).sum::<u64>(),
        "values_null": table.column("numeric_value")?.values().null_count(),
    });
    std::fs::write(folder.join("table.json"), facts.to_string())?;

    let item = Arc::new(Field::new_list_field(DataType::Float32, false));
    let leaves = Arc::new(Float32Array::from_iter_values((0..18u8).map(f32::from)));
    let tensor = FixedSizeListArray::try_new(item, 6, leaves, None)?;
    let extension = [
        ("ARROW:extension:name".to_string(), "arrow.fixed_shape_tensor".to_string()),
        ("ARROW:extension:metadata".to_string(), "{\"shape\":[2,3]}".to_string()),
    ];
    let field = Field::new("t", tensor.data_type().clone(), false).with_metadata(extension.into());
    let schema = Arc::new(Schema::new(vec![field]));
    let batch = RecordBatch::try_new(Arc::clone(&schema), vec![Arc::new(tensor)])?;
    let mut writer = ParquetTableWriter::create(folder.join("tensor.parquet"), &schema, &options)?;
    writer.write_batch(&batch)?;
    writer.finish()?;
    let mut writer = IpcTableWriter::create(folder.join("tensor.arrow"), &schema, &ipc)?;
    writer.write_batch(&batch)?;
    writer.finish()?;
    Ok(())
}

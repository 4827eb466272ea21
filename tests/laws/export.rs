//! Writes tables and statements with their results, so that other engines can be compared.

use std::io::Write;
use std::path::Path;

use datafusion::arrow::array::{Array, ArrayRef, AsArray};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type, TimeUnit};
use datafusion::parquet::arrow::ArrowWriter;
use serde_json::{Value, json};
use serrate::datafusion;

use crate::ROWS;
use crate::cuts::{Setup, Source};
use crate::expressions::Calls;
use crate::sources::{Sessions, Stored, run_query};
use crate::statements::{Statements, Steps};
use crate::tables::World;

/// Number of statements that are written for each world (set of random tables).
const PER_WORLD: usize = 12;

/// Writes the tables of world N to `N/t0.parquet`, .. and its statements with their results to
/// `N/statements.jsonl`. Returns the number of statements that have a result.
pub async fn write(folder: &Path, seed: u64, statements: usize) -> u64 {
    let sessions = Sessions::new();
    let mut answered = 0;
    for number in 0..statements.div_ceil(PER_WORLD) as u64 {
        let world = World::new(seed * 1_000_000 + number, ROWS);
        let here = folder.join(number.to_string());
        std::fs::create_dir_all(&here).unwrap();
        for table in &world.tables {
            let file = std::fs::File::create(here.join(format!("{}.parquet", table.name)));
            let mut writer =
                ArrowWriter::try_new(file.unwrap(), table.rows.schema(), None).unwrap();
            writer.write(&table.rows).unwrap();
            writer.close().unwrap();
        }
        let setup = Setup { source: Source::Parquet, partitions: 2, ..Setup::default() };
        let mut tables = Stored::new(&world);
        let ctx = sessions.cut(&setup, &mut tables).await;
        let mut made = Statements::new(&world, Calls::Shared, seed ^ number);
        let mut lines = std::fs::File::create(here.join("statements.jsonl")).unwrap();
        for _ in 0..PER_WORLD {
            let sql = made.statement().unordered().text(Steps::With, true);
            if let Ok(rows) = run_query(ctx, &sql).await {
                let cells = rows.batches.iter().flat_map(|batch| {
                    (0..batch.num_rows()).map(|row| -> Vec<Value> {
                        batch.columns().iter().map(|c| export_cell(c, row)).collect()
                    })
                });
                let cells: Vec<Vec<Value>> = cells.collect();
                writeln!(lines, "{}", json!({"sql": sql, "rows": cells})).unwrap();
                answered += 1;
            }
        }
    }
    answered
}

/// Converts a value to JSON. Floats that JSON cannot represent become strings, and times become
/// microseconds.
fn export_cell(array: &ArrayRef, row: usize) -> Value {
    if array.is_null(row) {
        return Value::Null;
    }
    let one = array.slice(row, 1);
    let to = |t: &DataType| cast(&one, t).unwrap();
    let list = |inner: ArrayRef| (0..inner.len()).map(|i| export_cell(&inner, i)).collect();
    match array.data_type() {
        DataType::List(_) => Value::Array(list(array.as_list::<i32>().value(row))),
        DataType::LargeList(_) => Value::Array(list(array.as_list::<i64>().value(row))),
        DataType::Boolean => json!(array.as_boolean().value(row)),
        DataType::Float16 | DataType::Float32 | DataType::Float64 => {
            let value = to(&DataType::Float64).as_primitive::<Float64Type>().value(0);
            if value.is_finite() { json!(value) } else { json!(value.to_string()) }
        }
        DataType::Timestamp(..) => {
            let micros = to(&DataType::Timestamp(TimeUnit::Microsecond, None));
            json!(cast(&micros, &DataType::Int64).unwrap().as_primitive::<Int64Type>().value(0))
        }
        t if t.is_numeric() => json!(to(&DataType::Int64).as_primitive::<Int64Type>().value(0)),
        _ => json!(to(&DataType::Utf8).as_string::<i32>().value(0)),
    }
}

//! DISTINCT aggregates, which use rows with equal arguments only once.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, AsArray, Float64Array, Int64Array, UInt64Array};
use arrow::datatypes::{DataType, Float64Type, Int64Type, UInt64Type};
use datafusion::common::ScalarValue;
use datafusion::common::utils::SingleRowListArrayBuilder;
use datafusion::error::Result as DfResult;
use datafusion::logical_expr::Accumulator;

use super::GroupStates;
use crate::error::{Error, Result};

/// The bit patterns of the one or two arguments of an aggregate in one row. If there is only one
/// argument, the second pattern is 0.
type RowKey = [u64; 2];

/// Passes each distinct row of a group to `fold` once. `seen` counts the rows with each key. When
/// rows leave a sliding frame and the count of a key falls to 0, its row is removed from `fold`.
#[derive(Debug)]
pub(super) struct DistinctFold {
    fold: Box<dyn GroupStates>,
    types: Vec<DataType>,
    seen: HashMap<RowKey, u64>,
}

impl DistinctFold {
    pub(super) fn new(fold: Box<dyn GroupStates>, types: Vec<DataType>) -> Self {
        Self { fold, types, seen: HashMap::new() }
    }

    fn add_rows(&mut self, values: &[ArrayRef]) -> Result<()> {
        let mut fresh = Vec::new();
        for key in encode_keys(values)? {
            let count = self.seen.entry(key).or_default();
            *count += 1;
            if *count == 1 {
                fresh.push(key);
            }
        }
        match fresh.is_empty() {
            true => Ok(()),
            false => self.fold.update_one(&decode_keys(&self.types, &fresh)),
        }
    }

    fn take_away(&mut self, values: &[ArrayRef]) -> Result<()> {
        let mut removed = Vec::new();
        for key in encode_keys(values)? {
            match self.seen.get_mut(&key) {
                Some(count) if *count > 1 => *count -= 1,
                Some(_) => {
                    self.seen.remove(&key);
                    removed.push(key);
                }
                None => {}
            }
        }
        match removed.is_empty() {
            true => Ok(()),
            false => self.fold.retract_one(&decode_keys(&self.types, &removed)),
        }
    }
}

impl Accumulator for DistinctFold {
    fn update_batch(&mut self, values: &[ArrayRef]) -> DfResult<()> {
        Ok(self.add_rows(values)?)
    }

    fn retract_batch(&mut self, values: &[ArrayRef]) -> DfResult<()> {
        Ok(self.take_away(values)?)
    }

    fn supports_retract_batch(&self) -> bool {
        self.fold.retracts()
    }

    fn evaluate(&mut self) -> DfResult<ScalarValue> {
        ScalarValue::try_from_array(&self.fold.result(1)?, 0)
    }

    fn state(&mut self) -> DfResult<Vec<ScalarValue>> {
        let keys: Vec<RowKey> = self.seen.keys().copied().collect();
        let arrays = decode_keys(&self.types, &keys).into_iter();
        Ok(arrays.map(|a| SingleRowListArrayBuilder::new(a).build_list_scalar()).collect())
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> DfResult<()> {
        let rows = states.first().map_or(0, |s| s.len());
        for row in 0..rows {
            let lists = states.iter().filter(|s| s.is_valid(row));
            let lists: Option<Vec<ArrayRef>> =
                lists.map(|s| Some(s.as_list_opt::<i32>()?.value(row))).collect();
            if let Some(lists) = lists {
                self.add_rows(&lists)?;
            }
        }
        Ok(())
    }

    fn size(&self) -> usize {
        size_of_val(self) + self.fold.size() + self.seen.capacity() * size_of::<(RowKey, u64)>()
    }
}

/// Returns the [`RowKey`] of each row of the argument columns `values`, leaving out rows with a
/// NULL. The keys of 0.0 and -0.0 are equal, and so are those of all NaN.
fn encode_keys(values: &[ArrayRef]) -> Result<Vec<RowKey>> {
    let rows = values.first().map_or(0, |v| v.len());
    let mut keys = vec![Some([0; 2]); rows];
    for (column, array) in values.iter().enumerate().take(2) {
        let mut set = |row: usize, bits: Option<u64>| match (&mut keys[row], bits) {
            (Some(key), Some(bits)) => key[column] = bits,
            (key, _) => *key = None,
        };
        if let Some(floats) = array.as_primitive_opt::<Float64Type>() {
            let one = |v: f64| if v.is_nan() { f64::NAN } else { v + 0.0 };
            floats.iter().enumerate().for_each(|(row, v)| set(row, v.map(|v| one(v).to_bits())));
        } else if let Some(integers) = array.as_primitive_opt::<Int64Type>() {
            let integers = integers.iter().enumerate();
            integers.for_each(|(row, v)| set(row, v.map(i64::cast_unsigned)));
        } else if let Some(integers) = array.as_primitive_opt::<UInt64Type>() {
            integers.iter().enumerate().for_each(|(row, v)| set(row, v));
        } else {
            return Err(Error::type_of(
                "internal error, please report it: the numbers to aggregate with DISTINCT",
                "a type of 64 bits",
                array.data_type(),
            ));
        }
    }
    Ok(keys.into_iter().flatten().collect())
}

fn decode_keys(types: &[DataType], keys: &[RowKey]) -> Vec<ArrayRef> {
    let column = |(i, data_type): (usize, &DataType)| -> ArrayRef {
        let bits = keys.iter().map(|key| key.get(i).copied().unwrap_or(0));
        match data_type {
            DataType::Int64 => Arc::new(Int64Array::from_iter_values(bits.map(u64::cast_signed))),
            DataType::UInt64 => Arc::new(UInt64Array::from_iter_values(bits)),
            _ => Arc::new(Float64Array::from_iter_values(bits.map(f64::from_bits))),
        }
    };
    types.iter().enumerate().map(column).collect()
}

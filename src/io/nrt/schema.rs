//! [`NrtSchema`]: the columns that a file to be written will have.

use arrow::datatypes::{DataType, Schema};

use crate::array::{leaf_type, list_depth};
use crate::table::RaggedTable;

/// Columns of a file to be written: name, axis and type of the values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NrtSchema {
    pub(super) columns: Vec<(String, usize, DataType)>,
    pub(super) depth: usize,
}

impl NrtSchema {
    /// From columns, each as (name, axis, type of the values).
    pub fn new<S: Into<String>>(columns: impl IntoIterator<Item = (S, usize, DataType)>) -> Self {
        let columns: Vec<_> = columns.into_iter().map(|(n, a, t)| (n.into(), a, t)).collect();
        let depth = columns.iter().map(|(_, axis, _)| *axis).max().unwrap_or(0);
        Self { columns, depth }
    }

    /// The columns of a table, and its axes, those without columns as well.
    pub fn of_table(table: &RaggedTable) -> Self {
        let columns = table.columns().iter().map(|c| (c.name(), c.axis(), c.data_type().clone()));
        Self { depth: table.axes().len(), ..Self::new(columns) }
    }

    /// From an Arrow schema of sibling lists (`time: List<..>`, `code: List<List<..>>`): as many list
    /// levels as a column has, so deep is its axis.
    pub fn of_arrow(schema: &Schema) -> Self {
        Self::new(schema.fields().iter().map(|f| {
            (f.name().as_str(), list_depth(f.data_type()), leaf_type(f.data_type()).clone())
        }))
    }
}

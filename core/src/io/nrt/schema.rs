use arrow::datatypes::{DataType, Schema};

use crate::array::{leaf_type, list_depth};
use crate::table::RaggedTable;

/// The columns of an `.nrt` file to write: name, axis and type of the values.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::Int32Array;
/// use serrate::RaggedTable;
/// use serrate::io::nrt::NrtSchema;
/// let ages = Arc::new(Int32Array::from(vec![71, 38]));
/// let table = RaggedTable::builder().column("age", 0, ages).build()?;
/// let schema = NrtSchema::of_table(&table);
/// assert_eq!(schema, NrtSchema::of_arrow(table.arrow_schema()?.as_ref()));
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NrtSchema {
    pub(super) columns: Vec<(String, usize, DataType)>,
    pub(super) depth: usize,
}

impl NrtSchema {
    /// Creates a schema from columns, each a name, an axis and the type of the values.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::Int32Array;
    /// use arrow::datatypes::DataType;
    /// use serrate::RaggedTable;
    /// use serrate::io::nrt::NrtSchema;
    /// let schema = NrtSchema::new([("age", 0, DataType::Int32)]);
    /// let ages = Arc::new(Int32Array::from(vec![71, 38]));
    /// let table = RaggedTable::builder().column("age", 0, ages).build()?;
    /// assert_eq!(schema, NrtSchema::of_table(&table));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn new<S: Into<String>>(columns: impl IntoIterator<Item = (S, usize, DataType)>) -> Self {
        let columns: Vec<_> = columns.into_iter().map(|(n, a, t)| (n.into(), a, t)).collect();
        let depth = columns.iter().map(|(_, axis, _)| *axis).max().unwrap_or(0);
        Self { columns, depth }
    }

    /// Creates the schema of a table, including axes without columns.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::Int32Array;
    /// # use serrate::RaggedTable;
    /// # let ages = Arc::new(Int32Array::from(vec![71, 38]));
    /// # let table = RaggedTable::builder().column("age", 0, ages).build()?;
    /// use arrow::datatypes::DataType;
    /// use serrate::io::nrt::NrtSchema;
    /// assert_eq!(NrtSchema::of_table(&table), NrtSchema::new([("age", 0, DataType::Int32)]));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn of_table(table: &RaggedTable) -> Self {
        let columns = table.columns().iter().map(|c| (c.name(), c.axis(), c.data_type().clone()));
        Self { depth: table.axes().len(), ..Self::new(columns) }
    }

    /// Creates a schema from Arrow lists (`time: List<..>`, `code: List<List<..>>`).
    ///
    /// Each level of lists is an axis.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use arrow::datatypes::{DataType, Field, Schema};
    /// use serrate::io::nrt::NrtSchema;
    /// let codes = Field::new("code", DataType::new_list(DataType::UInt16, true), true);
    /// let schema = NrtSchema::of_arrow(&Schema::new(vec![codes]));
    /// assert_eq!(schema, NrtSchema::new([("code", 1, DataType::UInt16)]));
    /// ```
    pub fn of_arrow(schema: &Schema) -> Self {
        Self::new(schema.fields().iter().map(|f| {
            (f.name().as_str(), list_depth(f.data_type()), leaf_type(f.data_type()).clone())
        }))
    }
}

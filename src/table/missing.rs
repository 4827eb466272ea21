//! Missing values said in one way.

use arrow::array::Array;

use super::{Column, RaggedTable};
use crate::error::Result;
use crate::kernels::nan::nan_to_null;

impl RaggedTable {
    /// The same table with null where a float is NaN: what SQL makes of an `.nrt` file, which has no
    /// nulls and says NaN for them. Values stay where they are.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use serrate::arrow::array::{Array, Float32Array};
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .column("weight", 0, Arc::new(Float32Array::from(vec![70.5, f32::NAN])))
    ///     .build()?;
    /// assert_eq!(table.nan_to_null()?.column("weight")?.values().null_count(), 1);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn nan_to_null(&self) -> Result<Self> {
        let columns = self.columns().iter().map(|c| {
            let values = nan_to_null(c.values())?;
            let nullable = c.field().is_nullable() || values.null_count() > 0;
            let field = c.field().as_ref().clone().with_nullable(nullable);
            let column = Column::with_field(field.into(), c.axis(), values);
            Ok(column.with_list_nulls(c.list_nulls().to_vec()))
        });
        self.with_columns(columns.collect::<Result<_>>()?)
    }
}

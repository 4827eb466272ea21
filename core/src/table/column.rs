use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef};
use arrow::buffer::NullBuffer;
use arrow::datatypes::{DataType, Field, FieldRef};

/// A named column: a flat Arrow array with one value per element of its axis.
///
/// `list_nulls()[k]` is the validity of the column's lists on axis `k`; the elements of these lists
/// form axis `k + 1`. If a list is null in one column, it is null or empty in all others.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::Int32Array;
/// # use arrow::datatypes::DataType;
/// use serrate::table::Column;
/// let column = Column::new("age", 0, Arc::new(Int32Array::from(vec![71, 38])));
/// assert_eq!((column.name(), column.axis()), ("age", 0));
/// assert_eq!((column.data_type(), column.values().len()), (&DataType::Int32, 2));
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Column {
    field: FieldRef,
    axis: usize,
    list_nulls: Vec<Option<NullBuffer>>,
    values: ArrayRef,
}

impl Column {
    /// Builds a column without null lists.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use arrow::array::Int32Array;
    /// use serrate::table::Column;
    /// let column = Column::new("age", 0, Arc::new(Int32Array::from(vec![71, 38])));
    /// assert_eq!((column.name(), column.axis(), column.values().len()), ("age", 0, 2));
    /// ```
    pub fn new(name: impl Into<String>, axis: usize, values: ArrayRef) -> Self {
        let field = Field::new(name, values.data_type().clone(), true);
        Self::with_field(Arc::new(field), axis, values)
    }

    /// Builds a column with the name, nullability and metadata of a field; `values` determine the
    /// type.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::Int32Array;
    /// # use arrow::datatypes::{DataType, Field};
    /// use serrate::table::Column;
    /// let field = Arc::new(Field::new("age", DataType::Int32, false));
    /// let column = Column::with_field(field, 0, Arc::new(Int32Array::from(vec![71]))).renamed("years");
    /// assert_eq!((column.name(), column.field().is_nullable()), ("years", false));
    /// assert!(column.list_nulls().is_empty());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn with_field(field: FieldRef, axis: usize, values: ArrayRef) -> Self {
        let field = if field.data_type() == values.data_type() {
            field
        } else {
            Arc::new(field.as_ref().clone().with_data_type(values.data_type().clone()))
        };
        Self { field, axis, list_nulls: vec![None; axis], values }
    }

    /// Sets the validity of the lists: one bitmap per axis above the column (`None`: no nulls),
    /// rows first.
    ///
    /// The lengths of the bitmaps are checked when the column is added to a table.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::{array::Int32Array, buffer::NullBuffer};
    /// use serrate::table::{Column, RaggedTable};
    /// // x: NULL, [1]
    /// let x = Column::new("x", 1, Arc::new(Int32Array::from(vec![1])))
    ///     .with_list_nulls(vec![Some(NullBuffer::from(vec![false, true]))]);
    /// let table = RaggedTable::builder().lengths([0, 1])?.push(x).build()?;
    /// assert!(table.array("x")?.axis(1)?.nulls().is_some());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn with_list_nulls(mut self, list_nulls: Vec<Option<NullBuffer>>) -> Self {
        self.list_nulls =
            list_nulls.into_iter().map(|n| n.filter(|n| n.null_count() > 0)).collect();
        self.list_nulls.resize(self.axis, None);
        self
    }

    /// Renames the column.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use arrow::array::Int32Array;
    /// use serrate::table::Column;
    /// let column = Column::new("age", 0, Arc::new(Int32Array::from(vec![71, 38])));
    /// assert_eq!(column.renamed("years").name(), "years");
    /// ```
    pub fn renamed(mut self, name: impl Into<String>) -> Self {
        self.field = Arc::new(self.field.as_ref().clone().with_name(name));
        self
    }

    /// Returns the name of the column.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use arrow::array::Int32Array;
    /// use serrate::table::Column;
    /// let column = Column::new("age", 0, Arc::new(Int32Array::from(vec![71, 38])));
    /// assert_eq!(column.name(), "age");
    /// ```
    pub fn name(&self) -> &str {
        self.field.name()
    }

    /// Returns the field: name, type of the values, nullability and metadata.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use arrow::array::Int32Array;
    /// use serrate::table::Column;
    /// let column = Column::new("age", 0, Arc::new(Int32Array::from(vec![71, 38])));
    /// assert!(column.field().is_nullable());
    /// ```
    pub fn field(&self) -> &FieldRef {
        &self.field
    }

    /// Returns the type of the values.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use arrow::array::Int32Array;
    /// use arrow::datatypes::DataType;
    /// use serrate::table::Column;
    /// let column = Column::new("age", 0, Arc::new(Int32Array::from(vec![71, 38])));
    /// assert_eq!(column.data_type(), &DataType::Int32);
    /// ```
    pub fn data_type(&self) -> &DataType {
        self.field.data_type()
    }

    /// Returns the axis of the column; on axis 0, a column has one value per row.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use arrow::array::Int32Array;
    /// use serrate::table::Column;
    /// let column = Column::new("age", 0, Arc::new(Int32Array::from(vec![71, 38])));
    /// assert_eq!(column.axis(), 0);
    /// ```
    pub fn axis(&self) -> usize {
        self.axis
    }

    /// Returns the validity of the lists, one entry per axis above the axis of the column.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use arrow::array::Int32Array;
    /// use serrate::table::Column;
    /// let column = Column::new("code", 2, Arc::new(Int32Array::from(vec![7, 8])));
    /// assert_eq!(column.list_nulls().len(), 2); // of the rows and of axis 1
    /// ```
    pub fn list_nulls(&self) -> &[Option<NullBuffer>] {
        &self.list_nulls
    }

    /// Returns the flat values.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use arrow::array::Int32Array;
    /// use serrate::table::Column;
    /// let column = Column::new("age", 0, Arc::new(Int32Array::from(vec![71, 38])));
    /// assert_eq!(column.values().len(), 2);
    /// ```
    pub fn values(&self) -> &ArrayRef {
        &self.values
    }

    /// Keeps the elements `windows[k]` of each axis `k` up to the axis of the column.
    pub(crate) fn slice(&self, windows: &[Range<usize>]) -> Self {
        let own = &windows[self.axis];
        Self {
            field: Arc::clone(&self.field),
            axis: self.axis,
            list_nulls: self
                .list_nulls
                .iter()
                .zip(windows)
                .map(|(nulls, w)| {
                    let part = nulls.as_ref()?.slice(w.start, w.len());
                    (part.null_count() > 0).then_some(part)
                })
                .collect(),
            values: self.values.slice(own.start, own.len()),
        }
    }
}

/// Columns are equal if names, axes, validity and values are equal; metadata is ignored.
impl PartialEq for Column {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
            && self.axis == other.axis
            && self.list_nulls == other.list_nulls
            && *self.values == *other.values
    }
}

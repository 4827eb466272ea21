use std::sync::Arc;

use arrow::array::{Array, ArrayRef, ArrowPrimitiveType, AsArray};
use arrow::datatypes::{DataType, FieldRef};

use super::{Column, RaggedTable};
use crate::error::{Error, Result};

/// A named value that a table carries in addition to its columns.
///
/// An integer index on axis 0, or [`squeeze`](RaggedTable::squeeze), turns the columns of axis 0
/// into scalars. Selecting rows or elements keeps them. [`unsqueeze`](RaggedTable::unsqueeze) at
/// axis 0 and [`vstack`](RaggedTable::vstack) turn them back into columns.
///
/// ```
/// # use serrate_core as serrate;
/// # use std::sync::Arc;
/// # use arrow::array::Int32Array;
/// # use arrow::datatypes::DataType;
/// use serrate::table::RaggedTable;
/// let table = RaggedTable::builder()
///     .lengths([2, 1])?
///     .column("age", 0, Arc::new(Int32Array::from(vec![71, 38])))
///     .column("code", 1, Arc::new(Int32Array::from(vec![7, 8, 9])))
///     .build()?;
/// let second = table.index(&[1.into()])?;
/// let age = &second.scalars()[0];
/// assert_eq!((age.name(), age.data_type()), ("age", &DataType::Int32));
/// assert!(age.field().is_nullable());
/// # Ok::<(), serrate::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Scalar {
    field: FieldRef,
    value: ArrayRef,
}

impl Scalar {
    /// Returns the name of the original column.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// use arrow::array::Int32Array;
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .lengths([2, 1])?
    ///     .column("age", 0, Arc::new(Int32Array::from(vec![71, 38])))
    ///     .column("code", 1, Arc::new(Int32Array::from(vec![7, 8, 9])))
    ///     .build()?;
    /// let second = table.index(&[1.into()])?;
    /// let age = second.scalar("age")?;
    /// assert_eq!(age.name(), "age");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn name(&self) -> &str {
        self.field.name()
    }

    /// Returns the field: name, type and metadata.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// use arrow::array::Int32Array;
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .lengths([2, 1])?
    ///     .column("age", 0, Arc::new(Int32Array::from(vec![71, 38])))
    ///     .column("code", 1, Arc::new(Int32Array::from(vec![7, 8, 9])))
    ///     .build()?;
    /// let second = table.index(&[1.into()])?;
    /// let age = second.scalar("age")?;
    /// assert!(age.field().is_nullable());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn field(&self) -> &FieldRef {
        &self.field
    }

    /// Returns the type of the value.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// use arrow::array::Int32Array;
    /// use arrow::datatypes::DataType;
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .lengths([2, 1])?
    ///     .column("age", 0, Arc::new(Int32Array::from(vec![71, 38])))
    ///     .column("code", 1, Arc::new(Int32Array::from(vec![7, 8, 9])))
    ///     .build()?;
    /// let second = table.index(&[1.into()])?;
    /// let age = second.scalar("age")?;
    /// assert_eq!(age.data_type(), &DataType::Int32);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn data_type(&self) -> &DataType {
        self.value.data_type()
    }

    /// Returns the value, as an array of length 1.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::Int32Array;
    /// use serrate::index::parse_index;
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .lengths([2])?
    ///     .column("age", 0, Arc::new(Int32Array::from(vec![71])))
    ///     .column("code", 1, Arc::new(Int32Array::from(vec![7, 8])))
    ///     .build()?;
    /// let row = table.index(&parse_index("0")?)?;
    /// assert_eq!(row.scalar("age")?.value().as_ref(), &Int32Array::from(vec![71]));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn value(&self) -> &ArrayRef {
        &self.value
    }

    /// Returns the value of a primitive scalar; `None` if it is null.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// use arrow::array::{Int32Array, types::Int32Type};
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .lengths([2, 1])?
    ///     .column("age", 0, Arc::new(Int32Array::from(vec![71, 38])))
    ///     .column("code", 1, Arc::new(Int32Array::from(vec![7, 8, 9])))
    ///     .build()?;
    /// let second = table.index(&[1.into()])?;
    /// let age = second.scalar("age")?;
    /// assert_eq!(age.typed::<Int32Type>()?, Some(38));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the scalar has another type.
    pub fn typed<T: ArrowPrimitiveType>(&self) -> Result<Option<T::Native>> {
        let value = self.value.as_primitive_opt::<T>().ok_or_else(|| {
            Error::type_of(
                format!("scalar {:?}", self.name()),
                format!(
                    "{}, the requested type (cast the scalar, or request its own type)",
                    T::DATA_TYPE
                ),
                self.data_type(),
            )
        })?;
        Ok(value.is_valid(0).then(|| value.value(0)))
    }

    pub(super) fn to_column(&self) -> Column {
        Column::with_field(Arc::clone(&self.field), 0, Arc::clone(&self.value))
    }
}

impl PartialEq for Scalar {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name() && *self.value == *other.value
    }
}

impl RaggedTable {
    /// Returns the scalars of the table, in the order of the original columns.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use arrow::array::Int32Array;
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .lengths([2, 1])?
    ///     .column("age", 0, Arc::new(Int32Array::from(vec![71, 38])))
    ///     .column("code", 1, Arc::new(Int32Array::from(vec![1, 2, 3])))
    ///     .build()?;
    /// assert!(table.scalars().is_empty());
    /// let second = table.index(&[1.into()])?;
    /// assert_eq!(second.scalars()[0].name(), "age");
    /// assert_eq!(second.unsqueeze(0)?, table.slice(1, 1)?);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn scalars(&self) -> &[Scalar] {
        &self.scalars
    }

    /// Returns the scalar with this name.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// use arrow::array::Int32Array;
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .lengths([2, 1])?
    ///     .column("age", 0, Arc::new(Int32Array::from(vec![71, 38])))
    ///     .column("code", 1, Arc::new(Int32Array::from(vec![7, 8, 9])))
    ///     .build()?;
    /// let second = table.index(&[1.into()])?;
    /// let age = second.scalar("age")?;
    /// assert_eq!(age.value().len(), 1);
    /// assert!(second.scalar("code").is_err());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no scalar with this name.
    pub fn scalar(&self, name: &str) -> Result<&Scalar> {
        self.scalars.iter().find(|s| s.name() == name).ok_or_else(|| Error::NoSuchColumn {
            name: name.into(),
            available: self.list_known_names(),
        })
    }

    pub(super) fn list_known_names(&self) -> String {
        let scalars = self.scalars.iter().map(|s| format!("{} (a scalar)", s.name()));
        self.names().map(str::to_owned).chain(scalars).collect::<Vec<_>>().join(", ")
    }

    pub(crate) fn check_no_scalars(&self, what: &str) -> Result<()> {
        if self.scalars.is_empty() {
            return Ok(());
        }
        let names: Vec<String> = self.scalars.iter().map(|s| format!("{:?}", s.name())).collect();
        let noun = if names.len() == 1 { "column" } else { "columns" };
        Err(Error::invalid(format!(
            "{what} cannot hold scalars, but the {noun} {} became scalar when axis 0 was indexed or squeezed; unsqueeze axis 0 to get columns again, or select only the other columns",
            names.join(", ")
        )))
    }

    /// Removes axis 0 of a table of one row: axis 1 becomes the rows, and columns of axis 0
    /// scalars.
    pub(super) fn into_row(mut self) -> Result<Self> {
        self.scalars.extend(
            self.columns
                .iter()
                .filter(|c| c.axis() == 0)
                .map(|c| Scalar { field: Arc::clone(c.field()), value: Arc::clone(c.values()) }),
        );
        self.columns.retain(|c| c.axis() > 0);
        for column in &mut self.columns {
            let nulls = column.list_nulls()[1..].to_vec();
            let (field, values) = (Arc::clone(column.field()), Arc::clone(column.values()));
            *column = Column::with_field(field, column.axis() - 1, values).with_list_nulls(nulls);
        }
        if self.axes.is_empty() {
            (self.rows, self.row_name, self.point) = (0, None, true);
            return Ok(self);
        }
        let outer = self.axes.remove(0);
        for axis in &mut self.axes {
            axis.parent -= 1;
        }
        (self.rows, self.row_name) = (outer.layout.children(), outer.name);
        Ok(self)
    }
}

//! Conversion of tables from and to record batches, whose list columns become shared axes.

use std::collections::HashMap;
use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, FixedSizeListArray, LargeListArray, ListArray, RecordBatch,
    StructArray,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{DataType, Field, FieldRef, Fields, Schema, SchemaRef};

use super::{Column, RaggedTable};
use crate::array::arrow::to_fixed_size;
use crate::array::record_batch::build_record_batch;
use crate::array::{Layout, ListAxis, Offsets, RaggedArray, leaf_type, list_depth};
use crate::error::{Error, Result};

/// Schema metadata key of the axis names: a JSON list from axis 0 on, with null for no name.
pub const AXES_METADATA: &str = "serrate.axes";

/// A column to add to a table; its lists are not yet compared with the lists of other columns.
#[derive(Debug)]
pub(crate) struct IncomingColumn {
    /// Names of the column and of the structs around it, outermost first.
    pub(crate) path: Vec<String>,
    pub(crate) field: FieldRef,
    pub(crate) levels: Vec<ListAxis>,
    pub(crate) values: ArrayRef,
}

/// Builds a table of the columns `incoming`, whose lists become axes that all columns share.
/// Returns an error if the lists of two columns differ in length.
pub(crate) fn assemble_table(
    rows: usize,
    names: &[Option<Arc<str>>],
    incoming: Vec<IncomingColumn>,
) -> Result<RaggedTable> {
    let names_of = name_columns(&incoming);
    let mut axes: Vec<(Layout, usize)> = Vec::new();
    for (i, column) in incoming.iter().enumerate() {
        for (level, axis) in column.levels.iter().enumerate() {
            let layout = axis.layout();
            match axes.get(level) {
                None => axes.push((layout.clone(), i)),
                Some((kept, setter)) => {
                    if let Some(list) = kept.first_difference(layout) {
                        return Err(Error::Disagree {
                            left: names_of[*setter].clone(),
                            right: names_of[i].clone(),
                            axis: level + 1,
                            list,
                            left_len: kept.length(list),
                            right_len: layout.length(list),
                        });
                    }
                    // A uniform axis, whose lists have one size, is stored without offsets. Store
                    // offsets if the lists of any column have them.
                    if layout.is_ragged() && !kept.is_ragged() {
                        axes[level] = (layout.clone(), i);
                    }
                }
            }
        }
    }
    let columns = incoming
        .into_iter()
        .zip(names_of)
        .map(|(c, name)| {
            let nulls = c.levels.iter().map(|l| l.nulls().cloned()).collect();
            let field = if *c.field.name() == name {
                c.field
            } else {
                Arc::new(c.field.as_ref().clone().with_name(name))
            };
            Column::with_field(field, c.levels.len(), c.values).with_list_nulls(nulls)
        })
        .collect();
    let name_of = |axis: usize| names.get(axis).cloned().flatten();
    let axes = axes.into_iter().enumerate().map(|(i, (l, _))| (name_of(i + 1), l)).collect();
    RaggedTable::try_new(rows, name_of(0), axes, columns)
}

fn name_columns(incoming: &[IncomingColumn]) -> Vec<String> {
    let plain = |c: &IncomingColumn| c.path.last().cloned().unwrap_or_default();
    let mut seen: HashMap<String, usize> = HashMap::new();
    for column in incoming {
        *seen.entry(plain(column)).or_default() += 1;
    }
    incoming
        .iter()
        .map(|c| {
            let name = plain(c);
            if seen[&name] > 1 { c.path.join(".") } else { name }
        })
        .collect()
}

/// Adds a column to `out`; if it has lists of structs, adds one column per field of the structs.
/// Returns an error for a list view, and for a null struct with a field that cannot be null.
fn open_column(
    path: Vec<String>,
    field: &FieldRef,
    array: ArrayRef,
    mut levels: Vec<ListAxis>,
    names: &mut Vec<Option<Arc<str>>>,
    out: &mut Vec<IncomingColumn>,
) -> Result<()> {
    let refuse_views = |t: &DataType| match leaf_type(t) {
        found @ (DataType::ListView(_) | DataType::LargeListView(_)) => Err(Error::type_of(
            format!("column {:?}", path.join(".")),
            "a List, LargeList or FixedSizeList (cast the column first)",
            found,
        )),
        _ => Ok(()),
    };
    refuse_views(array.data_type())?;
    let opened = RaggedArray::try_from_arrow(&array)?;
    let (_, mut axes, leaves) = opened.into_parts();
    let outer = levels.len();
    levels.append(&mut axes);
    match leaves.as_struct_opt() {
        // A struct that is not in a list stays one leaf column, instead of one column per field.
        Some(fields) if !levels.is_empty() => {
            if levels.len() > outer {
                names.resize(names.len().max(levels.len() + 1), None);
                let name = &mut names[levels.len()];
                if name.is_none() {
                    *name = path.last().map(|n| n.as_str().into());
                }
            }
            for (child_field, child) in fields.fields().iter().zip(fields.columns()) {
                let mut child_path = path.clone();
                child_path.push(child_field.name().clone());
                let child = match fields.nulls().filter(|n| n.null_count() > 0) {
                    Some(nulls) => add_struct_nulls(&child_path, child, nulls)?,
                    None => child.clone(),
                };
                open_column(child_path, child_field, child, levels.clone(), names, out)?;
            }
            Ok(())
        }
        _ => {
            out.push(IncomingColumn {
                path,
                field: make_leaf_field(field, &leaves),
                levels,
                values: leaves,
            });
            Ok(())
        }
    }
}

fn add_struct_nulls(path: &[String], array: &ArrayRef, nulls: &NullBuffer) -> Result<ArrayRef> {
    let union = NullBuffer::union(array.logical_nulls().as_ref(), Some(nulls));
    if array.data_type().is_null() || union.as_ref() == array.nulls() {
        return Ok(array.clone());
    }
    if matches!(array.data_type(), DataType::Union(..) | DataType::RunEndEncoded(..)) {
        return Err(Error::type_of(
            format!("field {:?} of a struct column with nulls", path.join(".")),
            "a type that can hold nulls of its own (cast the field first)",
            array.data_type(),
        ));
    }
    let data = array.to_data().into_builder().nulls(union).build()?;
    Ok(arrow::array::make_array(data))
}

fn make_leaf_field(field: &FieldRef, leaves: &ArrayRef) -> FieldRef {
    let mut metadata = field.metadata().clone();
    metadata.remove(AXES_METADATA);
    let nullable = list_depth(field.data_type()) > 0 || field.is_nullable();
    Arc::new(Field::new(field.name(), leaves.data_type().clone(), nullable).with_metadata(metadata))
}

/// Offsets that all list columns of an axis share, in the type of Arrow's list type.
enum AxisOffsets {
    List(OffsetBuffer<i32>),
    LargeList(OffsetBuffer<i64>),
    Fixed { size: i32, lists: usize },
}

impl AxisOffsets {
    fn new(layout: &Layout) -> Result<Self> {
        Ok(match layout {
            Layout::Ragged(o @ Offsets::I32(_)) => Self::List(o.to_i32()?),
            Layout::Ragged(o @ Offsets::I64(_)) => Self::LargeList(o.to_i64()),
            Layout::Uniform { size, lists } => {
                Self::Fixed { size: to_fixed_size(*size)?, lists: *lists }
            }
        })
    }

    fn wrap_child(
        &self,
        item: FieldRef,
        child: ArrayRef,
        nulls: Option<NullBuffer>,
    ) -> Result<ArrayRef> {
        Ok(match self {
            Self::List(o) => Arc::new(ListArray::try_new(item, o.clone(), child, nulls)?),
            Self::LargeList(o) => Arc::new(LargeListArray::try_new(item, o.clone(), child, nulls)?),
            Self::Fixed { size, lists } => Arc::new(FixedSizeListArray::try_new_with_length(
                item, *size, child, nulls, *lists,
            )?),
        })
    }
}

fn make_list_type(layout: &Layout, item: FieldRef) -> Result<DataType> {
    Ok(match layout {
        Layout::Ragged(Offsets::I32(_)) => DataType::List(item),
        Layout::Ragged(Offsets::I64(_)) => DataType::LargeList(item),
        Layout::Uniform { size, .. } => DataType::FixedSizeList(item, to_fixed_size(*size)?),
    })
}

fn make_item_field(data_type: DataType) -> FieldRef {
    Arc::new(Field::new_list_field(data_type, true))
}

fn read_axis_names(schema: &Schema) -> Vec<Option<Arc<str>>> {
    let text = schema
        .metadata()
        .get(AXES_METADATA)
        .or_else(|| schema.fields().iter().find_map(|f| f.metadata().get(AXES_METADATA)));
    let names: Option<Vec<Option<String>>> = text.and_then(|t| serde_json::from_str(t).ok());
    names.unwrap_or_default().into_iter().map(|n| n.map(Into::into)).collect()
}

impl RaggedTable {
    /// Converts a record batch of sibling lists, lists of structs, flat columns, or a mix of them.
    ///
    /// Every level of List, LargeList or FixedSizeList becomes an axis; columns without lists are
    /// on axis 0. Fields of a struct in a list become columns (a null struct gives nulls) of an
    /// axis named after the list. A field keeps its name if it is unique in the batch, else it gets
    /// its path (`visits.time`). Axis names in the metadata (`serrate.axes`) take precedence.
    ///
    /// Shares offsets and values with the batch. The list lengths of columns that share an offsets
    /// buffer are not compared, because they are equal. A null list gets length 0. If it has
    /// values, the column is copied without these values.
    ///
    /// # Errors
    /// [`Error::Disagree`] at the first list whose length differs between two columns; an error for
    /// a ListView, or for two columns with the same name.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use std::sync::Arc;
    /// use arrow::array::{ListArray, RecordBatch};
    /// use arrow::datatypes::Int32Type;
    /// use serrate::table::RaggedTable;
    ///
    /// let time = ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1), Some(5)]), None]);
    /// let code = ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(7), None]), None]);
    /// let batch = RecordBatch::try_from_iter([("time", Arc::new(time) as _), ("code", Arc::new(code) as _)])?;
    /// let table = RaggedTable::try_from_batch(&batch)?;
    /// assert_eq!((table.num_rows(), table.axis_len(1)?), (2, 2));
    /// assert_eq!(table.to_batch()?.columns(), batch.columns());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn try_from_batch(batch: &RecordBatch) -> Result<Self> {
        let schema = batch.schema_ref();
        let mut incoming = Vec::with_capacity(batch.num_columns());
        let mut named = Vec::new();
        for (field, array) in schema.fields().iter().zip(batch.columns()) {
            open_column(
                vec![field.name().clone()],
                field,
                array.clone(),
                Vec::new(),
                &mut named,
                &mut incoming,
            )?;
        }
        let declared = read_axis_names(schema);
        let names = if declared.is_empty() { named } else { declared };
        assemble_table(batch.num_rows(), &names, incoming)
    }

    /// Returns the schema of [`to_batch`](Self::to_batch).
    ///
    /// Each column is a field with its name and metadata. A level of lists is a `List` for 32-bit
    /// offsets, a `LargeList` for 64-bit offsets or a `FixedSizeList` for a uniform axis, with
    /// elements named `item`. Axis names are in the metadata of the schema under [`AXES_METADATA`].
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::UInt16Array;
    /// # use arrow::datatypes::DataType;
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .lengths([2, 1])?
    ///     .column("code", 1, Arc::new(UInt16Array::from(vec![7, 8, 9])))
    ///     .build()?;
    /// let schema = table.arrow_schema()?;
    /// assert_eq!(schema.field(0).name(), "code");
    /// assert!(matches!(schema.field(0).data_type(), DataType::List(_)));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a uniform axis has lists of more than 2^31 - 1 elements, the limit of a FixedSizeList.
    pub fn arrow_schema(&self) -> Result<SchemaRef> {
        let fields =
            self.columns().iter().map(|c| self.make_arrow_field(c)).collect::<Result<_>>()?;
        Ok(self.build_schema(fields))
    }

    /// Converts to a record batch of sibling lists, one per column.
    ///
    /// All columns of an axis share one offsets buffer. Values are not copied; offsets are copied
    /// once if the table is a slice whose offsets do not start at zero. Null lists are restored in
    /// each column. Axes below the deepest column are omitted.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::{Int32Array, UInt16Array};
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .lengths([2, 1])?
    ///     .column("age", 0, Arc::new(Int32Array::from(vec![71, 38])))
    ///     .column("code", 1, Arc::new(UInt16Array::from(vec![7, 8, 9])))
    ///     .build()?;
    /// let batch = table.to_batch()?;
    /// assert_eq!((batch.num_rows(), batch.num_columns()), (2, 2));
    /// assert_eq!(RaggedTable::try_from_batch(&batch)?, table);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If the table has [`scalars`](Self::scalars), which a batch cannot hold.
    pub fn to_batch(&self) -> Result<RecordBatch> {
        self.check_no_scalars("a record batch")?;
        let deepest = self.columns().iter().map(Column::axis).max().unwrap_or(0);
        let shared: Vec<AxisOffsets> = self.axes()[..deepest]
            .iter()
            .map(|a| AxisOffsets::new(a.layout()))
            .collect::<Result<_>>()?;
        let mut arrays = Vec::with_capacity(self.columns().len());
        for column in self.columns() {
            let mut array = column.values().clone();
            for (axis, nulls) in shared[..column.axis()].iter().zip(column.list_nulls()).rev() {
                array = axis.wrap_child(
                    make_item_field(array.data_type().clone()),
                    array,
                    nulls.clone(),
                )?;
            }
            arrays.push(array);
        }
        Ok(build_record_batch(self.arrow_schema()?, arrays, self.num_rows())?)
    }

    /// Converts to a record batch of exactly this schema, with columns matched by name.
    ///
    /// Lists become the list types of the schema; offsets are copied if their width differs.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::UInt16Array;
    /// # use arrow::datatypes::{DataType, Field, Schema};
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .lengths([2, 1])?
    ///     .column("code", 1, Arc::new(UInt16Array::from(vec![7, 8, 9])))
    ///     .build()?;
    /// assert!(matches!(table.arrow_schema()?.field(0).data_type(), DataType::List(_)));
    /// let wide = Field::new_large_list("code", Field::new_list_field(DataType::UInt16, true), true);
    /// let batch = table.to_batch_as(&Arc::new(Schema::new(vec![wide])))?;
    /// assert!(matches!(batch.column(0).data_type(), DataType::LargeList(_)));
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a column is missing, a leaf type differs, or a list does not fit a FixedSizeList.
    pub fn to_batch_as(&self, schema: &SchemaRef) -> Result<RecordBatch> {
        // Columns of `plain` that have the type of `schema` need no conversion.
        let plain = self.to_batch()?;
        let mut arrays = Vec::with_capacity(schema.fields().len());
        for field in schema.fields() {
            let column = self.column(field.name())?;
            let same = plain.column_by_name(field.name());
            arrays.push(match same {
                Some(array) if array.data_type() == field.data_type() => array.clone(),
                _ => self.column_array(column)?.to_arrow_as(field.data_type())?,
            });
        }
        Ok(build_record_batch(Arc::clone(schema), arrays, self.num_rows())?)
    }

    /// Converts to a record batch of lists of structs:
    /// `visits: List<Struct<time, codes: List<Struct<code>>>>`.
    ///
    /// Columns of axis 0 come first, then one column named after axis 1 (`axis1` if unnamed), whose
    /// structs hold the columns of axis 1 and, last, the list of axis 2. Values are not copied.
    /// Axes below the deepest column are omitted.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use arrow::array::{Int32Array, UInt16Array};
    /// use serrate::table::RaggedTable;
    /// let table = RaggedTable::builder()
    ///     .lengths([2, 1])?
    ///     .column("age", 0, Arc::new(Int32Array::from(vec![71, 38])))
    ///     .column("code", 1, Arc::new(UInt16Array::from(vec![7, 8, 9])))
    ///     .build()?;
    /// let named = table.with_axis_names(["patient", "event"])?;
    /// let batch = named.to_struct_batch()?;
    /// assert_eq!(batch.schema().field(1).name(), "event");
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If an axis has the name of a column on the axis above, or a list is null in only one of
    /// several columns, because a null list of structs is null for all its fields
    /// ([`without_null_lists`](Self::without_null_lists) makes null lists empty).
    pub fn to_struct_batch(&self) -> Result<RecordBatch> {
        self.check_no_scalars("a record batch")?;
        let deepest = self.columns().iter().map(Column::axis).max().unwrap_or(0);
        let mut inner: Option<(FieldRef, ArrayRef)> = None;
        for axis in (0..=deepest).rev() {
            let mut fields: Vec<FieldRef> = Vec::new();
            let mut arrays: Vec<ArrayRef> = Vec::new();
            for column in self.columns().iter().filter(|c| c.axis() == axis) {
                fields.push(make_column_field(column, axis > 0));
                arrays.push(column.values().clone());
            }
            if let Some((field, array)) = inner.take() {
                if fields.iter().any(|f| f.name() == field.name()) {
                    return Err(Error::invalid(format!(
                        "axis {} and a column on axis {axis} are both named {:?}; rename one of them",
                        axis + 1,
                        field.name()
                    )));
                }
                fields.push(field);
                arrays.push(array);
            }
            if axis == 0 {
                let schema = self.build_schema(fields);
                return Ok(build_record_batch(schema, arrays, self.num_rows())?);
            }
            let layout = self.layout(axis)?;
            let nulls = self.check_common_nulls(axis)?;
            let length = layout.children();
            let structs = StructArray::try_new_with_length(fields.into(), arrays, None, length)?;
            let structs: ArrayRef = Arc::new(structs);
            let item = make_item_field(structs.data_type().clone());
            let list = AxisOffsets::new(layout)?.wrap_child(item, structs, nulls)?;
            let field = Field::new(self.list_name(axis), list.data_type().clone(), true);
            inner = Some((Arc::new(field), list));
        }
        Err(Error::invalid("internal error: the table has no axis 0; please report it"))
    }

    /// Replaces every null list with an empty one.
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
    /// let plain = table.without_null_lists();
    /// assert!(plain.array("x")?.axis(1)?.nulls().is_none());
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn without_null_lists(&self) -> Self {
        let columns =
            self.columns().iter().map(|c| c.clone().with_list_nulls(Vec::new())).collect();
        Self { columns, ..self.clone() }
    }

    pub(crate) fn make_arrow_field(&self, column: &Column) -> Result<FieldRef> {
        let mut field = make_column_field(column, column.axis() > 0);
        if column.axis() > 0 {
            let mut data_type = column.data_type().clone();
            for axis in self.axes()[..column.axis()].iter().rev() {
                data_type = make_list_type(axis.layout(), make_item_field(data_type))?;
            }
            field = Arc::new(field.as_ref().clone().with_data_type(data_type));
        }
        Ok(field)
    }

    fn build_schema(&self, fields: Vec<FieldRef>) -> SchemaRef {
        let names: Vec<Option<&str>> = (0..self.ndim()).map(|a| self.axis_name(a)).collect();
        let mut metadata = HashMap::new();
        if names.iter().any(Option::is_some) {
            let text = serde_json::Value::from_iter(names).to_string();
            metadata.insert(AXES_METADATA.to_owned(), text);
        }
        Arc::new(Schema::new_with_metadata(Fields::from(fields), metadata))
    }

    fn list_name(&self, axis: usize) -> String {
        self.axis_name(axis).map_or_else(|| format!("axis{axis}"), str::to_owned)
    }

    /// Returns the validity of the lists of axis `axis`, the same for all columns; `None` if no
    /// list is null. Returns an error if a list is null in only some columns.
    fn check_common_nulls(&self, axis: usize) -> Result<Option<NullBuffer>> {
        let mut below = self.columns().iter().filter(|c| c.axis() >= axis);
        let Some(first) = below.next() else { return Ok(None) };
        let level = axis - 1;
        let nulls = &first.list_nulls()[level];
        for other in below {
            let theirs = &other.list_nulls()[level];
            if nulls == theirs {
                continue;
            }
            let valid = |n: &Option<NullBuffer>, i| n.as_ref().is_none_or(|n| n.is_valid(i));
            let lists = self.layout(axis)?.lists();
            let list = (0..lists).find(|i| valid(nulls, *i) != valid(theirs, *i)).unwrap_or(0);
            return Err(Error::invalid(format!(
                "list {list} of axis {axis} is null in only one of the columns {:?} and {:?}, but a null list of structs is null for all its fields; make null lists empty with without_null_lists, or use to_batch, in which each column has its own null lists",
                first.name(),
                other.name()
            )));
        }
        Ok(nulls.clone())
    }
}

fn make_column_field(column: &Column, nested: bool) -> FieldRef {
    let nullable = nested || column.field().is_nullable() || column.values().is_nullable();
    if column.field().is_nullable() == nullable {
        Arc::clone(column.field())
    } else {
        Arc::new(column.field().as_ref().clone().with_nullable(nullable))
    }
}

/// Converts sibling lists (one list column per field) to lists of structs.
///
/// ```
/// # use serrate_core as serrate;
/// use std::sync::Arc;
/// use arrow::array::{ListArray, RecordBatch};
/// use arrow::datatypes::Int32Type;
/// use serrate::table::{unzip, zip};
///
/// let list = ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1)])]);
/// let batch = RecordBatch::try_from_iter([("a", Arc::new(list.clone()) as _), ("b", Arc::new(list) as _)])?;
/// let zipped = zip(&batch)?;
/// assert_eq!(zipped.num_columns(), 1);
/// assert_eq!(unzip(&zipped)?.columns(), batch.columns());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Same as [`RaggedTable::try_from_batch`] and [`RaggedTable::to_struct_batch`].
pub fn zip(batch: &RecordBatch) -> Result<RecordBatch> {
    RaggedTable::try_from_batch(batch)?.to_struct_batch()
}

/// Converts lists of structs to sibling lists, the inverse of [`zip`].
///
/// ```
/// # use serrate_core as serrate;
/// use std::sync::Arc;
/// use arrow::array::{ListArray, RecordBatch};
/// use arrow::datatypes::Int32Type;
/// use serrate::table::{unzip, zip};
///
/// let list = ListArray::from_iter_primitive::<Int32Type, _, _>([Some(vec![Some(1)])]);
/// let batch = RecordBatch::try_from_iter([("a", Arc::new(list.clone()) as _), ("b", Arc::new(list) as _)])?;
/// let siblings = unzip(&zip(&batch)?)?;
/// assert_eq!(siblings.num_columns(), 2);
/// assert_eq!(siblings.columns(), batch.columns());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Same as [`RaggedTable::try_from_batch`].
pub fn unzip(batch: &RecordBatch) -> Result<RecordBatch> {
    RaggedTable::try_from_batch(batch)?.to_batch()
}

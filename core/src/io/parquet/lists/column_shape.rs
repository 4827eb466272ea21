//! [`ColumnShape`]: list levels and value type of a column, from its Parquet and Arrow schemas.

use arrow::datatypes::{DataType, Field};
use parquet::basic::{ConvertedType, Encoding, LogicalType, Repetition, Type as Physical};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::schema::types::Type;

use crate::array::{ListKind, list_kind};

/// Maximum number of nested lists: definition levels of deeper columns need more than four bits.
const DEEPEST: usize = 7;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ListLevel {
    pub(super) large: bool,
    pub(super) nullable: bool,
    /// Minimum definition level of an entry whose list is not null.
    pub(super) present: u8,
    /// Minimum definition level of an entry whose list has an element.
    pub(super) filled: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeafKind {
    Boolean,
    /// Values of one byte (Int8, UInt8). Parquet stores values of one or two bytes in the lowest of
    /// four bytes.
    Narrow1,
    Narrow2,
    Four,
    Eight,
}

#[derive(Clone, Debug)]
pub(super) struct ColumnShape {
    /// Index of the leaf column in the file.
    pub(super) column: usize,
    /// List levels, outermost first.
    pub(super) lists: Vec<ListLevel>,
    pub(super) leaf: LeafKind,
    pub(super) nullable: bool,
    /// Definition level of a valid value.
    pub(super) max_def: u8,
    pub(super) max_rep: u8,
}

impl ColumnShape {
    /// Derives the shape of the top-level column `root`; `None` if the list decoder does not
    /// support it.
    pub(super) fn new(metadata: &ParquetMetaData, root: usize, field: &Field) -> Option<Self> {
        let schema = metadata.file_metadata().schema_descr();
        let mut leaves =
            (0..schema.num_columns()).filter(|i| schema.get_column_root_idx(*i) == root);
        let column = leaves.next()?;
        if leaves.next().is_some() {
            return None;
        }
        let mut node = schema.get_column_root(column);
        let mut data_type = field.data_type();
        let (mut lists, mut def) = (Vec::new(), 0u8);
        while let Some((kind, item)) = list_kind(data_type) {
            if kind != ListKind::List && kind != ListKind::LargeList || lists.len() == DEEPEST {
                return None;
            }
            let nullable = is_nullable(node)?;
            let element = list_element(node)?;
            def += u8::from(nullable);
            let present = def;
            def += 1;
            let large = kind == ListKind::LargeList;
            lists.push(ListLevel { large, nullable, present, filled: def });
            data_type = item.data_type();
            node = element;
        }
        if !node.is_primitive() {
            return None;
        }
        let nullable = is_nullable(node)?;
        let max_def = def + u8::from(nullable);
        let leaf = find_leaf_kind(node.get_physical_type(), data_type)?;
        let max_rep = u8::try_from(lists.len()).ok()?;
        let descriptor = schema.column(column);
        if !metadata
            .row_groups()
            .iter()
            .all(|g| g.columns().get(column).is_some_and(has_supported_encodings))
        {
            return None;
        }
        let levels = (descriptor.max_def_level(), descriptor.max_rep_level());
        (levels == (i16::from(max_def), i16::from(max_rep))).then_some(Self {
            column,
            lists,
            leaf,
            nullable,
            max_def,
            max_rep,
        })
    }

    /// Returns the minimum definition level of an element of the innermost list (or of a row,
    /// without lists).
    pub(super) fn element_level(&self) -> u8 {
        self.lists.last().map_or(0, |l| l.filled)
    }
}

fn has_supported_encodings(chunk: &ColumnChunkMetaData) -> bool {
    chunk.encodings().all(|encoding| {
        matches!(
            encoding,
            Encoding::PLAIN
                | Encoding::PLAIN_DICTIONARY
                | Encoding::RLE
                | Encoding::RLE_DICTIONARY
                | Encoding::DELTA_BINARY_PACKED
                | Encoding::BYTE_STREAM_SPLIT
        )
    })
}

/// Returns whether a node may be null; `None` if it is repeated or declares no repetition.
fn is_nullable(node: &Type) -> Option<bool> {
    let info = node.get_basic_info();
    match info.has_repetition().then(|| info.repetition())? {
        Repetition::REQUIRED => Some(false),
        Repetition::OPTIONAL => Some(true),
        Repetition::REPEATED => None,
    }
}

/// Returns the element of a three-level list (list, repeated group, element); `None` for other
/// types.
fn list_element(list: &Type) -> Option<&Type> {
    if list.is_primitive() {
        return None;
    }
    let info = list.get_basic_info();
    let annotated = info.converted_type() == ConvertedType::LIST
        || matches!(info.logical_type_ref(), Some(LogicalType::List));
    let [repeated] = list.get_fields() else { return None };
    let inner = repeated.get_basic_info();
    let is_repeated = inner.has_repetition() && inner.repetition() == Repetition::REPEATED;
    if !annotated || !is_repeated || repeated.is_primitive() {
        return None;
    }
    let plain = inner.converted_type() == ConvertedType::NONE && inner.logical_type_ref().is_none();
    // Parquet's compatibility rules: a group named `array` or `<list>_tuple` is itself the element.
    if !plain || inner.name() == "array" || inner.name() == format!("{}_tuple", info.name()) {
        return None;
    }
    let [element] = repeated.get_fields() else { return None };
    Some(element)
}

fn find_leaf_kind(physical: Physical, data_type: &DataType) -> Option<LeafKind> {
    use DataType::{
        Boolean, Date32, Date64, Duration, Float32, Float64, Int8, Int16, Int32, Int64, Time32,
        Time64, Timestamp, UInt8, UInt16, UInt32, UInt64,
    };
    match (physical, data_type) {
        (Physical::BOOLEAN, Boolean) => Some(LeafKind::Boolean),
        (Physical::INT32, Int8 | UInt8) => Some(LeafKind::Narrow1),
        (Physical::INT32, Int16 | UInt16) => Some(LeafKind::Narrow2),
        (Physical::INT32, Int32 | UInt32 | Date32 | Time32(_)) | (Physical::FLOAT, Float32) => {
            Some(LeafKind::Four)
        }
        (Physical::INT64, Int64 | UInt64 | Date64 | Time64(_) | Timestamp(..) | Duration(_))
        | (Physical::DOUBLE, Float64) => Some(LeafKind::Eight),
        _ => None,
    }
}

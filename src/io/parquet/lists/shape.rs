//! What the levels of a column mean, from the schemas of Parquet and of Arrow.

use arrow::datatypes::{DataType, Field};
use parquet::basic::{ConvertedType, Encoding, LogicalType, Repetition, Type as Physical};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::schema::types::Type;

use crate::array::{ListKind, list_kind};

/// Most list levels that are read here; deeper columns have level numbers of more than four bits.
const DEEPEST: usize = 7;

/// One level of lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ListLevel {
    /// Whether its offsets have 64 bits.
    pub(super) large: bool,
    /// Whether a list may be null.
    pub(super) nullable: bool,
    /// From this definition level on, the list is there, with or without elements.
    pub(super) present: u8,
    /// From this definition level on, it has an element.
    pub(super) filled: u8,
}

/// How values lie in pages, and how wide they are in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leaf {
    /// One bit each.
    Boolean,
    /// The lowest byte of four.
    Narrow1,
    /// The lowest two bytes of four.
    Narrow2,
    /// Four bytes.
    Four,
    /// Eight bytes.
    Eight,
}

/// A column of lists around values of fixed width.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    /// Number of the leaf among those of the file.
    pub(super) column: usize,
    /// The outermost first.
    pub(super) lists: Vec<ListLevel>,
    pub(super) leaf: Leaf,
    /// Whether a value may be null.
    pub(super) nullable: bool,
    /// Definition level of a value that is not null.
    pub(super) max_def: u8,
    pub(super) max_rep: u8,
}

impl Shape {
    /// `None` where the column is not one that is read here.
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
            let nullable = optional(node)?;
            let element = element(node)?;
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
        let nullable = optional(node)?;
        let max_def = def + u8::from(nullable);
        let leaf = leaf(node.get_physical_type(), data_type)?;
        let max_rep = u8::try_from(lists.len()).ok()?;
        let descriptor = schema.column(column);
        if !metadata.row_groups().iter().all(|g| g.columns().get(column).is_some_and(readable)) {
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

    /// From this definition level on, there is an element of the innermost list (or a row).
    pub(super) fn slot(&self) -> u8 {
        self.lists.last().map_or(0, |l| l.filled)
    }
}

/// Whether levels and values of a chunk are in encodings that are read here.
fn readable(chunk: &ColumnChunkMetaData) -> bool {
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

/// Whether a node may be null; `None` for a repeated one.
fn optional(node: &Type) -> Option<bool> {
    let info = node.get_basic_info();
    match info.has_repetition().then(|| info.repetition())? {
        Repetition::REQUIRED => Some(false),
        Repetition::OPTIONAL => Some(true),
        Repetition::REPEATED => None,
    }
}

/// The element of a list of three nodes: the list, a repeated group, the element.
fn element(list: &Type) -> Option<&Type> {
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
    // The names of groups that are elements themselves.
    if !plain || inner.name() == "array" || inner.name() == format!("{}_tuple", info.name()) {
        return None;
    }
    let [element] = repeated.get_fields() else { return None };
    Some(element)
}

fn leaf(physical: Physical, data_type: &DataType) -> Option<Leaf> {
    use DataType::{
        Boolean, Date32, Date64, Duration, Float32, Float64, Int8, Int16, Int32, Int64, Time32,
        Time64, Timestamp, UInt8, UInt16, UInt32, UInt64,
    };
    match (physical, data_type) {
        (Physical::BOOLEAN, Boolean) => Some(Leaf::Boolean),
        (Physical::INT32, Int8 | UInt8) => Some(Leaf::Narrow1),
        (Physical::INT32, Int16 | UInt16) => Some(Leaf::Narrow2),
        (Physical::INT32, Int32 | UInt32 | Date32 | Time32(_)) | (Physical::FLOAT, Float32) => {
            Some(Leaf::Four)
        }
        (Physical::INT64, Int64 | UInt64 | Date64 | Time64(_) | Timestamp(..) | Duration(_))
        | (Physical::DOUBLE, Float64) => Some(Leaf::Eight),
        _ => None,
    }
}

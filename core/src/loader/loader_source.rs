//! [`LoaderSource`]: shards with the same columns, prepared for copying to batches.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, AsArray};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow::datatypes::DataType;

use super::element_casts::{ElementCast, find_converter};
use super::facts_place::{FactsPlace, FactsPrefix};
use super::options::LoaderOptions;
use super::shard_timeline::ShardTimeline;
use crate::array::Layout;
use crate::dense::{DType, DenseTensor, Fill};
use crate::error::{Error, Result};
use crate::table::{Column, RaggedTable, promote_types};

/// A row, as the index of its shard and its index within the shard.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShardRow {
    pub(super) shard: usize,
    pub(super) row: usize,
}

#[derive(Debug)]
pub(super) struct LoaderSource {
    pub(super) columns: Vec<SourceColumn>,
    pub(super) shards: Vec<SourceShard>,
    /// For each shard, the number of rows of the shards before it; then the number of all rows.
    firsts: Vec<usize>,
    /// Number of axes, including the rows (axis 0). If columns are selected, only the axes that
    /// they need are counted.
    pub(super) ndim: usize,
    pub(super) facts: Option<Box<StaticFacts>>,
}

#[derive(Debug)]
pub(super) struct SourceColumn {
    pub(super) name: Arc<str>,
    pub(super) axis: usize,
    pub(super) dtype: DType,
    /// The value of padding. Only the first `dtype.size()` bytes are used.
    pub(super) fill: [u8; 8],
    /// The value that replaces nulls. Only the first `dtype.size()` bytes are used.
    pub(super) null: [u8; 8],
    pub(super) nulls: bool,
    /// Whether float32 values are made finite: NaN becomes 0, and infinities the largest finite
    /// numbers.
    pub(super) finite: bool,
    /// Index of the column of static facts whose values are prepended to the values of this column;
    /// `None` if there is no such column.
    pub(super) fact: Option<usize>,
}

/// One shard of a loader: the layouts of its axes, and its columns in the order of
/// [`LoaderSource::columns`].
#[derive(Debug)]
pub(super) struct SourceShard {
    pub(super) rows: usize,
    pub(super) layouts: Vec<Layout>,
    pub(super) values: Vec<ColumnValues>,
    /// The events that the measurements on axis 1 belong to; `None` if axis 1 has no measurements.
    pub(super) timeline: Option<ShardTimeline>,
}

#[derive(Debug)]
pub(super) struct ColumnValues {
    cells: ColumnCells,
    nulls: Option<NullBuffer>,
    /// Number of bytes of an element in the shard.
    stored: usize,
    /// Number of bytes of an element in a batch.
    size: usize,
    convert: Option<ElementCast>,
}

#[derive(Debug)]
enum ColumnCells {
    Bytes(Buffer),
    Bits(BooleanBuffer),
}

/// Static facts (MEDS measurements without a time) of the rows of a loader. `source` has the same
/// shards and rows as the loader's own source; axis 1 of `source` has one element per fact.
#[derive(Debug)]
pub(super) struct StaticFacts {
    pub(super) source: LoaderSource,
    pub(super) place: FactsPlace,
}

impl StaticFacts {
    fn find_facts_prefix(&self, shard: usize, row: usize) -> FactsPrefix {
        let facts = || self.source.shards[shard].layouts[0].length(row);
        match self.place {
            FactsPlace::Beside => FactsPrefix::default(),
            FactsPlace::Elements(most) => FactsPrefix { elements: facts().min(most), list: None },
            FactsPlace::List => FactsPrefix { elements: 1, list: Some(facts()) },
        }
    }
}

impl LoaderSource {
    pub(super) fn new(tables: &[RaggedTable], options: &LoaderOptions) -> Result<Self> {
        let selected = select_shards(tables, options)?;
        let [first, rest @ ..] = selected.as_slice() else {
            return Err(Error::invalid("the loader has no shards; give at least one"));
        };
        let depth = count_axes(first, options);
        for (i, table) in rest.iter().enumerate() {
            check_shard(first, depth, table, count_axes(table, options), i + 1)?;
        }
        if options.sizes.len() > depth {
            return Err(Error::invalid(format!(
                "{} sizes are given, but the number of axes after the rows is {depth}; give at most one size per axis",
                options.sizes.len()
            )));
        }
        let columns = first
            .columns()
            .iter()
            .map(|c| unify_column(c, &selected, options))
            .collect::<Result<Vec<_>>>()?;
        for (name, _) in &options.fills {
            first.column(name)?;
        }
        let shards = selected
            .iter()
            .map(|t| SourceShard::new(t, depth, &columns))
            .collect::<Result<Vec<_>>>()?;
        let mut firsts = vec![0];
        for shard in &shards {
            let end = firsts[firsts.len() - 1] + shard.rows;
            firsts.push(end);
        }
        Ok(Self { columns, shards, firsts, ndim: depth + 1, facts: None })
    }

    pub(super) fn rows(&self) -> usize {
        self.firsts.last().copied().unwrap_or(0)
    }

    pub(super) fn locate_row(&self, row: usize) -> ShardRow {
        // An empty shard starts at the same row as the next shard. If several shards start at the
        // same row, all but the last are empty, so the last has the row.
        let shard = self.firsts.partition_point(|first| *first <= row).saturating_sub(1);
        ShardRow { shard, row: row - self.firsts[shard] }
    }

    /// Returns the number of elements of a row on axis 1; 0 in a table with only axis 0.
    pub(super) fn len(&self, row: usize) -> usize {
        let ShardRow { shard, row } = self.locate_row(row);
        self.shards[shard].layouts.first().map_or(0, |l| l.length(row))
    }

    /// Returns how many elements of axis 1 hold the static facts before each window of a row.
    pub(super) fn count_events_before(&self, row: usize) -> usize {
        if self.facts.is_none() {
            return 0;
        }
        let ShardRow { shard, row } = self.locate_row(row);
        self.find_prefix(shard, row).elements
    }

    pub(super) fn find_prefix(&self, shard: usize, row: usize) -> FactsPrefix {
        self.facts
            .as_ref()
            .map_or_else(FactsPrefix::default, |facts| facts.find_facts_prefix(shard, row))
    }

    pub(super) fn for_each_len(&self, mut f: impl FnMut(usize)) {
        for shard in &self.shards {
            match shard.layouts.first() {
                Some(layout) => (0..shard.rows).for_each(|row| f(layout.length(row))),
                None => (0..shard.rows).for_each(|_| f(0)),
            }
        }
    }

    pub(super) fn find_longest_list(&self, axis: usize) -> usize {
        self.shards.iter().map(|s| s.layouts[axis - 1].max_length()).max().unwrap_or(0)
    }
}

/// Returns the number of axes after the rows: all if no columns are selected, otherwise those that
/// the selected columns and the options need.
fn count_axes(table: &RaggedTable, options: &LoaderOptions) -> usize {
    let all = table.ndim().saturating_sub(1);
    if options.columns.is_none() {
        return all;
    }
    let columns = table.columns().iter().map(Column::axis).max().unwrap_or(0);
    columns.max(options.least_depth()).min(all)
}

/// Selects the columns that the options request. Returns an error if a shard has no axes, or has
/// scalars (see [`RaggedTable::scalars`]).
fn select_shards<'a>(
    tables: &'a [RaggedTable],
    options: &LoaderOptions,
) -> Result<Vec<Cow<'a, RaggedTable>>> {
    let selected = select_columns(tables, options)?;
    for (i, table) in selected.iter().enumerate() {
        let shard = format!("shard {i} of a loader");
        table.check_no_scalars(&shard)?;
        if table.ndim() == 0 {
            return Err(Error::invalid(format!(
                "{shard} has no axes, but batches consist of rows; unsqueeze the table to make it one row"
            )));
        }
    }
    Ok(selected)
}

fn select_columns<'a>(
    tables: &'a [RaggedTable],
    options: &LoaderOptions,
) -> Result<Vec<Cow<'a, RaggedTable>>> {
    let Some(names) = &options.columns else {
        return Ok(tables.iter().map(Cow::Borrowed).collect());
    };
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let selected = tables.iter().enumerate().map(|(i, table)| {
        table.select(&names).map(Cow::Owned).map_err(|e| match e {
            Error::NoSuchColumn { name, available } if tables.len() > 1 => Error::invalid(format!(
                "shard {i} has no column {name:?}; choose one of its columns: {available}"
            )),
            e => e,
        })
    });
    selected.collect()
}

/// Returns an error if the axes or columns of a shard differ from those of the first shard.
fn check_shard(
    first: &RaggedTable,
    first_depth: usize,
    table: &RaggedTable,
    depth: usize,
    shard: usize,
) -> Result<()> {
    if first_depth != depth {
        return Err(Error::invalid(format!(
            "shard {shard} has {} axes, rows included, but shard 0 has {}; give shards with \
             the same number of axes",
            depth + 1,
            first_depth + 1
        )));
    }
    let missing = |of: &RaggedTable, from: &RaggedTable| {
        of.columns().iter().find(|c| from.column(c.name()).is_err()).map(|c| c.name().to_owned())
    };
    for (lacks, column, has) in
        [(shard, missing(first, table), 0), (0, missing(table, first), shard)]
    {
        if let Some(name) = column {
            return Err(Error::invalid(format!(
                "shard {lacks} lacks the column {name:?} that shard {has} has; select columns that \
                 all shards have"
            )));
        }
    }
    for column in first.columns() {
        let axis = table.column(column.name())?.axis();
        if axis != column.axis() {
            return Err(Error::invalid(format!(
                "column {:?} is on axis {} in shard 0 but on axis {axis} in shard {shard}; give it the same axis in all shards, or select only the other columns",
                column.name(),
                column.axis()
            )));
        }
    }
    Ok(())
}

/// Determines how batches hold a column: its element type, which all shards have or are converted
/// to, and its padding. Returns an error if the types of the shards have no common type, tensors
/// cannot hold the type, or the padding does not fit it.
fn unify_column(
    first: &Column,
    tables: &[Cow<'_, RaggedTable>],
    options: &LoaderOptions,
) -> Result<SourceColumn> {
    let name = first.name();
    let what = format!("column {name:?}");
    let mut target: DataType = first.data_type().clone();
    let mut nulls = false;
    // If `tokens_as_i64` is set and all shards have integers in the column, batches hold them as
    // int64.
    let mut integers = options.tokens_as_i64;
    for table in tables {
        let dtype = DType::from_arrow(table.column(name)?.data_type());
        integers &= dtype.is_some_and(DType::is_integer);
    }
    for (i, table) in tables.iter().enumerate() {
        let column = table.column(name)?;
        nulls |= column.values().null_count() > 0;
        let found = column.data_type();
        if *found == target || integers {
            continue;
        }
        // Numbers of different types are converted to a common type; other differences are an
        // error.
        target = promote_types(&target, found)
            .filter(|t| [&target, found, t].into_iter().all(|t| DType::from_arrow(t).is_some()))
            .ok_or_else(|| {
                Error::type_of(
                    format!("{what} of shard {i}"),
                    format!(
                        "{target}, as in the earlier shards, or numbers that have a common type with {target} (cast the column first)"
                    ),
                    found,
                )
            })?;
    }
    let mut dtype = DType::of_leaves(&target, &what)?;
    if options.tokens_as_i64 && dtype.is_integer() {
        dtype = DType::I64;
    }
    let own = options.fills.iter().rev().find(|(column, _)| column == name).map(|(_, fill)| *fill);
    let fill = own.or(options.fill).unwrap_or(Fill::Bool(false));
    let fill = fill.to_tensor(dtype).map_err(|e| Error::invalid(format!("{what}: {e}")))?;
    let mut bytes = [0; 8];
    bytes[..dtype.size()].copy_from_slice(fill.as_bytes());
    let (name, axis) = (name.into(), first.axis());
    let (fill, null) = (bytes, bytes);
    Ok(SourceColumn { name, axis, dtype, fill, null, nulls, finite: false, fact: None })
}

impl SourceShard {
    fn new(table: &RaggedTable, depth: usize, columns: &[SourceColumn]) -> Result<Self> {
        let values = columns
            .iter()
            .map(|c| ColumnValues::new(table.column(&c.name)?, c.dtype))
            .collect::<Result<_>>()?;
        let layouts = table.axes().iter().take(depth).map(|a| a.layout().clone()).collect();
        Ok(Self { rows: table.num_rows(), layouts, values, timeline: None })
    }
}

impl ColumnValues {
    pub(super) fn new(column: &Column, dtype: DType) -> Result<Self> {
        let what = format!("column {:?}", column.name());
        let array = column.values();
        let (cells, stored) = match array.as_boolean_opt() {
            Some(b) => (ColumnCells::Bits(b.values().clone()), DType::Bool),
            None => {
                let flat = DenseTensor::from_flat(array.as_ref(), &what)?;
                (ColumnCells::Bytes(flat.buffer().clone()), flat.dtype())
            }
        };
        let convert = if stored == dtype {
            None
        } else {
            let convert = find_converter(stored, dtype);
            Some(convert.ok_or_else(|| {
                Error::type_of(
                    what,
                    format!("a number type that converts to {dtype} (cast the column)"),
                    array.data_type(),
                )
            })?)
        };
        let nulls = array.nulls().filter(|n| n.null_count() > 0).cloned();
        Ok(Self { cells, nulls, stored: stored.size(), size: dtype.size(), convert })
    }

    /// Returns the leaves `range` as bytes in the type that batches use, with `fill` in place of
    /// nulls. Returns `None` if a valid leaf is out of the range of this type. Copies leaves only
    /// if they are booleans, are converted, or have nulls.
    pub(super) fn read_value_bytes<'a>(
        &'a self,
        range: Range<usize>,
        fill: &[u8; 8],
        scratch: &'a mut RowScratch,
    ) -> Option<&'a [u8]> {
        let stored: &[u8] = match &self.cells {
            ColumnCells::Bytes(b) => {
                &b.as_slice()[range.start * self.stored..range.end * self.stored]
            }
            ColumnCells::Bits(bits) => unpack_bits(bits, range.clone(), &mut scratch.bits),
        };
        let nulls = self.nulls.as_ref().map(|n| n.slice(range.start, range.len()));
        let nulls = nulls.filter(|n| n.null_count() > 0);
        if self.convert.is_none() && nulls.is_none() {
            return Some(stored);
        }
        let out = resize_buffer(&mut scratch.values, range.len() * self.size);
        let mut fits = true;
        match self.convert {
            None => out.copy_from_slice(stored),
            Some(convert) => fits = convert(stored, out),
        }
        if let Some(nulls) = &nulls {
            if !fits {
                // The conversion of all slots has failed. Convert only valid slots again: the value
                // of a null slot may be out of range, and is overwritten below.
                fits = self.convert.is_none_or(|convert| {
                    nulls.valid_indices().all(|i| {
                        let (from, to) = (i * self.stored, i * self.size);
                        convert(&stored[from..from + self.stored], &mut out[to..to + self.size])
                    })
                });
            }
            for i in (0..nulls.len()).filter(|i| nulls.is_null(*i)) {
                out[i * self.size..(i + 1) * self.size].copy_from_slice(&fill[..self.size]);
            }
        }
        fits.then_some(out)
    }

    pub(super) fn read_validity<'a>(
        &self,
        range: Range<usize>,
        scratch: &'a mut RowScratch,
    ) -> &'a [u8] {
        match &self.nulls {
            Some(nulls) => unpack_bits(nulls.inner(), range, &mut scratch.bits),
            None => {
                let out = resize_buffer(&mut scratch.bits, range.len());
                out.fill(1);
                out
            }
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct RowScratch {
    bits: Vec<u8>,
    values: Vec<u8>,
}

/// Returns the first `len` bytes of a buffer, with unspecified content; grows a buffer that is
/// shorter.
pub(super) fn resize_buffer(bytes: &mut Vec<u8>, len: usize) -> &mut [u8] {
    if bytes.len() < len {
        bytes.resize(len, 0);
    }
    &mut bytes[..len]
}

fn unpack_bits<'a>(bits: &BooleanBuffer, range: Range<usize>, out: &'a mut Vec<u8>) -> &'a [u8] {
    let out = resize_buffer(out, range.len());
    crate::dense::unpack_bits(&bits.slice(range.start, range.len()), out);
    out
}

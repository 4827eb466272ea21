//! What batches are made from: shards of one schema, their columns ready to be copied from.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, AsArray};
use arrow::buffer::{BooleanBuffer, Buffer, NullBuffer};
use arrow::datatypes::DataType;

use super::convert::{Convert, converter};
use super::facts::{Facts, Prefix};
use super::options::LoaderOptions;
use super::timeline::Timeline;
use crate::array::Layout;
use crate::dense::{DType, DenseTensor, Fill};
use crate::error::{Error, Result};
use crate::table::{Column, RaggedTable, promote_types};

/// Shards one after the other.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) columns: Vec<SourceColumn>,
    pub(super) shards: Vec<Shard>,
    /// Rows before each shard, and in the end all of them.
    firsts: Vec<usize>,
    /// Number of axes, rows included: all of them, or those that the options have a use for when they
    /// name the columns.
    pub(super) ndim: usize,
    /// Static facts of the rows.
    pub(super) facts: Option<Box<Facts>>,
}

/// A column as batches hold it.
#[derive(Debug)]
pub(super) struct SourceColumn {
    pub(super) name: Arc<str>,
    pub(super) axis: usize,
    pub(super) dtype: DType,
    /// Bytes of one element of padding, in the first places.
    pub(super) fill: [u8; 8],
    /// The same of what null leaves become.
    pub(super) null: [u8; 8],
    /// Whether some shard has null leaves.
    pub(super) nulls: bool,
    /// Whether only finite numbers are written: 0 for NaN, the largest and the smallest for infinities
    /// (float32 alone).
    pub(super) finite: bool,
    /// The column of the facts that stands before it, where facts are put before the values.
    pub(super) fact: Option<usize>,
}

/// One shard: how its axes are divided, and its columns in the order of [`Source::columns`].
#[derive(Debug)]
pub(super) struct Shard {
    pub(super) rows: usize,
    pub(super) layouts: Vec<Layout>,
    pub(super) values: Vec<Values>,
    /// The events that the elements of axis 1 were divided into before they became one list.
    pub(super) timeline: Option<Timeline>,
}

/// The leaves of a column in one shard.
#[derive(Debug)]
pub(super) struct Values {
    cells: Cells,
    nulls: Option<NullBuffer>,
    /// Bytes of an element as stored and as written.
    stored: usize,
    size: usize,
    convert: Option<Convert>,
}

#[derive(Debug)]
enum Cells {
    /// Numbers, in place.
    Bytes(Buffer),
    /// Booleans.
    Bits(BooleanBuffer),
}

impl Source {
    pub(super) fn new(tables: &[RaggedTable], options: &LoaderOptions) -> Result<Self> {
        let selected = select(tables, options)?;
        let [first, rest @ ..] = selected.as_slice() else {
            return Err(Error::invalid("a loader needs one shard at least"));
        };
        let depth = depth(first, options);
        for (i, table) in rest.iter().enumerate() {
            check(first, depth, table, self::depth(table, options), i + 1)?;
        }
        if options.sizes.len() > depth {
            return Err(Error::invalid(format!(
                "{} sizes for {depth} axes after the rows; leave the last out",
                options.sizes.len()
            )));
        }
        let columns = first
            .columns()
            .iter()
            .map(|c| unify(c, &selected, options))
            .collect::<Result<Vec<_>>>()?;
        for (name, _) in &options.fills {
            first.column(name)?;
        }
        let shards =
            selected.iter().map(|t| Shard::new(t, depth, &columns)).collect::<Result<Vec<_>>>()?;
        let mut firsts = vec![0];
        for shard in &shards {
            let end = firsts[firsts.len() - 1] + shard.rows;
            firsts.push(end);
        }
        Ok(Self { columns, shards, firsts, ndim: depth + 1, facts: None })
    }

    /// Rows of all shards.
    pub(super) fn rows(&self) -> usize {
        self.firsts.last().copied().unwrap_or(0)
    }

    /// Shard of a row, and the row in it.
    pub(super) fn locate(&self, row: usize) -> (usize, usize) {
        // The last shard that starts at the row or before; empty shards come before it.
        let shard = self.firsts.partition_point(|first| *first <= row).saturating_sub(1);
        (shard, row - self.firsts[shard])
    }

    /// Elements of axis 1 of a row; none in a table of flat columns.
    pub(super) fn len(&self, row: usize) -> usize {
        let (shard, row) = self.locate(row);
        self.shards[shard].layouts.first().map_or(0, |l| l.length(row))
    }

    /// Elements of axis 1 that are put before a window of a row.
    pub(super) fn before(&self, row: usize) -> usize {
        if self.facts.is_none() {
            return 0;
        }
        let (shard, row) = self.locate(row);
        self.prefix(shard, row).elements
    }

    /// What is put before a window of a row of a shard.
    pub(super) fn prefix(&self, shard: usize, row: usize) -> Prefix {
        self.facts.as_ref().map_or_else(Prefix::default, |facts| facts.prefix(shard, row))
    }

    /// Calls `f` with the length of every row, in order.
    pub(super) fn for_each_len(&self, mut f: impl FnMut(usize)) {
        for shard in &self.shards {
            match shard.layouts.first() {
                Some(layout) => (0..shard.rows).for_each(|row| f(layout.length(row))),
                None => (0..shard.rows).for_each(|_| f(0)),
            }
        }
    }

    /// Length of the longest list on an axis (1..) of any shard.
    pub(super) fn longest(&self, axis: usize) -> usize {
        self.shards.iter().map(|s| s.layouts[axis - 1].max_length()).max().unwrap_or(0)
    }
}

/// Number of axes after the rows that batches of a shard are made from, as far as it has them: all
/// of them, or with named columns those that the columns are on and the options speak of.
fn depth(table: &RaggedTable, options: &LoaderOptions) -> usize {
    let all = table.ndim().saturating_sub(1);
    if options.columns.is_none() {
        return all;
    }
    let columns = table.columns().iter().map(Column::axis).max().unwrap_or(0);
    columns.max(options.least_depth()).min(all)
}

/// The shards with the columns asked for.
fn select<'a>(
    tables: &'a [RaggedTable],
    options: &LoaderOptions,
) -> Result<Vec<Cow<'a, RaggedTable>>> {
    let selected = select_columns(tables, options)?;
    for (i, table) in selected.iter().enumerate() {
        let shard = format!("shard {i} of a loader");
        table.refuse_scalars(&shard)?;
        if table.ndim() == 0 {
            return Err(Error::invalid(format!(
                "{shard} has no axis 0, and batches are made of rows; unsqueeze it to make a row of \
                 it"
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
                "shard {i}: no column {name:?}; the columns are {available}"
            )),
            e => e,
        })
    });
    selected.collect()
}

/// Refuses a shard that has other axes or columns than the first.
fn check(
    first: &RaggedTable,
    first_depth: usize,
    table: &RaggedTable,
    depth: usize,
    shard: usize,
) -> Result<()> {
    if first_depth != depth {
        return Err(Error::invalid(format!(
            "shard {shard} has {} axes, the rows included, but shard 0 has {}; shards must be \
             equally deep",
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
                "shard {lacks} lacks the column {name:?} that shard {has} has; name the columns to \
                 take"
            )));
        }
    }
    for column in first.columns() {
        let axis = table.column(column.name())?.axis();
        if axis != column.axis() {
            return Err(Error::invalid(format!(
                "column {:?} is on axis {} in shard 0 but on axis {axis} in shard {shard}",
                column.name(),
                column.axis()
            )));
        }
    }
    Ok(())
}

/// The type and padding of a column over all shards.
fn unify(
    first: &Column,
    tables: &[Cow<'_, RaggedTable>],
    options: &LoaderOptions,
) -> Result<SourceColumn> {
    let name = first.name();
    let what = format!("column {name:?}");
    let mut target: DataType = first.data_type().clone();
    let mut nulls = false;
    // Integers that become int64 need no other type in common.
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
        // Numbers widen while they are copied; whatever else differs is for the caller to settle.
        target = promote_types(&target, found)
            .filter(|t| [&target, found, t].into_iter().all(|t| DType::from_arrow(t).is_some()))
            .ok_or_else(|| {
                Error::type_of(
                    format!("{what} of shard {i}"),
                    format!("{target} as in the shards before, or a number that goes with it"),
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

impl Shard {
    fn new(table: &RaggedTable, depth: usize, columns: &[SourceColumn]) -> Result<Self> {
        let values = columns
            .iter()
            .map(|c| Values::new(table.column(&c.name)?, c.dtype))
            .collect::<Result<_>>()?;
        let layouts = table.axes().iter().take(depth).map(|a| a.layout().clone()).collect();
        Ok(Self { rows: table.num_rows(), layouts, values, timeline: None })
    }
}

impl Values {
    pub(super) fn new(column: &Column, dtype: DType) -> Result<Self> {
        let what = format!("column {:?}", column.name());
        let array = column.values();
        let (cells, stored) = match array.as_boolean_opt() {
            Some(b) => (Cells::Bits(b.values().clone()), DType::Bool),
            None => {
                let flat = DenseTensor::from_flat(array.as_ref(), &what)?;
                (Cells::Bytes(flat.buffer().clone()), flat.dtype())
            }
        };
        let convert = if stored == dtype {
            None
        } else {
            let convert = converter(stored, dtype);
            Some(convert.ok_or_else(|| {
                Error::type_of(what, format!("a number that becomes {dtype}"), array.data_type())
            })?)
        };
        let nulls = array.nulls().filter(|n| n.null_count() > 0).cloned();
        Ok(Self { cells, nulls, stored: stored.size(), size: dtype.size(), convert })
    }

    /// The leaves `range` as bytes of the type that batches have: in place, or in `scratch` when
    /// they are booleans, of another type, or some are null (those are `fill`).
    ///
    /// `None` when a value does not fit the type.
    pub(super) fn bytes<'a>(
        &'a self,
        range: Range<usize>,
        fill: &[u8; 8],
        scratch: &'a mut Scratch,
    ) -> Option<&'a [u8]> {
        let stored: &[u8] = match &self.cells {
            Cells::Bytes(b) => &b.as_slice()[range.start * self.stored..range.end * self.stored],
            Cells::Bits(bits) => unpack(bits, range.clone(), &mut scratch.bits),
        };
        let nulls = self.nulls.as_ref().map(|n| n.slice(range.start, range.len()));
        let nulls = nulls.filter(|n| n.null_count() > 0);
        if self.convert.is_none() && nulls.is_none() {
            return Some(stored);
        }
        let out = sized(&mut scratch.values, range.len() * self.size);
        let mut fits = true;
        match self.convert {
            None => out.copy_from_slice(stored),
            Some(convert) => fits = convert(stored, out),
        }
        if let Some(nulls) = &nulls {
            if !fits {
                // What is hidden under a null need not fit: one by one.
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

    /// One byte per leaf of `range`: 1 where it is not null.
    pub(super) fn validity<'a>(&self, range: Range<usize>, scratch: &'a mut Scratch) -> &'a [u8] {
        match &self.nulls {
            Some(nulls) => unpack(nulls.inner(), range, &mut scratch.bits),
            None => {
                let out = sized(&mut scratch.bits, range.len());
                out.fill(1);
                out
            }
        }
    }
}

/// Memory for leaves on their way, used again for every row.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    bits: Vec<u8>,
    values: Vec<u8>,
}

/// `len` bytes of any content.
pub(super) fn sized(bytes: &mut Vec<u8>, len: usize) -> &mut [u8] {
    if bytes.len() < len {
        bytes.resize(len, 0);
    }
    &mut bytes[..len]
}

/// One byte per bit.
fn unpack<'a>(bits: &BooleanBuffer, range: Range<usize>, out: &'a mut Vec<u8>) -> &'a [u8] {
    let out = sized(out, range.len());
    crate::dense::unpack(&bits.slice(range.start, range.len()), out);
    out
}

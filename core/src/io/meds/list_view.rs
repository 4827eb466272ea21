//! A lazy list column of an [`AsOf`]: only [`AsOfRanges::gather_lists`] copies values.

#![cfg_attr(
    not(feature = "sql"),
    allow(dead_code, reason = "only queries use more than `AsOf::last`")
)]

use std::ops::Range;
use std::sync::Arc;

use arrow::array::{Array, ArrayRef, Int64Array};

use super::asof::AsOf;
use super::shard::MedsShard;
use crate::array::ranges::gather_parts;
use crate::array::{Layout, ListAxis, Offsets, RaggedArray};
use crate::error::{Error, Result};
use crate::table::{Column, RaggedTable};

/// A list column of the tables in an [`AsOf`], and the steps that derive each label's list from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AsOfView {
    /// Whether the column is one of the static facts; if false, it is one of the events.
    pub statics: bool,
    /// Name of the column in its table.
    pub column: String,
    /// Steps to apply to the list of each label, in this order.
    pub steps: Vec<AsOfViewStep>,
}

/// A step of an [`AsOfView`]: it slices or flattens the list of each label, without a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AsOfViewStep {
    /// Selects the elements `start:stop` of the list of each label, like a Python slice.
    Slice(Option<i64>, Option<i64>),
    /// Flattens the nested lists of each label into one list of leaves.
    Flatten,
}

impl AsOfView {
    /// Returns the view with one more step.
    pub fn add_step(&self, step: AsOfViewStep) -> Self {
        let mut view = self.clone();
        view.steps.push(step);
        view
    }

    /// Finds the column in all shards of `rows`.
    ///
    /// Returns an error if a shard lacks the column, or if the column does not have 1 or 2 levels
    /// of lists. Copies no values; [`AsOfRanges::gather_lists`] copies them.
    pub fn of<'a>(&'a self, rows: &'a AsOf) -> Result<AsOfRanges<'a>> {
        let shards = rows
            .shards()
            .iter()
            .map(|shard| {
                let table = if self.statics { &shard.statics } else { &shard.events };
                ShardColumn::find_column(table, &self.column)
            })
            .collect::<Result<_>>()?;
        Ok(AsOfRanges { view: self, rows, shards })
    }
}

struct ShardColumn<'a> {
    outer: &'a Layout,
    inner: Option<&'a Layout>,
    values: &'a ArrayRef,
}

impl<'a> ShardColumn<'a> {
    fn find_column(table: &'a RaggedTable, name: &str) -> Result<Self> {
        let column = table.column(name)?;
        let outer = table.layout(1)?;
        let inner = match column.axis() {
            1 => None,
            2 => Some(table.layout(2)?),
            axis => {
                return Err(Error::invalid(format!(
                    "column {name:?} has {axis} levels of lists per row; choose a column with 1 or 2 levels"
                )));
            }
        };
        Ok(Self { outer, inner, values: column.values() })
    }
}

/// The list of one label in a shard. `range` is the range of its elements. If these are lists,
/// `inner` has the layout of all such lists of the shard. If they are leaves, `inner` is `None`;
/// they always are after [`AsOfViewStep::Flatten`].
struct ListSpan<'a> {
    shard: usize,
    range: Range<usize>,
    inner: Option<&'a Layout>,
}

impl ListSpan<'_> {
    fn leaves(&self) -> Range<usize> {
        match self.inner {
            Some(inner) => inner.ranges(self.range.clone()),
            None => self.range.clone(),
        }
    }
}

/// The column of an [`AsOfView`] in all shards. A label's list is a range of the column in one
/// shard.
pub struct AsOfRanges<'a> {
    view: &'a AsOfView,
    rows: &'a AsOf,
    shards: Vec<ShardColumn<'a>>,
}

impl<'a> AsOfRanges<'a> {
    fn find_span(&self, label: usize) -> ListSpan<'a> {
        let place = self.rows.locate_label(label);
        let shard = place.shard as usize;
        let lists = &self.shards[shard];
        let whole = lists.outer.range(place.row as usize);
        let range = match self.view.statics {
            true => whole,
            false => whole.start..whole.start + place.events as usize,
        };
        let mut span = ListSpan { shard, range, inner: lists.inner };
        for step in &self.view.steps {
            match step {
                AsOfViewStep::Flatten => {
                    span.range = span.leaves();
                    span.inner = None;
                }
                AsOfViewStep::Slice(start, stop) => {
                    let part = clip_slice(span.range.len(), *start, *stop);
                    span.range = span.range.start + part.start..span.range.start + part.end;
                }
            }
        }
        span
    }

    /// Returns the number of leaves in the list of label `label`, after all steps of the view.
    pub fn leaves(&self, label: usize) -> usize {
        self.find_span(label).leaves().len()
    }

    /// Returns an array with one row for each of `labels`: a copy of the label's list after all
    /// steps of the view. Returns an error if the data set has no shard.
    pub fn gather_lists(&self, labels: &[usize]) -> Result<RaggedArray> {
        let Some(first) = self.shards.first() else {
            return Err(Error::invalid(
                "the MEDS data set has no shard (a .parquet file in data/), so no row can be returned; add a shard",
            ));
        };
        let deep = first.inner.is_some() && !self.view.steps.contains(&AsOfViewStep::Flatten);
        let mut lengths = Vec::with_capacity(labels.len());
        let mut below = Vec::new();
        let mut parts = Vec::with_capacity(labels.len());
        for label in labels {
            let span = self.find_span(*label);
            lengths.push(span.range.len());
            if let Some(inner) = span.inner {
                below.extend(span.range.clone().map(|i| inner.length(i)));
            }
            parts.push((span.shard, span.leaves()));
        }
        let mut axes: Vec<ListAxis> = vec![Offsets::from_lengths(lengths)?.into()];
        if deep {
            axes.push(Offsets::from_lengths(below)?.into());
        }
        let arrays: Vec<&ArrayRef> = self.shards.iter().map(|s| s.values).collect();
        RaggedArray::try_new(labels.len(), axes, gather_parts(&arrays, &parts)?)
    }

    /// Returns the number of elements in the list of each of `labels`, after all steps of the view.
    pub fn lengths(&self, labels: &[usize]) -> ArrayRef {
        self.map_spans(labels, |span| span.range.len())
    }

    /// Returns the number of non-NULL leaves in each label's list, after all steps of the view.
    pub fn counts(&self, labels: &[usize]) -> ArrayRef {
        self.map_spans(labels, |span| {
            let leaves = span.leaves();
            let nulls = self.shards[span.shard].values.nulls().filter(|n| n.null_count() > 0);
            let missing = nulls.map_or(0, |n| n.slice(leaves.start, leaves.len()).null_count());
            leaves.len() - missing
        })
    }

    fn map_spans(&self, labels: &[usize], number: impl Fn(&ListSpan<'_>) -> usize) -> ArrayRef {
        let numbers = labels.iter().map(|label| number(&self.find_span(*label)));
        Arc::new(Int64Array::from_iter_values(
            numbers.map(|n| i64::try_from(n).unwrap_or(i64::MAX)),
        ))
    }
}

impl AsOf {
    /// Returns the last `most` elements of a list column (of events or static facts) for a range of
    /// label indices, one row per label.
    ///
    /// Copies only these elements.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// use serrate::io::meds::{AsOf, Labels, MedsDataset};
    /// # let data = MedsDataset::open("../tests/data/synthea-meds")?;
    /// # let shards = data.shards().map(|shard| shard.read(&Default::default()));
    /// # let shards = shards.collect::<Result<_, _>>()?;
    /// # let labels = Labels::read("../tests/data/synthea-meds/labels")?;
    /// let rows = AsOf::try_new(shards, &labels)?;
    /// let codes = rows.last("code", 2, 100..110)?; // of the last two events
    /// assert!(codes.lengths(1)?.iter().all(|events| *events <= 2));
    /// assert_eq!(rows.last("code", 0, 0..3)?.lengths(1)?, [0, 0, 0]);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    ///
    /// # Errors
    /// If a label does not exist, or there is no list column with this name.
    pub fn last(&self, column: &str, most: usize, labels: Range<usize>) -> Result<RaggedArray> {
        if let Some(last) = labels.clone().last() {
            self.num_events(last)?;
        }
        let find_axis = |table: fn(&MedsShard) -> &RaggedTable| {
            let has = |s| table(s).column(column).ok().filter(|c| c.axis() > 0).map(Column::axis);
            self.shards().iter().find_map(has)
        };
        let statics = find_axis(|s| &s.events).is_none() && find_axis(|s| &s.statics).is_some();
        let start = i64::try_from(most).map_or(i64::MIN, |n| -n);
        // A slice from `-most` on would select everything if `most` is 0, because `-0` is 0.
        let step = match most {
            0 => AsOfViewStep::Slice(None, Some(0)),
            _ => AsOfViewStep::Slice(Some(start), None),
        };
        let view = AsOfView { statics, column: column.to_owned(), steps: vec![step] };
        let labels: Vec<usize> = labels.collect();
        view.of(self)?.gather_lists(&labels)
    }
}

/// Maximum size of a range that [`divide_labels`] returns.
#[derive(Clone, Copy, Debug)]
pub struct AsOfBatchLimits {
    /// Maximum number of labels in a range.
    pub labels: usize,
    /// Maximum number of leaves in the lists of the labels of a range, summed over all views. A
    /// single label may have more.
    pub leaves: usize,
}

/// Divides the labels `0..labels` into ranges that keep to `limits`.
pub fn divide_labels(
    views: &[AsOfRanges<'_>],
    labels: usize,
    limits: AsOfBatchLimits,
) -> Vec<Range<usize>> {
    let mut out = Vec::new();
    let (mut start, mut sum) = (0, 0usize);
    for label in 0..labels {
        let own = views.iter().fold(0usize, |sum, v| sum.saturating_add(v.leaves(label)));
        sum = sum.saturating_add(own);
        if label > start && (sum > limits.leaves || label - start >= limits.labels) {
            out.push(start..label);
            (start, sum) = (label, own);
        }
    }
    if start < labels {
        out.push(start..labels);
    }
    out
}

/// Returns the positions of `start:stop` by Python's rules: `-2:` of 5 elements is `3..5`.
fn clip_slice(len: usize, start: Option<i64>, stop: Option<i64>) -> Range<usize> {
    let place = |at: Option<i64>, default: usize| match at {
        None => default,
        Some(at) => {
            let back = usize::try_from(at.unsigned_abs()).unwrap_or(usize::MAX);
            if at < 0 { len.saturating_sub(back) } else { back.min(len) }
        }
    };
    let (start, stop) = (place(start, 0), place(stop, len));
    start..stop.max(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_clipped_as_in_python() {
        for (len, start, stop, expected) in [
            (5, None, None, 0..5),
            (5, Some(-2), None, 3..5),
            (5, Some(-9), None, 0..5),
            (5, None, Some(-1), 0..4),
            (5, None, Some(9), 0..5),
            (5, Some(4), Some(2), 4..4),
            (5, Some(i64::MIN), Some(i64::MAX), 0..5),
            (5, Some(i64::MAX), None, 5..5),
            (0, Some(-1), Some(1), 0..0),
        ] {
            assert_eq!(clip_slice(len, start, stop), expected, "[{start:?}:{stop:?}] of {len}");
        }
    }
}

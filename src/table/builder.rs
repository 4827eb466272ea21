//! Tables from flat Rust values and lengths, offsets or bounds.

use std::sync::Arc;

use arrow::array::{Array, ArrayRef};

use super::{Column, RaggedTable};
use crate::array::{Layout, Offsets};
use crate::error::Result;

/// Collects axes (outermost first) and columns; [`build`](Self::build) checks everything.
///
/// The number of rows is that of the first axis, else the length of the first column on axis 0,
/// unless [`rows`](Self::rows) says it.
#[derive(Debug, Default)]
pub struct RaggedTableBuilder {
    rows: Option<usize>,
    names: Vec<Arc<str>>,
    layouts: Vec<Layout>,
    columns: Vec<Column>,
}

impl RaggedTableBuilder {
    /// Sets the number of rows.
    pub fn rows(mut self, rows: usize) -> Self {
        self.rows = Some(rows);
        self
    }

    /// Names the axes, rows first.
    pub fn names<S: AsRef<str>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.names = names.into_iter().map(|n| n.as_ref().into()).collect();
        self
    }

    /// The next axis, from the length of every list on it.
    pub fn lengths(mut self, lengths: impl IntoIterator<Item = usize>) -> Result<Self> {
        self.layouts.push(Offsets::from_lengths(lengths)?.into());
        Ok(self)
    }

    /// The next axis, from offsets.
    pub fn offsets(mut self, offsets: Offsets) -> Self {
        self.layouts.push(offsets.into());
        self
    }

    /// The next axis, from the cumulative ends an `.nrt` file stores (no leading zero).
    pub fn bounds(mut self, bounds: impl IntoIterator<Item = i64>) -> Result<Self> {
        let what = format!("dim{}/bounds", self.layouts.len() + 1);
        self.layouts.push(Offsets::from_bounds(bounds, &what)?.into());
        Ok(self)
    }

    /// The next axis, from a layout (a uniform one, for instance).
    pub fn layout(mut self, layout: Layout) -> Self {
        self.layouts.push(layout);
        self
    }

    /// A column of flat values on axis `axis`.
    pub fn column(self, name: impl Into<String>, axis: usize, values: ArrayRef) -> Self {
        self.push(Column::new(name, axis, values))
    }

    /// A column made beforehand.
    pub fn push(mut self, column: Column) -> Self {
        self.columns.push(column);
        self
    }

    /// The table, or the first thing wrong with it.
    pub fn build(self) -> Result<RaggedTable> {
        let rows = self
            .rows
            .or_else(|| self.layouts.first().map(Layout::lists))
            .or_else(|| self.columns.iter().find(|c| c.axis() == 0).map(|c| c.values().len()))
            .unwrap_or(0);
        let axes = self.layouts.into_iter().map(|l| (None, l)).collect();
        RaggedTable::try_new(rows, None, axes, self.columns)?.with_axis_names(self.names)
    }
}

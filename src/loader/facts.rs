//! [`Facts`]: what holds of a row without being one of its events.

use super::source::Source;

/// Static facts of the rows of a [`Source`]: on an axis of their own over the same rows, shard by shard.
#[derive(Debug)]
pub(super) struct Facts {
    /// Shards of one axis after the rows.
    pub(super) source: Source,
    /// Whether and how facts are put before the elements of a window.
    pub(super) place: Place,
}

/// Where facts are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// In tensors of their own.
    Beside,
    /// Before the elements of axis 1, the first ones up to a number.
    Elements(usize),
    /// One element of axis 1, whose list on axis 2 they are.
    List,
}

/// What is put before the window of one row.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Prefix {
    /// Elements of axis 1.
    pub(super) elements: usize,
    /// Elements of axis 2, where they are one list there.
    pub(super) list: Option<usize>,
}

impl Facts {
    pub(super) fn prefix(&self, shard: usize, row: usize) -> Prefix {
        let facts = || self.source.shards[shard].layouts[0].length(row);
        match self.place {
            Place::Beside => Prefix::default(),
            Place::Elements(most) => Prefix { elements: facts().min(most), list: None },
            Place::List => Prefix { elements: 1, list: Some(facts()) },
        }
    }
}

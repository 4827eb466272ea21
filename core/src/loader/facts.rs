//! Places for facts about a row that are not events.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FactsPlace {
    /// In tensors of their own.
    Beside,
    /// Before the elements of axis 1, at most this many.
    Elements(usize),
    /// In one leading element of axis 1, as its list on axis 2.
    List,
}

/// The facts in front of the window of one row.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Prefix {
    pub(super) elements: usize,
    /// Elements of axis 2, if facts are one list there.
    pub(super) list: Option<usize>,
}

//! Storage of facts in a batch. A fact is a value of a row (a patient) that belongs to no event.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FactsPlace {
    /// The facts are in separate tensors.
    Beside,
    /// At most this many facts of a row are prepended to its elements of axis 1, one element per
    /// fact.
    Elements(usize),
    /// One element that holds all facts is prepended to axis 1 of a row. The facts are the list of
    /// this element on axis 2.
    List,
}

#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FactsPrefix {
    pub(super) elements: usize,
    /// For [`FactsPlace::List`], the number of facts in the list that is prepended to a row; `None`
    /// for the other variants.
    pub(super) list: Option<usize>,
}

//! Converts an index to one [`AxisItem`] per axis: broadcasts arrays to one length, and omits new
//! axes.

use crate::error::{Error, Result};
use crate::index::{Index, list_true_positions};

/// Axes that an index adds to the result: the common axis of its index arrays, and its new axes.
#[derive(Debug)]
pub(super) struct AddedAxes {
    /// Whether other items separate the arrays, as in `[0, 1], :, [2, 3]`. The common axis of the
    /// arrays is then the first axis of the result, as in NumPy.
    pub(super) are_separated: bool,
    /// Axes of the result that the index adds with [`Index::NewAxis`], ascending.
    pub(super) new_axes: Vec<i64>,
}

impl AddedAxes {
    pub(super) fn from_items(items: &[Index]) -> Self {
        let array = |i: &Index| matches!(i, Index::Array(_) | Index::Mask(_));
        let any = items.iter().any(array);
        // If the index has an array, each integer in the index counts as an array of one element.
        let advanced = |i: &Index| any && (array(i) || matches!(i, Index::At(_)));
        let first = items.iter().position(advanced).unwrap_or(0);
        let last = items.iter().rposition(advanced).map_or(0, |l| l + 1);
        let are_separated = any && !items[first..last].iter().all(advanced);
        let mut axis = i64::from(are_separated);
        let mut seen = are_separated;
        let mut new_axes = Vec::new();
        for item in items {
            match item {
                Index::NewAxis => {
                    new_axes.push(axis);
                    axis += 1;
                }
                Index::Slice { .. } => axis += 1,
                item if array(item) && !seen => {
                    seen = true;
                    axis += 1;
                }
                _ => {}
            }
        }
        Self { are_separated, new_axes }
    }
}

#[derive(Clone, Debug)]
pub(super) enum AxisItem {
    /// A slice as start, stop and step; `None` for a whole axis.
    Slice(Option<(Option<i64>, Option<i64>, i64)>),
    At(AxisPick),
    /// An array of indices, or the positions at which a mask is true.
    Picks(AxisPick),
}

#[derive(Clone, Debug)]
pub(super) struct AxisPick {
    pub(super) positions: Vec<i64>,
    /// Length of the mask that gave the indices, if any; every list must have this length.
    pub(super) length: Option<usize>,
}

impl AxisItem {
    pub(super) fn count(&self) -> Option<usize> {
        match self {
            Self::Picks(p) => Some(p.positions.len()),
            _ => None,
        }
    }

    /// Keeps only index `j` of an index array, or selects a null if it has no index `j`.
    pub(super) fn select_element(&self, j: usize) -> Self {
        match self {
            Self::Picks(p) => {
                let positions = p.positions.get(j).copied().into_iter().collect();
                Self::At(AxisPick { positions, length: p.length })
            }
            other => other.clone(),
        }
    }
}

pub(super) fn prepare_items(index: &[Index]) -> Result<Vec<AxisItem>> {
    let mut items = Vec::with_capacity(index.len());
    for item in index {
        items.push(match item {
            Index::Rest | Index::NewAxis => continue,
            all if *all == Index::ALL => AxisItem::Slice(None),
            Index::Slice { start, stop, step } => {
                AxisItem::Slice(Some((*start, *stop, step.unwrap_or(1))))
            }
            Index::At(i) => AxisItem::At(AxisPick { positions: vec![*i], length: None }),
            Index::Array(a) => {
                AxisItem::Picks(AxisPick { positions: a.as_flat()?.to_vec(), length: None })
            }
            Index::Mask(m) => {
                let mask = m.as_flat()?;
                AxisItem::Picks(AxisPick {
                    positions: list_true_positions(mask),
                    length: Some(mask.len()),
                })
            }
        });
    }
    let counts: Vec<usize> = items.iter().filter_map(AxisItem::count).collect();
    let common = counts.iter().copied().find(|n| *n != 1).or(counts.first().copied());
    if let Some(common) = common {
        if counts.iter().any(|n| *n != 1 && *n != common) {
            return Err(Error::invalid(format!(
                "index arrays of lengths {counts:?} cannot be broadcast together; use arrays of equal length or of length 1"
            )));
        }
        for item in &mut items {
            if let AxisItem::Picks(p) = item
                && p.positions.len() != common
                && let [one] = p.positions[..]
            {
                p.positions = vec![one; common];
            }
        }
    }
    Ok(items)
}

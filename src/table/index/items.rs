//! The items of an index made ready: one per axis, arrays of one length, new axes apart.

use crate::error::{Error, Result};
use crate::index::{Index, positions_of};

/// Where axes of the result come from.
#[derive(Debug)]
pub(super) struct Arrangement {
    /// The arrays have something between them: their axis comes first.
    pub(super) apart: bool,
    /// Where new axes are in the result, ascending.
    pub(super) new_axes: Vec<i64>,
}

impl Arrangement {
    pub(super) fn of(items: &[Index]) -> Self {
        let array = |i: &Index| matches!(i, Index::Array(_) | Index::Mask(_));
        let any = items.iter().any(array);
        // An integer beside an array is an array of one element.
        let advanced = |i: &Index| any && (array(i) || matches!(i, Index::At(_)));
        let first = items.iter().position(advanced).unwrap_or(0);
        let last = items.iter().rposition(advanced).map_or(0, |l| l + 1);
        let apart = any && !items[first..last].iter().all(advanced);
        let mut axis = i64::from(apart);
        let mut seen = apart;
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
        Self { apart, new_axes }
    }
}

/// An item for one axis, arrays made equally long.
#[derive(Clone, Debug)]
pub(super) enum Item {
    /// `None` for a whole axis.
    Slice(Option<(Option<i64>, Option<i64>, i64)>),
    At(Pick),
    /// Of all arrays.
    Picks(Pick),
}

/// Positions along one axis.
#[derive(Clone, Debug)]
pub(super) struct Pick {
    pub(super) positions: Vec<i64>,
    /// How long a list must be: a mask is as long as what it masks.
    pub(super) length: Option<usize>,
}

impl Item {
    pub(super) fn count(&self) -> Option<usize> {
        match self {
            Self::Picks(p) => Some(p.positions.len()),
            _ => None,
        }
    }

    /// The item for element `j` of the arrays; arrays without elements pick a null.
    pub(super) fn only(&self, j: usize) -> Self {
        match self {
            Self::Picks(p) => {
                let positions = p.positions.get(j).copied().into_iter().collect();
                Self::At(Pick { positions, length: p.length })
            }
            other => other.clone(),
        }
    }
}

pub(super) fn items(index: &[Index]) -> Result<Vec<Item>> {
    let mut items = Vec::with_capacity(index.len());
    for item in index {
        items.push(match item {
            Index::Rest | Index::NewAxis => continue,
            all if *all == Index::ALL => Item::Slice(None),
            Index::Slice { start, stop, step } => {
                Item::Slice(Some((*start, *stop, step.unwrap_or(1))))
            }
            Index::At(i) => Item::At(Pick { positions: vec![*i], length: None }),
            Index::Array(a) => Item::Picks(Pick { positions: a.flat()?.to_vec(), length: None }),
            Index::Mask(m) => {
                let mask = m.flat()?;
                Item::Picks(Pick { positions: positions_of(mask), length: Some(mask.len()) })
            }
        });
    }
    let counts: Vec<usize> = items.iter().filter_map(Item::count).collect();
    let common = counts.iter().copied().find(|n| *n != 1).or(counts.first().copied());
    if let Some(common) = common {
        if counts.iter().any(|n| *n != 1 && *n != common) {
            return Err(Error::invalid(format!(
                "index arrays of lengths {counts:?} do not go together; they need one length"
            )));
        }
        for item in &mut items {
            if let Item::Picks(p) = item
                && p.positions.len() != common
                && let [one] = p.positions[..]
            {
                p.positions = vec![one; common];
            }
        }
    }
    Ok(items)
}

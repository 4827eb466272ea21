//! Builds Arrow lists from Parquet's repetition and definition levels.

use std::sync::Arc;

use arrow::array::{ArrayRef, GenericListArray, OffsetSizeTrait};
use arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{DataType, FieldRef};

use super::bitmap::{BitmapBuilder, count_ones, extract_bits, find_lowest_bit, make_low_mask};
use super::column_shape::{ColumnShape, ListLevel};
use super::hybrid::DecodeFault;
use super::level_window::{LevelWindow, make_low_definition_error};
use crate::array::list_kind;
use crate::error::{Error, Result};

#[derive(Debug)]
struct LevelBuilder {
    level: ListLevel,
    starts: ListStarts,
    present: BitmapBuilder,
}

/// For each list of a level, the index of its first element among those of all lists.
#[derive(Debug)]
enum ListStarts {
    Narrow(Vec<i32>),
    Wide(Vec<i64>),
}

impl ListStarts {
    fn len(&self) -> usize {
        match self {
            Self::Narrow(v) => v.len(),
            Self::Wide(v) => v.len(),
        }
    }

    /// Appends a start; returns false, without appending, if the start does not fit the offset
    /// type.
    #[inline(always)]
    fn push(&mut self, start: usize) -> bool {
        match self {
            Self::Narrow(v) => i32::try_from(start).map(|s| v.push(s)).is_ok(),
            Self::Wide(v) => i64::try_from(start).map(|s| v.push(s)).is_ok(),
        }
    }
}

#[derive(Debug)]
pub(super) struct ListsBuilder {
    levels: Vec<LevelBuilder>,
    /// Validity of the values; unused if the column cannot have nulls.
    valid: BitmapBuilder,
    slots: usize,
    nullable: bool,
    /// Number of levels, from the outermost, whose current list has elements.
    filled: usize,
}

impl ListsBuilder {
    pub(super) fn new(shape: &ColumnShape) -> Self {
        let level = |level: &ListLevel| LevelBuilder {
            level: *level,
            starts: if level.large {
                ListStarts::Wide(Vec::new())
            } else {
                ListStarts::Narrow(Vec::new())
            },
            present: BitmapBuilder::default(),
        };
        Self {
            levels: shape.lists.iter().map(level).collect(),
            valid: BitmapBuilder::default(),
            slots: 0,
            nullable: shape.nullable,
            filled: 0,
        }
    }

    pub(super) fn slots(&self) -> usize {
        self.slots
    }

    pub(super) fn valid(&self) -> Option<&BitmapBuilder> {
        self.nullable.then_some(&self.valid)
    }

    /// Appends the entries of `window` that `now` selects: bit `i` is for entry `64 * word + i`.
    #[inline(always)]
    pub(super) fn append_levels(
        &mut self,
        window: &LevelWindow,
        word: usize,
        now: u64,
    ) -> Result<(), DecodeFault> {
        let slots = window.slots[word] & now;
        if !self.levels.is_empty() {
            let mut begun = window.begun[word] & now;
            // An entry that continues a list needs a previous entry with an element of this list.
            // For the first entry of the word, `filled` tells whether there is one.
            let goes_on = now & !begun;
            let without = begun & !slots;
            let cut = self.filled < self.levels.len() && goes_on & now.wrapping_neg() != 0;
            if (without << 1) & goes_on != 0 || cut {
                return Err(make_missing_element_error());
            }
            while begun != 0 {
                let i = find_lowest_bit(begun);
                begun &= begun - 1;
                let (rep, def) = window.read_levels(word, i);
                self.start_lists(rep, def, self.slots + count_ones(slots & make_low_mask(i)))?;
            }
        }
        let n = count_ones(slots);
        if self.nullable {
            let valid = window.valid[word];
            let valid = if slots == u64::MAX { valid } else { extract_bits(valid, slots) };
            self.valid.append_bits(valid, n);
        }
        self.slots += n;
        Ok(())
    }

    /// Starts the lists that an entry begins: one at depth `rep` and, while the new list has
    /// elements, one inside it. `slots` is the number of values before the entry.
    #[inline(always)]
    fn start_lists(&mut self, rep: u8, def: u8, slots: usize) -> Result<(), DecodeFault> {
        let outer = usize::from(rep);
        if outer > self.filled {
            return Err(make_missing_element_error());
        }
        if let Some(level) = self.levels.get_mut(outer..)
            && let [level] = level
            && def >= level.level.filled
        {
            // The common case: an innermost list with elements.
            if level.level.nullable {
                level.present.append_bits(1, 1);
            }
            self.filled = outer + 1;
            return if level.starts.push(slots) { Ok(()) } else { Err(make_list_limit_error()) };
        }
        if outer > 0 && def < self.levels[outer - 1].level.filled {
            return Err(make_low_definition_error());
        }
        for l in outer..self.levels.len() {
            let below = match self.levels.get(l + 1) {
                Some(level) => level.starts.len(),
                None => slots,
            };
            let level = &mut self.levels[l];
            if !level.starts.push(below) {
                return Err(make_list_limit_error());
            }
            if level.level.nullable {
                level.present.append_bits(u64::from(def >= level.level.present), 1);
            }
            self.filled = l;
            if def < level.level.filled {
                break;
            }
            self.filled = l + 1;
        }
        Ok(())
    }

    pub(super) fn finish(
        self,
        data_type: &DataType,
        leaves: impl FnOnce(&DataType, Option<NullBuffer>) -> Result<ArrayRef>,
    ) -> Result<ArrayRef> {
        let mut items: Vec<&FieldRef> = Vec::with_capacity(self.levels.len());
        let mut inner = data_type;
        while let (true, Some((_, item))) = (items.len() < self.levels.len(), list_kind(inner)) {
            items.push(item);
            inner = item.data_type();
        }
        let nulls = if self.nullable { self.valid.into_nulls() } else { None };
        let mut array = leaves(inner, nulls)?;
        for (level, item) in self.levels.into_iter().zip(items).rev() {
            let nulls = if level.level.nullable { level.present.into_nulls() } else { None };
            array = match level.starts {
                ListStarts::Narrow(v) => {
                    build_list_array(v, i32::try_from(array.len()).ok(), item, array, nulls)?
                }
                ListStarts::Wide(v) => {
                    build_list_array(v, i64::try_from(array.len()).ok(), item, array, nulls)?
                }
            };
        }
        Ok(array)
    }
}

#[cold]
fn make_missing_element_error() -> DecodeFault {
    DecodeFault::new(
        "a null or empty list continues with an element, so the file is damaged; create it again",
    )
}

#[cold]
fn make_list_limit_error() -> DecodeFault {
    DecodeFault::new(
        "the lists have more than 2^31 - 1 elements, the maximum; read fewer rows at a time",
    )
}

fn build_list_array<O: OffsetSizeTrait>(
    mut starts: Vec<O>,
    end: Option<O>,
    item: &FieldRef,
    values: ArrayRef,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let Some(end) = end else {
        return Err(Error::invalid(format!(
            "the lists have {} elements, more than the maximum of 2^31 - 1; read fewer rows at a time",
            values.len()
        )));
    };
    starts.push(end);
    let offsets = OffsetBuffer::new(ScalarBuffer::from(starts));
    Ok(Arc::new(GenericListArray::try_new(Arc::clone(item), offsets, values, nulls)?))
}

//! Repetition and definition levels to lists.

use std::sync::Arc;

use arrow::array::{ArrayRef, GenericListArray, OffsetSizeTrait};
use arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{DataType, FieldRef};

use super::bits::{Bits, compress, first, low, ones};
use super::hybrid::Fault;
use super::shape::{ListLevel, Shape};
use super::window::Window;
use crate::array::list_kind;
use crate::error::{Error, Result};

/// The lists of one level so far.
#[derive(Debug)]
struct Level {
    level: ListLevel,
    starts: Starts,
    present: Bits,
}

/// Where each list begins in the level below, which is counted from zero.
#[derive(Debug)]
enum Starts {
    Narrow(Vec<i32>),
    Wide(Vec<i64>),
}

impl Starts {
    fn len(&self) -> usize {
        match self {
            Self::Narrow(v) => v.len(),
            Self::Wide(v) => v.len(),
        }
    }

    /// Whether there was room for the number.
    #[inline(always)]
    fn push(&mut self, start: usize) -> bool {
        match self {
            Self::Narrow(v) => i32::try_from(start).map(|s| v.push(s)).is_ok(),
            Self::Wide(v) => i64::try_from(start).map(|s| v.push(s)).is_ok(),
        }
    }
}

/// Lists that are put together entry by entry.
#[derive(Debug)]
pub(super) struct Lists {
    levels: Vec<Level>,
    /// Validity of the values; unused where none may be null.
    valid: Bits,
    slots: usize,
    nullable: bool,
    /// Levels, from the outermost, whose list at hand has elements.
    filled: usize,
}

impl Lists {
    pub(super) fn new(shape: &Shape) -> Self {
        let level = |level: &ListLevel| Level {
            level: *level,
            starts: if level.large { Starts::Wide(Vec::new()) } else { Starts::Narrow(Vec::new()) },
            present: Bits::default(),
        };
        Self {
            levels: shape.lists.iter().map(level).collect(),
            valid: Bits::default(),
            slots: 0,
            nullable: shape.nullable,
            filled: 0,
        }
    }

    /// Values so far, null ones included.
    pub(super) fn slots(&self) -> usize {
        self.slots
    }

    /// Validity of the values; `None` where the column cannot have nulls.
    pub(super) fn valid(&self) -> Option<&Bits> {
        self.nullable.then_some(&self.valid)
    }

    /// Appends those entries of a word of a window whose bits are set in `now`.
    #[inline(always)]
    pub(super) fn append(&mut self, window: &Window, word: usize, now: u64) -> Result<(), Fault> {
        let slots = window.slots[word] & now;
        if !self.levels.is_empty() {
            let mut begun = window.begun[word] & now;
            // Entries of one row are next to each other; a row that was cut goes on with the first one.
            let goes_on = now & !begun;
            let without = begun & !slots;
            let cut = self.filled < self.levels.len() && goes_on & now.wrapping_neg() != 0;
            if (without << 1) & goes_on != 0 || cut {
                return Err(no_elements());
            }
            while begun != 0 {
                let i = first(begun);
                begun &= begun - 1;
                let (rep, def) = window.levels(word, i);
                self.begin(rep, def, self.slots + ones(slots & low(i)))?;
            }
        }
        let n = ones(slots);
        if self.nullable {
            let valid = window.valid[word];
            let valid = if slots == u64::MAX { valid } else { compress(valid, slots) };
            self.valid.append(valid, n);
        }
        self.slots += n;
        Ok(())
    }

    /// An entry that begins lists, the outermost of level `rep`, before value number `slots`.
    #[inline(always)]
    fn begin(&mut self, rep: u8, def: u8, slots: usize) -> Result<(), Fault> {
        let outer = usize::from(rep);
        if outer > self.filled {
            return Err(no_elements());
        }
        if let Some(level) = self.levels.get_mut(outer..)
            && let [level] = level
            && def >= level.level.filled
        {
            // An innermost list with elements: most of them.
            if level.level.nullable {
                level.present.append(1, 1);
            }
            self.filled = outer + 1;
            return if level.starts.push(slots) { Ok(()) } else { Err(too_many()) };
        }
        if outer > 0 && def < self.levels[outer - 1].level.filled {
            return Err(Fault::new("a list goes on with an entry that is no element"));
        }
        for l in outer..self.levels.len() {
            let below = match self.levels.get(l + 1) {
                Some(level) => level.starts.len(),
                None => slots,
            };
            let level = &mut self.levels[l];
            if !level.starts.push(below) {
                return Err(too_many());
            }
            if level.level.nullable {
                level.present.append(u64::from(def >= level.level.present), 1);
            }
            self.filled = l;
            if def < level.level.filled {
                break;
            }
            self.filled = l + 1;
        }
        Ok(())
    }

    /// The lists around the values that `leaves` makes of their validity, as `data_type`.
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
                Starts::Narrow(v) => close(v, i32::try_from(array.len()).ok(), item, array, nulls)?,
                Starts::Wide(v) => close(v, i64::try_from(array.len()).ok(), item, array, nulls)?,
            };
        }
        Ok(array)
    }
}

#[cold]
fn no_elements() -> Fault {
    Fault::new("a list that is null or empty goes on with an element")
}

#[cold]
fn too_many() -> Fault {
    Fault::new("lists of more than 2^31 - 1 elements: read fewer rows at a time")
}

fn close<O: OffsetSizeTrait>(
    mut starts: Vec<O>,
    end: Option<O>,
    item: &FieldRef,
    values: ArrayRef,
    nulls: Option<NullBuffer>,
) -> Result<ArrayRef> {
    let Some(end) = end else {
        return Err(Error::invalid(format!(
            "lists of {} elements: at most 2^31 - 1; read fewer rows at a time",
            values.len()
        )));
    };
    starts.push(end);
    let offsets = OffsetBuffer::new(ScalarBuffer::from(starts));
    Ok(Arc::new(GenericListArray::try_new(Arc::clone(item), offsets, values, nulls)?))
}

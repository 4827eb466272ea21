//! Repetition and definition levels to lists.

use std::sync::Arc;

use arrow::array::{ArrayRef, GenericListArray, OffsetSizeTrait};
use arrow::buffer::{NullBuffer, OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{DataType, FieldRef};

use super::bits::{Bits, compress, first, low, ones};
use super::hybrid::{Fault, Planes};
use super::shape::{ListLevel, Shape};
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

/// Up to 64 entries of a column: one per value, null, and list without elements.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Block {
    pub(super) rep: Planes,
    pub(super) def: Planes,
    pub(super) n: usize,
}

impl Block {
    /// Entries with which a row begins.
    #[inline(always)]
    pub(super) fn rows(&self) -> u64 {
        !self.rep.at_least(1) & low(self.n)
    }

    /// The first `n` entries, and the rest.
    #[inline(always)]
    pub(super) fn split(self, n: usize) -> (Self, Self) {
        let rest = Self { rep: self.rep.skip(n), def: self.def.skip(n), n: self.n - n };
        (Self { n, ..self }, rest)
    }

    /// Entries with a value that is not null.
    #[inline(always)]
    pub(super) fn values(&self, shape: &Shape) -> u64 {
        self.def.at_least(shape.max_def) & low(self.n)
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
    max_def: u8,
    max_rep: u8,
    slot: u8,
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
            max_def: shape.max_def,
            max_rep: shape.max_rep,
            slot: shape.slot(),
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

    /// Appends the entries of a block.
    #[inline]
    pub(super) fn append(&mut self, block: &Block) -> Result<(), Fault> {
        let all = low(block.n);
        let slots = block.def.at_least(self.slot) & all;
        let within = block.rep.at_least(self.max_rep) & all;
        // Nothing above the largest levels, which may be all that their bits can say.
        if block.def.at_least((self.max_def + 1).min(15)) & all != 0 && self.max_def < 15
            || block.rep.at_least(self.max_rep + 1) & all != 0
        {
            return Err(self.too_large(block));
        }
        if self.max_rep > 0 {
            if within & !slots != 0 {
                return Err(Fault::new("a list goes on with an entry that is no element"));
            }
            let mut begun = all & !within;
            while begun != 0 {
                let i = first(begun);
                begun &= begun - 1;
                let before = ones(slots & low(i));
                self.begin(block.rep.get(i), block.def.get(i), self.slots + before)?;
            }
        }
        let n = ones(slots);
        if self.nullable {
            let valid = block.def.at_least(self.max_def) & all;
            let valid = if slots == all { valid } else { compress(valid, slots) };
            self.valid.append(valid, n);
        }
        self.slots += n;
        Ok(())
    }

    /// An entry that begins lists, the outermost of level `rep`, before value number `slots`.
    #[inline(always)]
    fn begin(&mut self, rep: u8, def: u8, slots: usize) -> Result<(), Fault> {
        let outer = usize::from(rep);
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
                return Err(Fault::new(
                    "lists of more than 2^31 - 1 elements: read fewer rows at a time",
                ));
            }
            if level.level.nullable {
                level.present.append(u64::from(def >= level.level.present), 1);
            }
            if def < level.level.filled {
                break;
            }
        }
        Ok(())
    }

    #[cold]
    fn too_large(&self, block: &Block) -> Fault {
        let largest = |planes: &Planes| (0..block.n).map(|i| planes.get(i)).max().unwrap_or(0);
        let (rep, def) = (largest(&block.rep), largest(&block.def));
        Fault::new(format!(
            "repetition level {rep} and definition level {def}, where the schema has levels up to {} and {}",
            self.max_rep, self.max_def
        ))
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

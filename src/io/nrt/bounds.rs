//! Bounds in a file: single ones by index, ranges of them as offsets.

use std::ops::Range;

use arrow::buffer::{OffsetBuffer, ScalarBuffer};
use safetensors::Dtype;

use crate::array::Offsets;
use crate::error::{Error, Result};
use crate::io::safetensors::{SafetensorsFile, TensorEntry};

/// One axis of a file: its bounds, which stay in the file, and how many elements they divide.
#[derive(Clone, Debug)]
pub(super) struct FileAxis {
    /// The tensor of the bounds.
    pub(super) tensor: TensorEntry,
    /// Number of lists: the length of the parent axis.
    pub(super) lists: usize,
    /// Number of elements: what the last bound has to be.
    pub(super) elements: usize,
}

/// Whether bounds may have this type.
pub(super) fn is_integer(dtype: Dtype) -> bool {
    matches!(
        dtype,
        Dtype::U8
            | Dtype::U16
            | Dtype::U32
            | Dtype::U64
            | Dtype::I8
            | Dtype::I16
            | Dtype::I32
            | Dtype::I64
    )
}

/// Runs `$body` with `$T` bound to the Rust type of the bounds.
macro_rules! with_integer {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            Dtype::U8 => {
                type $T = u8;
                $body
            }
            Dtype::U16 => {
                type $T = u16;
                $body
            }
            Dtype::U32 => {
                type $T = u32;
                $body
            }
            Dtype::U64 => {
                type $T = u64;
                $body
            }
            Dtype::I8 => {
                type $T = i8;
                $body
            }
            Dtype::I16 => {
                type $T = i16;
                $body
            }
            Dtype::I32 => {
                type $T = i32;
                $body
            }
            // Others were refused when the file was opened.
            _ => {
                type $T = i64;
                $body
            }
        }
    };
}

/// An integer as bounds store it.
trait Stored: Sized + Copy {
    fn read(bytes: &[u8]) -> Option<i64>;
}

macro_rules! stored {
    ($($t:ty),*) => {$(
        impl Stored for $t {
            #[inline(always)]
            fn read(bytes: &[u8]) -> Option<i64> {
                let value = <$t>::from_le_bytes(*bytes.first_chunk()?);
                i64::try_from(value).ok()
            }
        }
    )*};
}
stored!(u8, u16, u32, u64, i8, i16, i32, i64);

/// The single bound of a tensor at `index`, without looking at any other.
pub(super) fn bound_at(
    file: &SafetensorsFile,
    tensor: &TensorEntry,
    index: usize,
) -> Result<usize> {
    let range = tensor.element_bytes(file.path(), index..index.saturating_add(1))?;
    let bytes = file.source().read(range)?;
    let value = with_integer!(tensor.dtype(), T => T::read(&bytes));
    value
        .and_then(|v| usize::try_from(v).ok())
        .ok_or_else(|| wrong(file, tensor, index, "it is negative or does not fit 63 bits".into()))
}

fn wrong(file: &SafetensorsFile, tensor: &TensorEntry, index: usize, message: String) -> Error {
    Error::file(file.path(), format!("{}[{index}]: {message}", tensor.name()))
}

impl FileAxis {
    /// Where list `list` starts on this axis: the bound before it. Only that one is read and checked
    /// against the number of elements.
    pub(super) fn start_of(&self, file: &SafetensorsFile, list: usize) -> Result<usize> {
        let Some(index) = list.checked_sub(1) else { return Ok(0) };
        let bound = bound_at(file, &self.tensor, index)?;
        if bound > self.elements {
            let message = format!("{bound} is more than the {} values of its axis", self.elements);
            return Err(wrong(file, &self.tensor, index, message));
        }
        Ok(bound)
    }

    /// The elements that the lists `lists` hold: where the first one starts and where the last one
    /// ends; of no lists, where the list after them starts. Two bounds are read.
    #[cfg(feature = "object_store")]
    pub(super) fn window(
        &self,
        file: &SafetensorsFile,
        lists: Range<usize>,
    ) -> Result<Range<usize>> {
        let elements = self.start_of(file, lists.start)?..self.start_of(file, lists.end)?;
        if elements.start > elements.end {
            // A bound decreases; this says which.
            return self.offsets(file, lists, true).map(|(_, elements)| elements);
        }
        Ok(elements)
    }

    /// Offsets of the lists `lists`, counted from the first one's start, and the elements they hold.
    ///
    /// Every bound of the lists is read and checked, and the one before them; with the last list of
    /// the axis, also that the bounds end where the values do.
    pub(super) fn offsets(
        &self,
        file: &SafetensorsFile,
        lists: Range<usize>,
        large: bool,
    ) -> Result<(Offsets, Range<usize>)> {
        if lists.is_empty() {
            let offsets = if large {
                Offsets::I64(OffsetBuffer::new_empty())
            } else {
                Offsets::I32(OffsetBuffer::new_empty())
            };
            return Ok((offsets, 0..0));
        }
        let before = lists.start.min(1);
        let from = lists.start.saturating_sub(before);
        let range = self.tensor.element_bytes(file.path(), from..lists.end)?;
        let bytes = file.source().read(range)?;
        let found = Stretch { file, axis: self, from, bytes: &bytes, before };
        let (offsets, elements) =
            with_integer!(self.tensor.dtype(), T => found.offsets::<T>(large))?;
        if lists.end == self.lists && elements.end != self.elements {
            return Err(wrong(
                file,
                &self.tensor,
                lists.end.saturating_sub(1),
                format!(
                    "the last bound is {}, but its axis has {} values",
                    elements.end, self.elements
                ),
            ));
        }
        Ok((offsets, elements))
    }
}

/// Bounds as read, the first of them possibly the one before the lists asked for.
struct Stretch<'a> {
    file: &'a SafetensorsFile,
    axis: &'a FileAxis,
    /// Index of the first one.
    from: usize,
    bytes: &'a [u8],
    /// 1 when the first one is where the lists start, 0 when they start at 0.
    before: usize,
}

impl Stretch<'_> {
    fn offsets<T: Stored>(&self, large: bool) -> Result<(Offsets, Range<usize>)> {
        let bounds = || self.bytes.chunks_exact(size_of::<T>()).map(T::read);
        let base = if self.before == 0 { Some(0) } else { bounds().next().flatten() };
        let last = bounds().next_back().flatten();
        let limit = i64::try_from(self.axis.elements).unwrap_or(i64::MAX);
        // Whatever is wrong with any of them is found in order, so that the first is named.
        let (Some(base), Some(last)) = (base, last) else { return Err(self.first_wrong::<T>()) };
        let Some(total) = last.checked_sub(base).filter(|n| base >= 0 && *n >= 0 && last <= limit)
        else {
            return Err(self.first_wrong::<T>());
        };
        let narrow = i32::try_from(total).ok();
        if narrow.is_none() && !large {
            return Err(Error::file(
                self.file.path(),
                format!(
                    "{}: {total} values at once do not fit the 32-bit offsets of List; read fewer rows at a time or ask for large lists",
                    self.axis.tensor.name()
                ),
            ));
        }
        let lists = bounds().skip(self.before);
        let offsets = if large {
            collect(lists, base, total, |v| v).map(|o| Offsets::I64(OffsetBuffer::new(o)))
        } else {
            // All are between 0 and the total, which fits.
            let convert = |v| i32::try_from(v).unwrap_or(i32::MAX);
            collect(lists, base, total, convert).map(|o| Offsets::I32(OffsetBuffer::new(o)))
        };
        let offsets = offsets.ok_or_else(|| self.first_wrong::<T>())?;
        match (usize::try_from(base), usize::try_from(last)) {
            (Ok(base), Ok(last)) => Ok((offsets, base..last)),
            _ => Err(self.first_wrong::<T>()),
        }
    }

    /// The error for the first bound that is wrong; only called when one is.
    #[cold]
    fn first_wrong<T: Stored>(&self) -> Error {
        let mut previous = 0i64;
        let limit = i64::try_from(self.axis.elements).unwrap_or(i64::MAX);
        for (i, value) in self.bytes.chunks_exact(size_of::<T>()).map(T::read).enumerate() {
            let message = match value {
                None => "it does not fit 63 bits".to_owned(),
                Some(v) if v < 0 => format!("{v} is negative"),
                Some(v) if v < previous => {
                    format!("{v} comes after {previous}; bounds may not decrease")
                }
                Some(v) if v > limit => {
                    format!("{v} is more than the {limit} values of its axis")
                }
                Some(v) => {
                    previous = v;
                    continue;
                }
            };
            return wrong(self.file, &self.axis.tensor, self.from.saturating_add(i), message);
        }
        Error::file(
            self.file.path(),
            format!("{} changed while it was read", self.axis.tensor.name()),
        )
    }
}

/// A zero, then every bound less `base`; `None` when one decreases or is outside `0..=total`.
fn collect<N: arrow::datatypes::ArrowNativeType>(
    bounds: impl ExactSizeIterator<Item = Option<i64>>,
    base: i64,
    total: i64,
    convert: impl Fn(i64) -> N,
) -> Option<ScalarBuffer<N>> {
    let mut offsets = Vec::with_capacity(bounds.len().saturating_add(1));
    offsets.push(convert(0));
    let (mut previous, mut good) = (0i64, true);
    // Bounds that cannot be read count as -1, which is wrong in every place.
    offsets.extend(bounds.map(|v| {
        let offset = v.unwrap_or(-1).wrapping_sub(base);
        good &= offset >= previous && offset <= total;
        previous = offset;
        convert(offset)
    }));
    good.then(|| offsets.into())
}

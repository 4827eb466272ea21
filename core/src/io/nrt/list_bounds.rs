//! Reads bounds (the end offsets of lists): one bound by index, or a range of bounds as Arrow
//! offsets.

use std::ops::Range;

use arrow::buffer::{OffsetBuffer, ScalarBuffer};
use safetensors::Dtype;

use crate::array::Offsets;
use crate::error::{Error, Result};
use crate::io::safetensors::{SafetensorsFile, TensorEntry};

#[derive(Clone, Debug)]
pub(super) struct FileAxis {
    pub(super) tensor: TensorEntry,
    /// Number of lists, which is the length of the parent axis.
    pub(super) lists: usize,
    /// Number of elements, which the last bound must equal.
    pub(super) elements: usize,
}

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

/// Evaluates `$body` with `$T` as the Rust type of bounds that have the type `$dtype` in the file.
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
            // I64 is the only type left: files with bounds of other types cannot be opened.
            _ => {
                type $T = i64;
                $body
            }
        }
    };
}

trait BoundInt: Sized + Copy {
    fn read(bytes: &[u8]) -> Option<i64>;
}

macro_rules! impl_bound_int {
    ($($t:ty),*) => {$(
        impl BoundInt for $t {
            #[inline(always)]
            fn read(bytes: &[u8]) -> Option<i64> {
                let value = <$t>::from_le_bytes(*bytes.first_chunk()?);
                i64::try_from(value).ok()
            }
        }
    )*};
}
impl_bound_int!(u8, u16, u32, u64, i8, i16, i32, i64);

pub(super) fn read_bound_at(
    file: &SafetensorsFile,
    tensor: &TensorEntry,
    index: usize,
) -> Result<usize> {
    let range = tensor.element_bytes(file.path(), index..index.saturating_add(1))?;
    let bytes = file.source().read(range)?;
    let value = with_integer!(tensor.dtype(), T => T::read(&bytes));
    value.and_then(|v| usize::try_from(v).ok()).ok_or_else(|| {
        make_bound_error(
            file,
            tensor,
            index,
            "the bound is negative or does not fit 63 bits, so the file is damaged; create it again"
                .into(),
        )
    })
}

fn make_bound_error(
    file: &SafetensorsFile,
    tensor: &TensorEntry,
    index: usize,
    message: String,
) -> Error {
    Error::file(file.path(), format!("{}[{index}]: {message}", tensor.name()))
}

impl FileAxis {
    /// Returns 0 for the first list, else the bound of the previous list, read and checked.
    pub(super) fn find_list_start(&self, file: &SafetensorsFile, list: usize) -> Result<usize> {
        let Some(index) = list.checked_sub(1) else { return Ok(0) };
        let bound = read_bound_at(file, &self.tensor, index)?;
        if bound > self.elements {
            let message = format!(
                "the bound {bound} exceeds {}, the number of values of its axis, so the file is damaged; create it again",
                self.elements
            );
            return Err(make_bound_error(file, &self.tensor, index, message));
        }
        Ok(bound)
    }

    /// Returns the range of the elements of `lists`. Reads only two bounds: the end of the list
    /// before `lists`, and the end of the last list.
    #[cfg(feature = "object_store")]
    pub(super) fn read_window(
        &self,
        file: &SafetensorsFile,
        lists: Range<usize>,
    ) -> Result<Range<usize>> {
        let elements =
            self.find_list_start(file, lists.start)?..self.find_list_start(file, lists.end)?;
        if elements.start > elements.end {
            // A bound decreases, so `offsets` returns an error that names the first wrong bound.
            return self.offsets(file, lists, true).map(|(_, elements)| elements);
        }
        Ok(elements)
    }

    /// Returns the Arrow offsets of `lists`, which begin with 0, and the range of the elements of
    /// `lists` in the file. The file stores one bound per list: the index at which its elements end
    /// and those of the next list begin. Checks the bounds of `lists` and the bound of the list
    /// before them and, if the last list of the axis is among `lists`, that its bound is the
    /// element count.
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
        let range = BoundsRange { file, axis: self, from, bytes: &bytes, before };
        let (offsets, elements) =
            with_integer!(self.tensor.dtype(), T => range.offsets::<T>(large))?;
        if lists.end == self.lists && elements.end != self.elements {
            return Err(make_bound_error(
                file,
                &self.tensor,
                lists.end.saturating_sub(1),
                format!(
                    "the last bound of the lists is {}, but their axis has {} element(s), so the file is damaged; create it again",
                    elements.end, self.elements
                ),
            ));
        }
        Ok((offsets, elements))
    }
}

/// Stored bounds of the requested lists, preceded by the bound of the list before them, if any.
struct BoundsRange<'a> {
    file: &'a SafetensorsFile,
    axis: &'a FileAxis,
    /// Index, among all bounds of the axis, of the first bound in `bytes`.
    from: usize,
    bytes: &'a [u8],
    /// 1 if `bytes` begins with the bound of the list before the requested lists, otherwise 0.
    before: usize,
}

impl BoundsRange<'_> {
    fn offsets<T: BoundInt>(&self, large: bool) -> Result<(Offsets, Range<usize>)> {
        let bounds = || self.bytes.chunks_exact(size_of::<T>()).map(T::read);
        let base = if self.before == 0 { Some(0) } else { bounds().next().flatten() };
        let last = bounds().next_back().flatten();
        let limit = i64::try_from(self.axis.elements).unwrap_or(i64::MAX);
        // Unless 0 <= base <= last <= limit, some bound is invalid: the error names the first such
        // bound.
        let (Some(base), Some(last)) = (base, last) else {
            return Err(self.describe_first_wrong::<T>());
        };
        let Some(total) = last.checked_sub(base).filter(|n| base >= 0 && *n >= 0 && last <= limit)
        else {
            return Err(self.describe_first_wrong::<T>());
        };
        let narrow = i32::try_from(total).ok();
        if narrow.is_none() && !large {
            return Err(Error::file(
                self.file.path(),
                format!(
                    "{}: {total} values at once exceed the 32-bit offsets of List; read fewer rows at a time or set large_lists",
                    self.axis.tensor.name()
                ),
            ));
        }
        let lists = bounds().skip(self.before);
        let offsets = if large {
            collect_offsets(lists, base, total, |v| v).map(|o| Offsets::I64(OffsetBuffer::new(o)))
        } else {
            // `collect_offsets` rejects offsets above `total`, which fits i32: clamping is safe.
            let convert = |v| i32::try_from(v).unwrap_or(i32::MAX);
            collect_offsets(lists, base, total, convert).map(|o| Offsets::I32(OffsetBuffer::new(o)))
        };
        let offsets = offsets.ok_or_else(|| self.describe_first_wrong::<T>())?;
        match (usize::try_from(base), usize::try_from(last)) {
            (Ok(base), Ok(last)) => Ok((offsets, base..last)),
            _ => Err(self.describe_first_wrong::<T>()),
        }
    }

    /// Returns the error for the first invalid bound. The caller knows that a bound is invalid.
    #[cold]
    fn describe_first_wrong<T: BoundInt>(&self) -> Error {
        let mut previous = 0i64;
        let limit = i64::try_from(self.axis.elements).unwrap_or(i64::MAX);
        for (i, value) in self.bytes.chunks_exact(size_of::<T>()).map(T::read).enumerate() {
            let message = match value {
                None => "the bound does not fit 63 bits, so the file is damaged; create it again"
                    .to_owned(),
                Some(v) if v < 0 => {
                    format!("the bound {v} is negative, so the file is damaged; create it again")
                }
                Some(v) if v < previous => {
                    format!(
                        "the bound {v} follows {previous}; bounds must not decrease, so the file is damaged; create it again"
                    )
                }
                Some(v) if v > limit => {
                    format!(
                        "the bound {v} exceeds {limit}, the number of values of its axis, so the file is damaged; create it again"
                    )
                }
                Some(v) => {
                    previous = v;
                    continue;
                }
            };
            return make_bound_error(
                self.file,
                &self.axis.tensor,
                self.from.saturating_add(i),
                message,
            );
        }
        Error::file(
            self.file.path(),
            format!(
                "{tensor} changed while it was being read; read the file again",
                tensor = self.axis.tensor.name()
            ),
        )
    }
}

/// Returns the offsets of lists from their bounds: 0, then every bound minus `base`, the index at
/// which the first list begins. Returns `None` if the offsets descend or exceed `total`.
fn collect_offsets<N: arrow::datatypes::ArrowNativeType>(
    bounds: impl ExactSizeIterator<Item = Option<i64>>,
    base: i64,
    total: i64,
    convert: impl Fn(i64) -> N,
) -> Option<ScalarBuffer<N>> {
    let mut offsets = Vec::with_capacity(bounds.len().saturating_add(1));
    offsets.push(convert(0));
    let (mut previous, mut good) = (0i64, true);
    // A bound that does not fit 63 bits (`None`) becomes -1, which is always invalid.
    offsets.extend(bounds.map(|v| {
        let offset = v.unwrap_or(-1).wrapping_sub(base);
        good &= offset >= previous && offset <= total;
        previous = offset;
        convert(offset)
    }));
    good.then(|| offsets.into())
}

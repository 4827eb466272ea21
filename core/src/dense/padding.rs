//! [`PaddingBytes`]: what to write to the padding of a tensor.

use rayon::prelude::*;

/// Number of bytes that one parallel task writes: few enough to divide long rows evenly among
/// threads, but so many that two tasks rarely write to the same huge page.
pub(super) const TASK_BYTES: usize = 1 << 20;

#[derive(Clone, Copy)]
pub(crate) enum PaddingBytes {
    /// Leaves the padding unwritten, because the memory is already zero.
    Leave,
    /// Sets every byte of the padding to this byte; used for fill values whose bytes are all equal.
    Byte(u8),
    /// Like `Byte`, but fills groups of lists before their values are written, which is faster for
    /// many short lists.
    Ahead(u8),
    /// Repeats the fill value: the array begins with its bytes, and the number is how many they are
    /// (2, 4 or 8).
    Element([u8; 8], usize),
}

impl PaddingBytes {
    /// Returns how to write the padding if the memory has unknown contents.
    pub(crate) fn from_fill(fill: &[u8]) -> Self {
        match fill {
            [first, rest @ ..] if rest.iter().all(|b| b == first) => Self::Byte(*first),
            _ => {
                let mut bytes = [0; 8];
                let n = fill.len().min(8);
                bytes[..n].copy_from_slice(&fill[..n]);
                Self::Element(bytes, n)
            }
        }
    }

    /// Returns how to write the padding of a tensor that is mostly padding between short lists.
    pub(super) fn prefer_ahead(self) -> Self {
        match self {
            Self::Byte(b) => Self::Ahead(b),
            other => other,
        }
    }

    /// Fills a group of lists, to which values are written afterwards.
    #[inline]
    pub(super) fn fill_ahead(self, lists: &mut [u8]) {
        if let Self::Ahead(b) = self {
            lists.fill(b);
        }
    }

    /// Writes the padding of one list of a group for which [`fill_ahead`](Self::fill_ahead) was
    /// called.
    #[inline]
    pub(super) fn write_in_group(self, out: &mut [u8]) {
        if !matches!(self, Self::Leave | Self::Ahead(_)) && !out.is_empty() {
            self.write(out);
        }
    }

    #[inline]
    pub(crate) fn write(self, out: &mut [u8]) {
        fn repeat_element<const W: usize>(bytes: [u8; 8], out: &mut [u8]) {
            let Some(element) = bytes.first_chunk::<W>() else { return };
            out.as_chunks_mut::<W>().0.fill(*element);
        }
        match self {
            Self::Leave => {}
            Self::Byte(b) | Self::Ahead(b) => out.fill(b),
            Self::Element(bytes, 2) => repeat_element::<2>(bytes, out),
            Self::Element(bytes, 4) => repeat_element::<4>(bytes, out),
            Self::Element(bytes, _) => repeat_element::<8>(bytes, out),
        }
    }

    /// Writes padding like [`write`](Self::write). The threads of the current pool share the work
    /// if there is much of it.
    pub(crate) fn write_parallel(self, out: &mut [u8]) {
        if out.len() > 4 * TASK_BYTES {
            // `TASK_BYTES` is a multiple of every fill value's size, so tasks split no element.
            out.par_chunks_mut(TASK_BYTES).for_each(|out| self.write(out));
        } else {
            self.write(out);
        }
    }
}

use arrow::array::OffsetSizeTrait;
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::ArrowNativeType;

use crate::array::{Layout, ListAxis, Offsets, RaggedArray, make_lists_like};
use crate::error::Result;
use crate::with_offsets;

/// Merges all levels of lists into one level, which has one list of leaves per row. Returns `None`
/// for a flat array, which has no level of lists.
pub fn merge_all_levels(array: &RaggedArray) -> Result<Option<ListAxis>> {
    let mut levels = array.axes().iter();
    let Some(first) = levels.next() else { return Ok(None) };
    levels.try_fold(first.clone(), |outer, inner| merge_levels(&outer, inner)).map(Some)
}

pub(super) fn merge_levels(outer: &ListAxis, inner: &ListAxis) -> Result<ListAxis> {
    let layout = match (outer.layout(), inner.layout()) {
        (Layout::Uniform { size: a, lists }, Layout::Uniform { size: b, .. }) => {
            Layout::Uniform { size: a * b, lists: *lists }
        }
        (Layout::Ragged(o), Layout::Uniform { size, .. }) => {
            make_lists_like(outer.layout(), o.lengths().map(|n| n * size))?
        }
        (outer, Layout::Ragged(o)) => compose_offsets(outer, o)?,
    };
    ListAxis::try_new(layout, outer.nulls().cloned())
}

/// Merges two levels of lists into one, in which each list of `outer` has the elements of its inner
/// lists: `[[1, 2], [3]]` becomes `[1, 2, 3]`. The result has 64-bit offsets if `outer` or `inner`
/// has them.
fn compose_offsets(outer: &Layout, inner: &Offsets) -> Result<Layout> {
    fn compose_offsets<O: OffsetSizeTrait>(outer: &Layout, inner: &[O]) -> Offsets {
        let base = inner[0];
        let mut out = Vec::with_capacity(outer.lists() + 1);
        out.push(O::zero());
        match outer {
            Layout::Uniform { size, lists } => {
                out.extend((1..=*lists).map(|i| inner[i * size] - base));
            }
            Layout::Ragged(o) => with_offsets!(o, o => {
                let first = o[0].as_usize();
                out.extend(o[1..].iter().map(|x| inner[x.as_usize() - first] - base));
            }),
        }
        Offsets::from(OffsetBuffer::new(out.into()))
    }
    let offsets = with_offsets!(inner, o => compose_offsets(outer, o));
    Ok(match outer {
        Layout::Ragged(Offsets::I64(_)) => Offsets::I64(offsets.to_i64()),
        _ => offsets,
    }
    .into())
}

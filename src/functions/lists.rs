//! List levels of a type, types derived from them, and arrays broadcast to the same lists.

use std::sync::Arc;

use arrow::array::{ArrayRef, UInt64Array};
use arrow::buffer::NullBuffer;
use arrow::compute::take;
use arrow::datatypes::{DataType, Field, FieldRef};

use crate::array::{ListAxis, ListKind, RaggedArray, list_depth, list_kind};
use crate::error::Result;
use crate::kernels::gather;
use serrate_core::internal::align_arrays;

/// A nested list type, split into the kind and element field of each level, and the leaf type.
#[derive(Clone, Debug)]
pub(crate) struct NestedListType {
    levels: Vec<(ListKind, FieldRef)>,
    leaf: DataType,
}

impl NestedListType {
    /// Splits a type into its list levels and leaf type. A type that is not a list has no levels.
    pub(crate) fn from_type(data_type: &DataType) -> Self {
        let mut levels = Vec::new();
        let mut current = data_type;
        while let Some((kind, field)) = list_kind(current) {
            levels.push((kind, Arc::clone(field)));
            current = field.data_type();
        }
        Self { levels, leaf: current.clone() }
    }

    pub(crate) fn depth(&self) -> usize {
        self.levels.len()
    }

    pub(crate) fn ndim(&self) -> usize {
        self.depth() + 1
    }

    pub(crate) fn leaf(&self) -> &DataType {
        &self.leaf
    }

    /// Returns the type of lists with these levels and with leaves of the type `leaf`. Keeps the
    /// names and metadata of fields. A `FixedSizeList` becomes a `List`, and elements become
    /// nullable.
    pub(crate) fn replace_leaf(&self, leaf: DataType) -> DataType {
        wrap_levels(&self.levels, leaf)
    }

    /// Returns the list type with `List` in place of `FixedSizeList`, and with nullable elements.
    pub(crate) fn open(&self) -> DataType {
        self.replace_leaf(self.leaf.clone())
    }

    /// Returns these levels with element fields named `item`, without metadata.
    pub(crate) fn to_plain_fields(&self) -> Self {
        let plain = |f: &FieldRef| Arc::new(Field::new_list_field(f.data_type().clone(), true));
        Self {
            levels: self.levels.iter().map(|(k, f)| (*k, plain(f))).collect(),
            leaf: self.leaf.clone(),
        }
    }

    /// Returns the type of lists with these levels and with leaves of the type `leaf`. The
    /// innermost field is named `item` and has no metadata; the other fields are unchanged.
    pub(crate) fn make_plain_leaf(&self, leaf: DataType) -> DataType {
        self.wrap_outer(self.depth(), leaf)
    }

    /// Returns these levels, with a LargeList also at each level at which `other` has a LargeList.
    pub(crate) fn widen_by(&self, other: &Self) -> Self {
        let mut out = self.clone();
        for (level, (kind, _)) in out.levels.iter_mut().zip(&other.levels) {
            if *kind == ListKind::LargeList {
                level.0 = ListKind::LargeList;
            }
        }
        out
    }

    /// Returns the list type of the `n` outermost levels around `leaf`, with an innermost field
    /// `item`.
    pub(crate) fn wrap_outer(&self, n: usize, leaf: DataType) -> DataType {
        let mut levels = self.levels[..n.min(self.depth())].to_vec();
        if let Some((_, field)) = levels.last_mut() {
            *field = Arc::new(Field::new_list_field(leaf.clone(), true));
        }
        wrap_levels(&levels, leaf)
    }

    /// Returns the list type with leaves of the type `leaf` and without the level at index `drop`
    /// (0 is outermost). The level above `drop`, if there is one, gets the elements of the removed
    /// level, and becomes a LargeList if the removed level is one.
    pub(crate) fn remove_level(&self, drop: usize, leaf: DataType) -> DataType {
        let mut levels = self.levels.clone();
        if drop < levels.len() {
            let (kind, field) = levels.remove(drop);
            if drop > 0 {
                let above = &mut levels[drop - 1];
                if kind == ListKind::LargeList {
                    above.0 = ListKind::LargeList;
                }
                above.1 = field;
            }
        }
        wrap_levels(&levels, leaf)
    }

    /// Replaces the level `at` (0 is outermost) with `levels` copies of it, and returns the type.
    pub(super) fn repeat_level(&self, at: usize, levels: usize) -> DataType {
        let mut all = self.levels.clone();
        if let Some((kind, field)) = all.get(at).cloned() {
            let inner = (kind, field);
            let outer = (kind, Arc::new(Field::new_list_field(DataType::Null, true)));
            let new = std::iter::repeat_n(outer, levels.saturating_sub(1)).chain([inner]);
            all.splice(at..=at, new);
        }
        wrap_levels(&all, self.leaf.clone())
    }

    /// Returns the type with a `List` added at index `at`: 0 is outermost, `depth()` innermost.
    pub(super) fn add_level(&self, at: usize) -> DataType {
        let mut all = self.levels.clone();
        // The new level holds the elements of the level above, so it takes over the element field
        // of that level.
        let field = Arc::new(Field::new_list_field(DataType::Null, true));
        all.insert(at.min(all.len()), (ListKind::List, field));
        if let (Some(above), Some(new)) = (at.checked_sub(1), all.get(at).cloned())
            && let Some(moved) = all.get(above).map(|(_, f)| Arc::clone(f))
        {
            all[above].1 = new.1;
            all[at].1 = moved;
        }
        wrap_levels(&all, self.leaf.clone())
    }

    /// Returns the type without the levels whose item in `keep` (outermost first) is false. If no
    /// level is left, this is the leaf type.
    pub(crate) fn keep_levels(&self, keep: &[bool]) -> DataType {
        let mut out = self.clone();
        for (position, kept) in keep.iter().enumerate().rev() {
            if !kept && position < out.depth() {
                let (_, field) = out.levels.remove(position);
                if let Some((_, above)) =
                    position.checked_sub(1).and_then(|p| out.levels.get_mut(p))
                {
                    *above = field;
                }
            }
        }
        wrap_levels(&out.levels, self.leaf.clone())
    }

    /// Returns the type of one list of all leaves: a LargeList if any level is a LargeList.
    pub(crate) fn build_flat_type(&self) -> DataType {
        let large = self.levels.iter().any(|(k, _)| *k == ListKind::LargeList);
        let kind = if large { ListKind::LargeList } else { ListKind::List };
        match self.levels.last() {
            None => self.leaf.clone(),
            Some((_, field)) => wrap_levels(&[(kind, Arc::clone(field))], self.leaf.clone()),
        }
    }
}

fn wrap_levels(levels: &[(ListKind, FieldRef)], leaf: DataType) -> DataType {
    levels.iter().rev().fold(leaf, |inner, (kind, field)| {
        let field = field.as_ref().clone().with_data_type(inner).with_nullable(true);
        match kind {
            ListKind::LargeList => DataType::LargeList(Arc::new(field)),
            ListKind::List | ListKind::FixedSizeList(_) => DataType::List(Arc::new(field)),
        }
    })
}

/// Returns the rows of a column at the indices `order`. Consecutive lists are copied at once.
pub(super) fn take_rows_at(column: &ArrayRef, order: &UInt64Array) -> Result<ArrayRef> {
    if list_depth(column.data_type()) == 0 {
        return Ok(take(column, order, None)?);
    }
    let lists = gather::take_rows(&RaggedArray::try_from_arrow(column)?, order)?;
    lists.to_arrow_as(column.data_type())
}

/// Returns, for each leaf below the list levels `axes`, the index of the outermost list that
/// contains it. There are `elements` outermost lists.
pub(super) fn find_ancestors_of_leaves(axes: &[ListAxis], elements: usize) -> UInt64Array {
    let mut of: Vec<u64> = (0..elements as u64).collect();
    for axis in axes {
        let mut next = Vec::with_capacity(axis.layout().children());
        for (list, element) in of.iter().enumerate() {
            next.resize(next.len() + axis.layout().length(list), *element);
        }
        of = next;
    }
    UInt64Array::from(of)
}

/// Repeats the leaves of each array over the lists of the deepest array. Returns the deepest array
/// and the repeated leaves of each array, or `None` if `arrays` is empty. A list of the result is
/// null if it is null in any array. Lists of unequal length are an error unless one of them is
/// null.
pub(super) fn broadcast_together(
    arrays: &[RaggedArray],
) -> Result<Option<(RaggedArray, Vec<ArrayRef>)>> {
    let deepest = arrays.iter().enumerate().rev().max_by_key(|(_, a)| a.axes().len());
    let Some((first, mut shape)) = deepest.map(|(i, a)| (i, a.clone())) else { return Ok(None) };
    for (i, other) in arrays.iter().enumerate() {
        if i != first {
            let levels = other.axes().len();
            let (left, right) = align_arrays(&shape, other, levels)?;
            let mut axes = left.axes().to_vec();
            for (axis, theirs) in axes.iter_mut().zip(right.axes()) {
                if theirs.nulls().is_some() {
                    let nulls = NullBuffer::union(axis.nulls(), theirs.nulls());
                    *axis = ListAxis::try_new(axis.layout().clone(), nulls)?;
                }
            }
            shape = RaggedArray::try_new(left.len(), axes, left.leaves().clone())?;
        }
    }
    let leaves = arrays.iter().enumerate().map(|(i, array)| {
        if i == first {
            return Ok(shape.leaves().clone());
        }
        let levels = array.axes().len();
        let (_, array) = align_arrays(&shape, array, levels)?;
        let missing = &shape.axes()[levels..];
        if missing.is_empty() {
            return Ok(array.leaves().clone());
        }
        take_rows_at(array.leaves(), &find_ancestors_of_leaves(missing, array.leaves().len()))
    });
    let leaves = leaves.collect::<Result<_>>()?;
    Ok(Some((shape, leaves)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fsl(t: DataType) -> DataType {
        DataType::new_fixed_size_list(t, 3, false)
    }

    #[test]
    fn kinds_stay_and_fixed_sizes_open() {
        let t = DataType::new_large_list(fsl(DataType::Int32), false);
        let lists = NestedListType::from_type(&t);
        assert_eq!((lists.depth(), lists.ndim(), lists.leaf()), (2, 3, &DataType::Int32));
        let item = DataType::new_list(DataType::Int32, true);
        assert_eq!(lists.open(), DataType::new_large_list(item, true));
        assert_eq!(
            lists.remove_level(0, DataType::Int32),
            DataType::new_list(DataType::Int32, true)
        );
        assert_eq!(lists.build_flat_type(), DataType::new_large_list(DataType::Int32, true));
        assert_eq!(
            lists.wrap_outer(1, DataType::Int64),
            DataType::new_large_list(DataType::Int64, true)
        );
        assert_eq!(lists.wrap_outer(0, DataType::Int64), DataType::Int64);
    }

    #[test]
    fn a_dropped_large_level_widens_the_one_above() {
        let t = DataType::new_list(DataType::new_large_list(DataType::Int8, true), true);
        assert_eq!(
            NestedListType::from_type(&t).remove_level(1, DataType::Int8),
            DataType::new_large_list(DataType::Int8, true)
        );
    }

    #[test]
    fn metadata_of_elements_travels() {
        let tagged = Field::new("element", DataType::Int64, false)
            .with_metadata([("vocabulary".to_string(), "x".to_string())].into());
        let t = DataType::List(Arc::new(tagged.clone()));
        let DataType::List(field) = NestedListType::from_type(&t).open() else { panic!("a list") };
        assert_eq!(field.metadata(), tagged.metadata());
        assert_eq!(field.name(), "element");
        assert!(field.is_nullable());
    }
}

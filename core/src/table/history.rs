use arrow::buffer::ScalarBuffer;

use crate::array::Layout;

/// The times of the events of each row, in ascending order. All code that needs the events up to a
/// time gets their number from this type, and so never sees later events.
#[derive(Clone, Debug)]
pub(crate) struct EventHistory {
    rows: Layout,
    times: ScalarBuffer<i64>,
}

impl EventHistory {
    /// `rows` divides `times` into one list per row. The error is the index of the first row whose
    /// times do not ascend, for which [`count_up_to`](Self::count_up_to) could count later events.
    pub(crate) fn try_new(rows: Layout, times: ScalarBuffer<i64>) -> Result<Self, usize> {
        match (0..rows.lists()).find(|row| !times[rows.range(*row)].is_sorted()) {
            Some(row) => Err(row),
            None => Ok(Self { rows, times }),
        }
    }

    pub(crate) fn count_up_to(&self, row: usize, moment: i64) -> usize {
        self.times[self.rows.range(row)].partition_point(|time| *time <= moment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::Offsets;

    #[test]
    fn the_moment_itself_is_known() {
        let rows: Layout = Offsets::from_lengths([3, 0, 2]).unwrap().into();
        let history = EventHistory::try_new(rows.clone(), vec![1, 4, 4, -7, 9].into()).unwrap();
        let known = |row| [i64::MIN, -7, 1, 3, 4, i64::MAX].map(|t| history.count_up_to(row, t));
        assert_eq!(known(0), [0, 0, 1, 1, 3, 3]);
        assert_eq!(known(1), [0; 6]);
        assert_eq!(known(2), [0, 1, 1, 1, 1, 2]);
        assert_eq!(EventHistory::try_new(rows, vec![1, 4, 4, 9, -7].into()).unwrap_err(), 2);
    }
}

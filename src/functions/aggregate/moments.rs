//! Statistics of one or two numeric columns, computed from exact sums (sums without rounding).

use std::sync::Arc;

use arrow::array::{
    Array, ArrayRef, AsArray, Float64Array, ListArray, PrimitiveArray, UInt64Array,
};
use arrow::buffer::{NullBuffer, OffsetBuffer};
use arrow::datatypes::{ArrowPrimitiveType, DataType, Field, Float64Type, Int64Type, UInt64Type};

use super::GroupStates;
use crate::error::{Error, Result};
use serrate_core::internal::exact::{ExactSumKind, ExactSums, ScaledInteger, SumTerms};

/// A statistic of `x`, or of `y` and `x` for functions of two arguments `f(y, x)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::functions) enum MomentStatistic {
    Sum,
    Mean,
    Variance { sample: bool },
    Deviation { sample: bool },
    Covariance { sample: bool },
    Correlation,
    Slope,
    Intercept,
    Count,
    Determination,
    MeanX,
    MeanY,
    SquaresX,
    SquaresY,
    ProductsXy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MomentTerm {
    X,
    Y,
    Xx,
    Yy,
    Xy,
}

impl MomentStatistic {
    pub(super) fn count_arguments(self) -> usize {
        match self {
            Self::Sum | Self::Mean | Self::Variance { .. } | Self::Deviation { .. } => 1,
            _ => 2,
        }
    }

    fn terms(self) -> &'static [MomentTerm] {
        match self {
            Self::Count => &[],
            Self::Sum | Self::Mean | Self::MeanX => &[MomentTerm::X],
            Self::MeanY => &[MomentTerm::Y],
            Self::Variance { .. } | Self::Deviation { .. } | Self::SquaresX => {
                &[MomentTerm::X, MomentTerm::Xx]
            }
            Self::SquaresY => &[MomentTerm::Y, MomentTerm::Yy],
            Self::Covariance { .. } | Self::ProductsXy => {
                &[MomentTerm::X, MomentTerm::Y, MomentTerm::Xy]
            }
            Self::Slope | Self::Intercept => {
                &[MomentTerm::X, MomentTerm::Y, MomentTerm::Xx, MomentTerm::Xy]
            }
            Self::Correlation | Self::Determination => {
                &[MomentTerm::X, MomentTerm::Y, MomentTerm::Xx, MomentTerm::Yy, MomentTerm::Xy]
            }
        }
    }

    /// Returns the types of the partial state: the count, and the 64-bit words of each sum.
    pub(super) fn list_state_types(self) -> Vec<DataType> {
        let sums = self.terms().iter().map(|_| ExactSumKind::make_sum_type());
        std::iter::once(DataType::UInt64).chain(sums).collect()
    }
}

#[derive(Debug)]
pub(in crate::functions) struct Moments {
    statistic: MomentStatistic,
    numbers: ExactSumKind,
    counts: Vec<u64>,
    sums: Vec<(MomentTerm, ExactSums)>,
}

impl Moments {
    pub(in crate::functions) fn new(statistic: MomentStatistic, numbers: ExactSumKind) -> Self {
        let sums = statistic.terms().iter().map(|term| {
            let terms = match (term, numbers) {
                (MomentTerm::Xx | MomentTerm::Yy | MomentTerm::Xy, _) => SumTerms::Products,
                (_, ExactSumKind::Float) => SumTerms::Floats,
                (_, ExactSumKind::Signed) => SumTerms::Signed,
                (_, ExactSumKind::Unsigned) => SumTerms::Unsigned,
            };
            (*term, ExactSums::new(terms))
        });
        Self { statistic, numbers, counts: Vec::new(), sums: sums.collect() }
    }

    fn resize(&mut self, groups: usize) {
        if groups > self.counts.len() {
            self.counts.resize(groups, 0);
            self.sums.iter_mut().for_each(|(_, sums)| sums.resize(groups));
        }
    }

    /// Adds the rows of the argument columns `values` that have no NULL to the sums of their
    /// groups, or subtracts them if `minus` is true.
    fn add_rows(
        &mut self,
        values: &[ArrayRef],
        groups: MomentGroups<'_>,
        minus: bool,
    ) -> Result<()> {
        let (Some(first), Some(last)) = (values.first(), values.last()) else { return Ok(()) };
        let valid = NullBuffer::union(first.nulls(), last.nulls());
        let valid = valid.filter(|valid| valid.null_count() > 0);
        let rows = MomentRows { groups, valid: valid.as_ref(), len: first.len() };
        if minus {
            rows.for_each_row(|_, group| self.counts[group] = self.counts[group].saturating_sub(1));
        } else {
            rows.count(&mut self.counts);
        }
        for (term, sums) in &mut self.sums {
            match (&term, self.numbers) {
                (MomentTerm::X | MomentTerm::Y, ExactSumKind::Float) => {
                    let array = if *term == MomentTerm::X { last } else { first };
                    let values = as_floats(array)?;
                    match rows {
                        MomentRows { groups: MomentGroups::One, valid: None, .. } if !minus => {
                            sums.add_run(0, values);
                        }
                        _ if minus => {
                            rows.for_each_row(|row, group| sums.subtract_value(group, values[row]))
                        }
                        _ => rows.for_each_row(|row, group| sums.add(group, values[row])),
                    }
                }
                (MomentTerm::X | MomentTerm::Y, ExactSumKind::Signed) => {
                    add_integers(sums, rows, downcast_state::<Int64Type>(last)?.values(), minus);
                }
                (MomentTerm::X | MomentTerm::Y, ExactSumKind::Unsigned) => {
                    add_integers(sums, rows, downcast_state::<UInt64Type>(last)?.values(), minus);
                }
                (MomentTerm::Xx | MomentTerm::Yy | MomentTerm::Xy, _) => {
                    let (x, y) = (as_floats(last)?, as_floats(first)?);
                    let (a, b) = match term {
                        MomentTerm::Xx => (x, x),
                        MomentTerm::Yy => (y, y),
                        _ => (x, y),
                    };
                    if minus {
                        rows.for_each_row(|row, group| sums.add_product(group, -a[row], b[row]));
                    } else {
                        rows.for_each_row(|row, group| sums.add_product(group, a[row], b[row]));
                    }
                }
            }
        }
        Ok(())
    }

    fn find_sums(&self, wanted: MomentTerm) -> Result<&ExactSums> {
        let found = self.sums.iter().find(|(term, _)| *term == wanted);
        found.map(|(_, sums)| sums).ok_or_else(|| {
            Error::invalid(format!(
                "internal error: the statistic {:?} needs the sum of {wanted:?}, which was not collected; please report it",
                self.statistic
            ))
        })
    }

    /// Returns `n Σab - Σa Σb` for the `n` rows of a group, where `a`, `b` and `ab` name the
    /// collected sums. Returns `None` if the sum of `a` or `b` is NaN or infinite.
    fn compute_codeviation(
        &self,
        group: usize,
        a: MomentTerm,
        b: MomentTerm,
        ab: MomentTerm,
    ) -> Result<Option<ScaledInteger>> {
        let (sum_a, sum_b) = (self.find_sums(a)?, self.find_sums(b)?);
        if sum_a.find_special(group).or(sum_b.find_special(group)).is_some() {
            return Ok(None);
        }
        let n = ScaledInteger::of(self.counts[group]);
        let (products, sum_a) =
            (self.find_sums(ab)?.to_scaled_integer(group), sum_a.to_scaled_integer(group));
        let sum_b = if a == b { sum_a.clone() } else { sum_b.to_scaled_integer(group) };
        Ok(Some(ScaledInteger::compute_determinant([&n, &products], [&sum_a, &sum_b])))
    }

    fn compute_deviation_x(&self, group: usize) -> Result<Option<ScaledInteger>> {
        self.compute_codeviation(group, MomentTerm::X, MomentTerm::X, MomentTerm::Xx)
    }

    fn compute_deviation_y(&self, group: usize) -> Result<Option<ScaledInteger>> {
        self.compute_codeviation(group, MomentTerm::Y, MomentTerm::Y, MomentTerm::Yy)
    }

    fn compute_codeviation_xy(&self, group: usize) -> Result<Option<ScaledInteger>> {
        self.compute_codeviation(group, MomentTerm::X, MomentTerm::Y, MomentTerm::Xy)
    }

    fn compute_integer_sums<T: ArrowPrimitiveType>(&self, groups: usize) -> Result<ArrayRef>
    where
        T::Native: TryFrom<i128>,
    {
        let sums = self.find_sums(MomentTerm::X)?;
        let sum = |group: usize| {
            if self.counts[group] == 0 {
                return Ok(None);
            }
            T::Native::try_from(sums.to_integer(group))
                .map(Some)
                .map_err(|_| Error::Overflow("sum".into()))
        };
        Ok(Arc::new((0..groups).map(sum).collect::<Result<PrimitiveArray<T>>>()?))
    }

    /// Returns the statistic of a group. `None` stands for NULL, as for the sample variance of one
    /// row.
    fn compute_statistic(&self, group: usize) -> Result<Option<f64>> {
        let count = self.counts[group];
        if count == 0 {
            return Ok(None);
        }
        let over = |spread: Option<ScaledInteger>, by: u128| {
            spread.map_or(f64::NAN, |spread| spread.divide_by(by).to_f64())
        };
        let n = u128::from(count);
        let squared = |sample: bool| if sample { n * (n - 1) } else { n * n };
        Ok(match self.statistic {
            MomentStatistic::Sum => Some(self.find_sums(MomentTerm::X)?.to_f64(group)),
            MomentStatistic::Mean | MomentStatistic::MeanX => {
                Some(self.find_sums(MomentTerm::X)?.mean(group, count))
            }
            MomentStatistic::MeanY => Some(self.find_sums(MomentTerm::Y)?.mean(group, count)),
            MomentStatistic::Variance { sample: true }
            | MomentStatistic::Deviation { sample: true }
            | MomentStatistic::Covariance { sample: true }
                if count < 2 =>
            {
                None
            }
            MomentStatistic::Variance { sample } => {
                Some(over(self.compute_deviation_x(group)?, squared(sample)))
            }
            MomentStatistic::Deviation { sample } => {
                let root =
                    |spread: ScaledInteger| spread.divide_by(squared(sample)).root().to_f64();
                Some(self.compute_deviation_x(group)?.map_or(f64::NAN, root))
            }
            MomentStatistic::Covariance { sample } => {
                Some(over(self.compute_codeviation_xy(group)?, squared(sample)))
            }
            MomentStatistic::SquaresX => Some(over(self.compute_deviation_x(group)?, n)),
            MomentStatistic::SquaresY => Some(over(self.compute_deviation_y(group)?, n)),
            MomentStatistic::ProductsXy => Some(over(self.compute_codeviation_xy(group)?, n)),
            MomentStatistic::Correlation => self.compute_correlation(group)?,
            MomentStatistic::Slope
            | MomentStatistic::Intercept
            | MomentStatistic::Determination => self.fit_line(group)?,
            MomentStatistic::Count => None,
        })
    }

    /// Returns the correlation: NaN if both columns contain NaN, and NULL (`None`) if only one
    /// column contains NaN, a column is constant, or the group has fewer than two rows.
    fn compute_correlation(&self, group: usize) -> Result<Option<f64>> {
        let special = |term| Ok::<_, Error>(self.find_sums(term)?.find_special(group));
        let nan = |sum: Option<f64>| sum.is_some_and(f64::is_nan);
        let (x, y) = (nan(special(MomentTerm::X)?), nan(special(MomentTerm::Y)?));
        if x && y {
            return Ok(Some(f64::NAN));
        }
        if x || y || self.counts[group] < 2 {
            return Ok(None);
        }
        let (Some(xx), Some(yy), Some(xy)) = (
            self.compute_deviation_x(group)?,
            self.compute_deviation_y(group)?,
            self.compute_codeviation_xy(group)?,
        ) else {
            return Ok(Some(f64::NAN));
        };
        if xx.is_zero() || yy.is_zero() {
            return Ok(None);
        }
        let root = xx.to_wide_float().multiply_by(yy.to_wide_float()).root();
        Ok(Some(xy.to_wide_float().divide_by(root).to_f64().clamp(-1.0, 1.0)))
    }

    /// Returns the slope, the intercept or the coefficient of determination of the regression line
    /// of a group, as `self.statistic` says, or NULL (`None`) if all `x` are equal. The coefficient
    /// of determination is 1 if all `y` are equal, as in the SQL standard.
    fn fit_line(&self, group: usize) -> Result<Option<f64>> {
        let (xx, xy) = (self.compute_deviation_x(group)?, self.compute_codeviation_xy(group)?);
        let one =
            |spread: &Option<ScaledInteger>| spread.as_ref().is_some_and(ScaledInteger::is_zero);
        if self.counts[group] < 2 || one(&xx) {
            return Ok(None);
        }
        if self.statistic == MomentStatistic::Determination {
            let yy = self.compute_deviation_y(group)?;
            let (Some(xx), Some(yy), Some(xy)) = (xx, &yy, xy) else {
                return Ok((!one(&yy)).then_some(f64::NAN));
            };
            if yy.is_zero() {
                return Ok(Some(1.0));
            }
            let squares = xx.to_wide_float().multiply_by(yy.to_wide_float());
            let xy = xy.to_wide_float();
            return Ok(Some(xy.multiply_by(xy).divide_by(squares).to_f64().min(1.0)));
        }
        let (Some(xx), Some(xy)) = (xx, xy) else { return Ok(Some(f64::NAN)) };
        if self.statistic == MomentStatistic::Slope {
            return Ok(Some(xy.to_wide_float().divide_by(xx.to_wide_float()).to_f64()));
        }
        // The intercept is (Σy Σxx - Σx Σxy) / (n Σxx - Σx Σx).
        let whole = |term| Ok::<_, Error>(self.find_sums(term)?.to_scaled_integer(group));
        let (x, y) = (whole(MomentTerm::X)?, whole(MomentTerm::Y)?);
        let above = ScaledInteger::compute_determinant(
            [&y, &whole(MomentTerm::Xx)?],
            [&x, &whole(MomentTerm::Xy)?],
        );
        Ok(Some(above.to_wide_float().divide_by(xx.to_wide_float()).to_f64()))
    }
}

#[derive(Clone, Copy)]
enum MomentGroups<'a> {
    One,
    Each(&'a [usize]),
}

#[derive(Clone, Copy)]
struct MomentRows<'a> {
    groups: MomentGroups<'a>,
    /// Marks the rows without NULL. `None` if no row has a NULL.
    valid: Option<&'a NullBuffer>,
    len: usize,
}

impl MomentRows<'_> {
    #[inline]
    fn for_each_row(self, mut row: impl FnMut(usize, usize)) {
        match (self.groups, self.valid) {
            (MomentGroups::Each(groups), None) => {
                groups.iter().enumerate().for_each(|(i, group)| row(i, *group));
            }
            (MomentGroups::Each(groups), Some(valid)) => {
                valid.valid_indices().for_each(|i| row(i, groups[i]));
            }
            (MomentGroups::One, None) => (0..self.len).for_each(|i| row(i, 0)),
            (MomentGroups::One, Some(valid)) => valid.valid_indices().for_each(|i| row(i, 0)),
        }
    }

    fn count(self, counts: &mut [u64]) {
        match self.groups {
            MomentGroups::One => {
                counts[0] += (self.len - self.valid.map_or(0, NullBuffer::null_count)) as u64
            }
            MomentGroups::Each(_) => self.for_each_row(|_, group| counts[group] += 1),
        }
    }
}

fn downcast_state<T: ArrowPrimitiveType>(array: &ArrayRef) -> Result<&PrimitiveArray<T>> {
    array.as_primitive_opt::<T>().ok_or_else(|| {
        Error::type_of(
            "internal error, please report it: the partial state of an exact sum",
            T::DATA_TYPE.to_string(),
            array.data_type(),
        )
    })
}

fn add_integers<T: Copy>(sums: &mut ExactSums, rows: MomentRows<'_>, values: &[T], minus: bool)
where
    i128: From<T>,
{
    match rows {
        MomentRows { groups: MomentGroups::One, valid: None, .. } if !minus => {
            sums.add_integer(0, values.iter().map(|value| i128::from(*value)).sum());
        }
        _ => {
            let sign = if minus { -1 } else { 1 };
            rows.for_each_row(|row, group| sums.add_integer(group, sign * i128::from(values[row])));
        }
    }
}

fn as_floats(array: &ArrayRef) -> Result<&[f64]> {
    Ok(downcast_state::<Float64Type>(array)?.values())
}

impl GroupStates for Moments {
    fn fresh(&self) -> Result<Box<dyn GroupStates>> {
        Ok(Box::new(Self::new(self.statistic, self.numbers)))
    }

    fn update(&mut self, values: &[ArrayRef], groups: &[usize]) -> Result<()> {
        self.resize(groups.iter().max().map_or(0, |g| g + 1));
        self.add_rows(values, MomentGroups::Each(groups), false)
    }

    fn update_one(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.resize(1);
        self.add_rows(values, MomentGroups::One, false)
    }

    fn retracts(&self) -> bool {
        true
    }

    fn retract_one(&mut self, values: &[ArrayRef]) -> Result<()> {
        self.resize(1);
        self.add_rows(values, MomentGroups::One, true)
    }

    fn merge(&mut self, states: &[ArrayRef], groups: &[usize]) -> Result<()> {
        self.resize(groups.iter().max().map_or(0, |g| g + 1));
        let [counts, words @ ..] = states else { return Ok(()) };
        let counts = downcast_state::<UInt64Type>(counts)?;
        for (count, group) in counts.iter().zip(groups) {
            self.counts[*group] += count.unwrap_or(0);
        }
        for ((_, sums), lists) in self.sums.iter_mut().zip(words) {
            let lists = lists.as_list_opt::<i32>().ok_or_else(|| {
                Error::type_of(
                    "internal error, please report it: the words in the partial state of an exact sum",
                    "List(Int64)",
                    lists.data_type(),
                )
            })?;
            let words = downcast_state::<Int64Type>(lists.values())?.values();
            let ends = lists.value_offsets();
            for (row, group) in groups.iter().enumerate().filter(|(row, _)| lists.is_valid(*row)) {
                let at = |i: usize| usize::try_from(ends[i]).unwrap_or(0);
                sums.add_words(*group, &words[at(row)..at(row + 1)]);
            }
        }
        Ok(())
    }

    fn state(&mut self, groups: usize) -> Result<Vec<ArrayRef>> {
        self.resize(groups);
        let counts = UInt64Array::from_iter_values(self.counts.iter().take(groups).copied());
        let mut out: Vec<ArrayRef> = vec![Arc::new(counts)];
        let item = Arc::new(Field::new_list_field(DataType::Int64, true));
        for (_, sums) in &self.sums {
            let (mut words, mut lengths) = (Vec::new(), Vec::with_capacity(groups));
            for group in 0..groups {
                let before = words.len();
                sums.write_words(group, &mut words);
                lengths.push(words.len() - before);
            }
            if i32::try_from(words.len()).is_err() {
                return Err(Error::invalid(
                    "the exact sums of all groups in a partition take more than the maximum of 2^31 - 1 words of 64 bits; raise datafusion.execution.target_partitions, or aggregate fewer groups at once",
                ));
            }
            let words = Arc::new(PrimitiveArray::<Int64Type>::from(words));
            let lists = OffsetBuffer::from_lengths(lengths);
            out.push(Arc::new(ListArray::try_new(Arc::clone(&item), lists, words, None)?));
        }
        Ok(out)
    }

    fn result(&mut self, groups: usize) -> Result<ArrayRef> {
        self.resize(groups);
        if self.statistic == MomentStatistic::Count {
            let counts = self.counts.iter().take(groups).copied();
            return Ok(Arc::new(UInt64Array::from_iter_values(counts)));
        }
        match (self.statistic, self.numbers) {
            (MomentStatistic::Sum, ExactSumKind::Signed) => {
                return self.compute_integer_sums::<Int64Type>(groups);
            }
            (MomentStatistic::Sum, ExactSumKind::Unsigned) => {
                return self.compute_integer_sums::<UInt64Type>(groups);
            }
            _ => {}
        }
        let found = (0..groups).map(|group| self.compute_statistic(group));
        Ok(Arc::new(found.collect::<Result<Float64Array>>()?))
    }

    fn forget(&mut self, groups: usize) -> Result<()> {
        self.counts.drain(..groups.min(self.counts.len()));
        self.sums.iter_mut().for_each(|(_, sums)| sums.remove_groups(groups));
        Ok(())
    }

    fn size(&self) -> usize {
        let sums: usize = self.sums.iter().map(|(_, sums)| size_of_val(sums) + sums.size()).sum();
        self.counts.capacity() * size_of::<u64>() + sums
    }
}

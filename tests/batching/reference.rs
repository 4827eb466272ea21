//! The slow reference of `RaggedBatch`: a random batch as one vector per sample, of one vector per
//! entry.

use serrate::batching::RaggedBatch;
use serrate::dense::{DType, DenseTensor};

/// Pseudo-random numbers from a seed.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB) ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    pub(crate) fn flip(&mut self) -> bool {
        self.next() % 2 == 1
    }

    /// Draws a shape of `least` to `most` axes with sizes from 1 to 3, rarely 0.
    pub(crate) fn shape(&mut self, least: usize, most: usize) -> Vec<usize> {
        let ndim = least + self.below(most - least + 1);
        let size = |r: &mut Self| if r.below(12) == 0 { 0 } else { 1 + r.below(3) };
        (0..ndim).map(|_| size(self)).collect()
    }
}

/// The contents of a `RaggedBatch` whose shape is `batch_shape`, `before`, `width` (the non-uniform
/// axis) and `after`.
#[derive(Clone, Debug)]
pub(crate) struct Slow {
    pub(crate) dtype: DType,
    pub(crate) batch_shape: Vec<usize>,
    pub(crate) before: Vec<usize>,
    pub(crate) after: Vec<usize>,
    pub(crate) width: usize,
    /// The entries of every sample, each with its elements in the row-major order of the axes
    /// `before` and `after`.
    pub(crate) samples: Vec<Vec<Vec<i64>>>,
}

pub(crate) fn count_elements(shape: &[usize]) -> usize {
    shape.iter().product()
}

/// Returns a tensor of type `dtype` from integers.
pub(crate) fn make_tensor(dtype: DType, shape: &[usize], values: Vec<i64>) -> DenseTensor {
    DenseTensor::from_vec(shape, values).unwrap().cast(dtype).unwrap()
}

/// Returns the elements of a tensor as integers, in row-major order.
pub(crate) fn list_numbers(t: &DenseTensor) -> Vec<i64> {
    t.cast(DType::I64).unwrap().as_slice::<i64>().unwrap().to_vec()
}

impl Slow {
    pub(crate) fn random(r: &mut Random) -> Self {
        let dtype = DType::ALL[r.below(DType::ALL.len())];
        let (batch_shape, before, after) = (r.shape(1, 3), r.shape(0, 2), r.shape(0, 2));
        let entry = count_elements(&before) * count_elements(&after);
        let limit = if dtype == DType::Bool { 2 } else { 100 };
        let samples: Vec<Vec<Vec<i64>>> = (0..count_elements(&batch_shape))
            .map(|_| {
                let size = r.below(5);
                (0..size).map(|_| (0..entry).map(|_| r.below(limit) as i64).collect()).collect()
            })
            .collect();
        let most = samples.iter().map(Vec::len).max().unwrap_or(0);
        Self { dtype, batch_shape, before, after, width: most + r.below(3), samples }
    }

    /// Returns a batch of `samples` with padded size `width` and the type and the other axes of
    /// this one.
    pub(crate) fn with(&self, width: usize, samples: Vec<Vec<Vec<i64>>>) -> Self {
        Self { width, samples, ..self.clone() }
    }

    pub(crate) fn dim(&self) -> usize {
        self.batch_shape.len() + self.before.len()
    }

    pub(crate) fn entry(&self) -> usize {
        count_elements(&self.before) * count_elements(&self.after)
    }

    pub(crate) fn shape(&self) -> Vec<usize> {
        let mut shape = self.batch_shape.clone();
        shape.extend(&self.before);
        shape.push(self.width);
        shape.extend(&self.after);
        shape
    }

    /// Returns the padded tensor, built element by element. `filler` returns the value of a slot
    /// after the last entry of its sample.
    pub(crate) fn padded(&self, mut filler: impl FnMut() -> i64) -> DenseTensor {
        let (outer, inner) = (count_elements(&self.before), count_elements(&self.after));
        let mut out = Vec::new();
        for sample in &self.samples {
            for b in 0..outer {
                for k in 0..self.width {
                    for a in 0..inner {
                        out.push(match sample.get(k) {
                            Some(entry) => entry[b * inner + a],
                            None => filler(),
                        });
                    }
                }
            }
        }
        make_tensor(self.dtype, &self.shape(), out)
    }

    pub(crate) fn sizes(&self) -> DenseTensor {
        let sizes = self.samples.iter().map(|s| s.len() as i64).collect();
        DenseTensor::from_vec(self.batch_shape.clone(), sizes).unwrap()
    }

    pub(crate) fn mask(&self) -> DenseTensor {
        let mut shape = self.batch_shape.clone();
        shape.push(self.width);
        let rows = self.samples.iter().flat_map(|s| (0..self.width).map(|k| k < s.len()));
        DenseTensor::from_bools(shape, rows).unwrap()
    }

    /// Returns the entries of all samples, without filler, in one tensor whose first axis counts
    /// them.
    pub(crate) fn values(&self) -> DenseTensor {
        let all: Vec<i64> = self.samples.iter().flatten().flatten().copied().collect();
        let mut shape = vec![self.samples.iter().map(Vec::len).sum()];
        shape.extend(&self.before);
        shape.extend(&self.after);
        make_tensor(self.dtype, &shape, all)
    }

    /// Builds the batch from a tensor whose filler is 1, and from its mask, its sample sizes or
    /// both.
    pub(crate) fn batch(&self, r: &mut Random) -> RaggedBatch {
        let padded = self.padded(|| 1);
        let (mask, sizes) = (self.mask(), self.sizes());
        let (mask, sizes) = match r.below(3) {
            0 => (Some(&mask), None),
            1 => (None, Some(&sizes)),
            _ => (Some(&mask), Some(&sizes)),
        };
        RaggedBatch::try_new(&padded, mask, sizes, Some(self.dim())).unwrap()
    }

    /// Asserts that shape, type, entries and sample sizes of a batch equal those of this reference.
    pub(crate) fn check(&self, batch: &RaggedBatch) {
        assert_eq!(batch.shape(), self.shape());
        assert_eq!(batch.batch_shape(), self.batch_shape);
        assert_eq!(batch.non_uniform_dim(), self.dim());
        assert_eq!(batch.dtype(), self.dtype);
        assert_eq!(batch.values(), &self.values());
        assert_eq!(batch.tensor().unwrap(), &self.padded(|| 0));
        assert_eq!(batch.mask().unwrap(), &self.mask());
        assert_eq!(batch.sample_sizes().unwrap(), &self.sizes());
        assert_eq!(batch.num_samples(), self.samples.len());
        assert_eq!(batch.num_entries(), self.samples.iter().map(Vec::len).sum::<usize>());
    }
}

/// Builds a batch of indices from those of every sample. Its filler is 999, which no test may read.
pub(crate) fn draw_indices(
    r: &mut Random,
    batch_shape: &[usize],
    rows: &[Vec<i64>],
) -> RaggedBatch {
    let dtype = [DType::I64, DType::I32, DType::I16][r.below(3)];
    let width = rows.iter().map(Vec::len).max().unwrap_or(0) + r.below(2);
    let slow = Slow {
        dtype,
        batch_shape: batch_shape.to_vec(),
        before: vec![],
        after: vec![],
        width,
        samples: rows.iter().map(|row| row.iter().map(|i| vec![*i]).collect()).collect(),
    };
    RaggedBatch::try_new(&slow.padded(|| 999), None, Some(&slow.sizes()), None).unwrap()
}

/// Returns the element at the position `place` of a row-major tensor.
pub(crate) fn read_place(t: &[i64], shape: &[usize], place: &[usize]) -> i64 {
    t[place.iter().zip(shape).fold(0, |flat, (i, size)| flat * size + i)]
}

/// Returns all positions of a shape, row-major.
pub(crate) fn list_places(shape: &[usize]) -> Vec<Vec<usize>> {
    (0..count_elements(shape))
        .map(|mut flat| {
            let mut place = vec![0; shape.len()];
            for (p, size) in place.iter_mut().zip(shape).rev() {
                *p = flat % size;
                flat /= size;
            }
            place
        })
        .collect()
}

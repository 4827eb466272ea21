//! Fingerprint of an epoch: a hash of the options, the tensors (name, type, axis) and the row
//! lengths. Values do not change it.

use super::epoch_plan::EpochPlan;
use super::facts_place::FactsPlace;
use super::items::ItemRows;
use super::loader_source::LoaderSource;
use super::options::{BatchForm, LoaderOptions, WindowSampling};
use crate::dense::{AxisSize, Fill, PaddingSide};
use crate::kernels::secret_hash::mix_bits;

struct Fingerprint(u64);

impl Fingerprint {
    fn add(&mut self, number: u64) {
        self.0 = mix_bits(self.0 ^ number);
    }

    fn add_count(&mut self, n: usize) {
        self.add(n as u64);
    }

    fn add_text(&mut self, text: &str) {
        self.add_count(text.len());
        for part in text.as_bytes().chunks(8) {
            let mut own = [0; 8];
            own[..part.len()].copy_from_slice(part);
            self.add(u64::from_le_bytes(own));
        }
    }

    fn add_fill(&mut self, fill: Fill) {
        match fill {
            Fill::Bool(v) => [0, v.into()],
            Fill::Int(v) => [1, v.cast_unsigned()],
            Fill::UInt(v) => [2, v],
            Fill::Float(v) => [3, v.to_bits()],
        }
        .into_iter()
        .for_each(|n| self.add(n));
    }

    fn add_options(&mut self, options: &LoaderOptions) {
        self.add_count(options.batch_size);
        let window = options.window.map_or([0; 3], |(len, sampling)| match sampling {
            WindowSampling::Random => [1, len, 0],
            WindowSampling::FromStart => [2, len, 0],
            WindowSampling::ToEnd => [3, len, 0],
            WindowSampling::Step { stride } => [4, len, stride],
            WindowSampling::BalancedRandom => [5, len, 0],
        });
        window.into_iter().for_each(|n| self.add_count(n));
        self.add(options.seed);
        self.add(options.shuffle.into());
        self.add_count(options.bucket.unwrap_or(0));
        self.add(options.drop_last.into());
        self.add_count(options.part.rank);
        self.add_count(options.part.world);
        self.add(match options.form {
            BatchForm::Padded => 0,
            BatchForm::Packed => 1,
        });
        self.add_count(options.sizes.len());
        for size in &options.sizes {
            let size = match *size {
                AxisSize::Longest => [0, 0],
                AxisSize::AtMost(n) => [1, n],
                AxisSize::Exactly(n) => [2, n],
            };
            size.into_iter().for_each(|n| self.add_count(n));
        }
        self.add(match options.side {
            PaddingSide::Right => 0,
            PaddingSide::Left => 1,
        });
        self.add_count(options.fills.len());
        self.add(options.fill.is_some().into());
        options.fill.into_iter().for_each(|fill| self.add_fill(fill));
        for (name, fill) in &options.fills {
            self.add_text(name);
            self.add_fill(*fill);
        }
        // Newer options are hashed only if they are set, so that the fingerprints in older
        // checkpoints still match.
        if let Some(overlap) = options.overlap {
            self.add_text("overlap");
            self.add_count(overlap);
        }
        if options.full_windows {
            self.add_text("full windows");
        }
    }

    fn add_source(&mut self, source: &LoaderSource) {
        self.add_count(source.shards.len());
        for shard in &source.shards {
            self.add_count(shard.rows);
        }
        source.for_each_len(|len| self.add_count(len));
        if let Some(facts) = &source.facts {
            self.add_text("facts");
            match facts.place {
                FactsPlace::Beside => self.add(0),
                FactsPlace::Elements(most) => [1, most].into_iter().for_each(|n| self.add_count(n)),
                FactsPlace::List => self.add(2),
            }
            self.add_source(&facts.source);
        }
    }
}

impl EpochPlan {
    /// Returns a hash to store with the epoch and batch of a training checkpoint.
    ///
    /// If the hash is the same when training resumes, the batches have the same items. If it
    /// differs, the batches may have other items.
    ///
    /// The hash covers the epoch, the options that affect batches (all except threads, prefetch and
    /// limit), the names, types and axes of the tensors, the lengths of the rows of every shard,
    /// and the row and end of every label. It does not cover values, or the lengths of lists below
    /// axis 1. It is the same on every machine. Computing it takes one pass over the rows.
    ///
    /// ```
    /// # use serrate_core as serrate;
    /// # use std::sync::Arc;
    /// # use serrate::arrow::array::UInt16Array;
    /// # use serrate::table::RaggedTable;
    /// use serrate::loader::{Loader, LoaderOptions};
    /// # let table = RaggedTable::builder().lengths([3, 1])?
    /// #     .column("code", 1, Arc::new(UInt16Array::from(vec![7, 8, 9, 4]))).build()?;
    /// let loader = |options| Loader::try_new([table.clone()], options);
    /// let kept = loader(LoaderOptions::new(2).shuffle(7))?.plan(3).fingerprint();
    /// let same = loader(LoaderOptions::new(2).shuffle(7).threads(2))?.plan(3).fingerprint();
    /// let other = loader(LoaderOptions::new(2).shuffle(8))?.plan(3).fingerprint();
    /// assert!(same == kept && other != kept);
    /// # Ok::<(), serrate::Error>(())
    /// ```
    pub fn fingerprint(&self) -> u64 {
        let inner = &self.inner;
        let mut print = Fingerprint(0);
        print.add(self.epoch());
        print.add_options(&inner.options);
        print.add_count(inner.outputs.len());
        for output in &inner.outputs {
            print.add_text(output.name());
            print.add_text(&output.dtype().to_string());
            print.add_count(output.axis());
        }
        print.add_source(&inner.source);
        if let ItemRows::Cuts(cuts) = &inner.items.bases {
            print.add_text("cuts");
            for (row, end) in cuts.rows.iter().zip(&cuts.ends) {
                print.add((u64::from(*row) << 32) | u64::from(*end));
            }
        }
        print.0
    }
}

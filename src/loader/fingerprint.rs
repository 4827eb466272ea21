//! What an epoch depends on, as one number.

use super::facts::Place;
use super::options::{Form, LoaderOptions, Sampling};
use super::plan::{Bases, EpochPlan};
use super::random::mix;
use super::source::Source;
use crate::dense::{Fill, Side, Size};

/// Numbers and texts, one after the other, as 64 bits.
struct Fingerprint(u64);

impl Fingerprint {
    fn add(&mut self, number: u64) {
        self.0 = mix(self.0 ^ number);
    }

    fn count(&mut self, n: usize) {
        self.add(n as u64);
    }

    fn text(&mut self, text: &str) {
        self.count(text.len());
        for part in text.as_bytes().chunks(8) {
            let mut own = [0; 8];
            own[..part.len()].copy_from_slice(part);
            self.add(u64::from_le_bytes(own));
        }
    }

    fn fill(&mut self, fill: Fill) {
        match fill {
            Fill::Bool(v) => [0, v.into()],
            Fill::Int(v) => [1, v.cast_unsigned()],
            Fill::UInt(v) => [2, v],
            Fill::Float(v) => [3, v.to_bits()],
        }
        .into_iter()
        .for_each(|n| self.add(n));
    }

    fn options(&mut self, options: &LoaderOptions) {
        self.count(options.batch_size);
        let window = options.window.map_or([0; 3], |(len, sampling)| match sampling {
            Sampling::Random => [1, len, 0],
            Sampling::FromStart => [2, len, 0],
            Sampling::ToEnd => [3, len, 0],
            Sampling::Step { stride } => [4, len, stride],
            Sampling::BalancedRandom => [5, len, 0],
        });
        window.into_iter().for_each(|n| self.count(n));
        self.add(options.seed);
        self.add(options.shuffle.into());
        self.count(options.bucket.unwrap_or(0));
        self.add(options.drop_last.into());
        self.count(options.part.0);
        self.count(options.part.1);
        self.add(match options.form {
            Form::Padded => 0,
            Form::Packed => 1,
        });
        self.count(options.sizes.len());
        for size in &options.sizes {
            let size = match *size {
                Size::Longest => [0, 0],
                Size::AtMost(n) => [1, n],
                Size::Exactly(n) => [2, n],
            };
            size.into_iter().for_each(|n| self.count(n));
        }
        self.add(match options.side {
            Side::Right => 0,
            Side::Left => 1,
        });
        self.count(options.fills.len());
        self.add(options.fill.is_some().into());
        options.fill.into_iter().for_each(|fill| self.fill(fill));
        for (name, fill) in &options.fills {
            self.text(name);
            self.fill(*fill);
        }
        // What only some loaders have is said where it is there: fingerprints that were kept stay.
        if let Some(overlap) = options.overlap {
            self.text("overlap");
            self.count(overlap);
        }
        if options.full_windows {
            self.text("full windows");
        }
    }

    fn source(&mut self, source: &Source) {
        self.count(source.shards.len());
        for shard in &source.shards {
            self.count(shard.rows);
        }
        source.for_each_len(|len| self.count(len));
        if let Some(facts) = &source.facts {
            self.text("facts");
            match facts.place {
                Place::Beside => self.add(0),
                Place::Elements(most) => [1, most].into_iter().for_each(|n| self.count(n)),
                Place::List => self.add(2),
            }
            self.source(&facts.source);
        }
    }
}

impl EpochPlan {
    /// A number to keep beside the epoch and the batch that training has come to: where it is the
    /// same again, so are the batches, and where it is not, another loader would go on.
    ///
    /// It depends on the number of the epoch, the options that batches depend on (threads, prefetch
    /// and the limit are not among them), the names, types and axes of the tensors, and the lengths
    /// of the rows of every shard, but not on values or what is below axis 1. It is the same on every
    /// machine. Takes one pass over the rows.
    ///
    /// ```
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
        print.options(&inner.options);
        print.count(inner.outputs.len());
        for output in &inner.outputs {
            print.text(output.name());
            print.text(&output.dtype().to_string());
            print.count(output.axis());
        }
        print.source(&inner.source);
        if let Bases::Cuts(cuts) = &inner.items.bases {
            print.text("cuts");
            for (row, end) in cuts.rows.iter().zip(&cuts.ends) {
                print.add((u64::from(*row) << 32) | u64::from(*end));
            }
        }
        print.0
    }
}

//! Measures lookups of keys of three int64 in the batched map, in hashbrown, and in the map of the
//! standard library.

use std::time::Instant;

use hashbrown::HashMap as Brown;
use serde_json::{Value, json};
use serrate::dense::DenseTensor;
use serrate::dok::{Fallback, MapOptions, RowMap};
use serrate::io::safetensors::{FileAccess, dense};
use serrate::{Error, Result};

use super::{Arguments, bits};

type Key = [i64; 3];

fn rows(t: &DenseTensor) -> Result<&[Key]> {
    Ok(t.as_slice::<i64>()?.as_chunks::<3>().0)
}

pub(super) fn run(arguments: &Arguments) -> Result<Value> {
    let tensors = dense::read(&arguments.file, FileAccess::Read)?;
    let tensor = |name: &str| {
        let found = tensors.iter().find(|(n, _)| n == name).map(|(_, t)| t);
        found.ok_or_else(|| Error::invalid(format!("no tensor {name:?} in the file")))
    };
    let (keys, values, asked) = (tensor("keys")?, tensor("values")?, tensor("asked")?);
    let rounds = arguments.get("rounds", 3).max(1);
    let mut results = Vec::new();
    let mut add = |name: &str, seconds: f64, got: &DenseTensor| {
        let checksum = format!("{:x}", bits([got]));
        results.push(json!({"name": name, "seconds": seconds, "checksum": checksum}));
    };
    for (name, parallel) in [("**Serrate**, all threads", true), ("Serrate, 1 thread", false)] {
        let options = MapOptions { seed: Some(1), parallel, ..Default::default() };
        let start = Instant::now();
        let map = RowMap::from_rows(keys, values, options)?;
        add(&format!("{name}: build"), start.elapsed().as_secs_f64(), values);
        for _ in 0..rounds {
            let start = Instant::now();
            let fetched = map.get(asked, &Fallback::Zero)?;
            add(name, start.elapsed().as_secs_f64(), &fetched.values);
        }
    }
    /// Builds a map that inserts and looks up one key at a time, and measures both.
    macro_rules! single {
        ($name:literal, $map:expr) => {{
            let start = Instant::now();
            let mut map = $map;
            for (key, value) in rows(keys)?.iter().zip(values.as_slice::<f64>()?) {
                map.insert(*key, *value);
            }
            add(concat!($name, ": build"), start.elapsed().as_secs_f64(), values);
            for _ in 0..rounds {
                let start = Instant::now();
                let got = rows(asked)?.iter().map(|k| map.get(k).copied().unwrap_or(0.0)).collect();
                let got = DenseTensor::from_vec([asked.shape()[0]], got)?;
                add($name, start.elapsed().as_secs_f64(), &got);
            }
        }};
    }
    let n = keys.shape()[0];
    single!("hashbrown, 1 thread", Brown::<Key, f64>::with_capacity(n));
    single!("std HashMap, 1 thread", std::collections::HashMap::<Key, f64>::with_capacity(n));
    Ok(results.into())
}

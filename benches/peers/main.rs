//! Runs the measurements of Serrate for the Python scripts in this folder, which compare them with
//! other libraries, and prints JSON: `densify FILE --rows N`,
//! `storage FILE --batch B --window L --rounds R` and `dok FILE --rounds R`. Without these
//! arguments, as `cargo bench` calls it, it only prints a note.
#![allow(missing_docs)]

mod densify;
mod dok;
mod storage;

use std::path::PathBuf;
use std::process::ExitCode;

use serrate::Result;
use serrate::dense::DenseTensor;

/// The file, and the options `--name N` after it.
struct Arguments {
    file: PathBuf,
    numbers: Vec<(String, usize)>,
}

impl Arguments {
    fn get(&self, name: &str, default: usize) -> usize {
        self.numbers.iter().find(|(n, _)| n == name).map_or(default, |(_, v)| *v)
    }
}

/// Returns a checksum: the sum of all elements, each read as an unsigned integer of its width.
fn bits<'a>(tensors: impl IntoIterator<Item = &'a DenseTensor>) -> u64 {
    let sum = |t: &DenseTensor| {
        let width = t.dtype().size();
        t.as_bytes().chunks_exact(width).fold(0u64, |sum, cell| {
            let mut bytes = [0; 8];
            bytes[..width].copy_from_slice(cell);
            sum.wrapping_add(u64::from_le_bytes(bytes))
        })
    };
    tensors.into_iter().fold(0, |all, t| all.wrapping_add(sum(t)))
}

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1).filter(|a| a != "--bench");
    let (Some(command), Some(file)) = (words.next(), words.next()) else {
        println!("peers: run benches/peers/run to compare with other libraries");
        return ExitCode::SUCCESS;
    };
    let words: Vec<String> = words.collect();
    let numbers = words
        .chunks_exact(2)
        .filter_map(|p| Some((p[0].strip_prefix("--")?.to_owned(), p[1].parse().ok()?)))
        .collect();
    let arguments = Arguments { file: file.into(), numbers };
    let done: Result<serde_json::Value> = match command.as_str() {
        "densify" => densify::run(&arguments),
        "dok" => dok::run(&arguments),
        "storage" => storage::run(&arguments),
        other => {
            eprintln!("peers: no comparison {other:?}; there are densify, dok and storage");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(value) => {
            println!("{value}");
            ExitCode::SUCCESS
        }
        Err(e) => {
            eprintln!("peers: {e}");
            ExitCode::FAILURE
        }
    }
}

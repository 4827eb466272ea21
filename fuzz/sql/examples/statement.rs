//! Prints the statements of inputs of the fuzz target.
//!
//!     cargo run --manifest-path fuzz/sql/Cargo.toml --example statement -- fuzz/artifacts/sql/*

use std::error::Error;
use std::fs;

fn main() -> Result<(), Box<dyn Error>> {
    for path in std::env::args().skip(1) {
        match serrate_fuzz_sql::read_statement(&fs::read(&path)?) {
            Some(text) => println!("{text}"),
            None => println!("-- {path} is not UTF-8"),
        }
    }
    Ok(())
}

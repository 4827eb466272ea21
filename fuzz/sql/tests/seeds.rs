//! Runs the fuzz target without libFuzzer on its seeds and on random choices. Most statements
//! return rows.

use std::fs;
use std::path::Path;

use serrate_fuzz_sql::run;

#[test]
fn seeds_return_rows() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../seeds/sql");
    let files = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut texts = 0;
    for file in files {
        let path = file.unwrap_or_else(|e| panic!("{e}")).path();
        let bytes = fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let answered = run(&bytes);
        if !bytes.contains(&0) {
            assert!(answered > 0, "{} is an error", path.display());
            texts += 1;
        }
    }
    assert!(texts > 0, "there are no seeds");
}

#[test]
fn random_choices_return_rows() {
    const TRIES: usize = 300;
    let mut state = 7_u64;
    let mut answered = 0;
    for _ in 0..TRIES {
        // An input that begins with a byte 0 has no text, only choices.
        let mut input = vec![0];
        input.extend((0..200).map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state.to_be_bytes()[0]
        }));
        answered += run(&input).min(1);
    }
    println!("{answered} of {TRIES} inputs have a statement that returns rows");
    assert!(answered > TRIES / 5, "only {answered} of {TRIES} inputs return rows");
}

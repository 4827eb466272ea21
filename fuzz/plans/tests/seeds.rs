//! Runs the fuzz target without libFuzzer: it decodes the plan of each statement, and returns
//! errors or plans for changed plans.

use std::fs;
use std::path::Path;

use serrate_fuzz_plans::{STATEMENTS, run};

#[test]
fn unchanged_plans_are_decoded() {
    for (index, statement) in STATEMENTS.iter().enumerate() {
        let index = u8::try_from(index).unwrap_or_else(|e| panic!("{e}"));
        assert!(run(&[index]), "{statement}");
    }
    assert!(!run(&[]) && !run(b"\xff\xff\xff"));
}

#[test]
fn seeds_run() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../seeds/plan");
    let files = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    let mut count = 0;
    for file in files {
        let path = file.unwrap_or_else(|e| panic!("{e}")).path();
        run(&fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display())));
        count += 1;
    }
    assert!(count >= STATEMENTS.len(), "there are {count} seeds");
}

#[test]
fn random_changes_are_errors_or_plans() {
    const TRIES: u64 = 3000;
    let mut state = 7_u64;
    let mut decoded = 0;
    for round in 0..TRIES {
        let statement = round % STATEMENTS.len() as u64;
        let mut input = vec![statement.to_le_bytes()[0]];
        input.extend((0..4 * (1 + round % 3)).map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            state.to_be_bytes()[0]
        }));
        decoded += u64::from(run(&input));
    }
    println!("{decoded} of {TRIES} changed plans are plans");
    assert!(decoded > 0 && decoded < TRIES);
}

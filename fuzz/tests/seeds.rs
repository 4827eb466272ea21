//! Runs every fuzz target without libFuzzer on the files of its folder in `seeds`.

use std::fs;
use std::path::Path;

use serrate_fuzz::targets::TARGETS;

#[test]
fn seeds_of_every_target() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("seeds");
    for (target, run) in TARGETS {
        let folder = root.join(target);
        let files = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        let mut count = 0;
        for file in files {
            let path = file.unwrap_or_else(|e| panic!("{e}")).path();
            let bytes = fs::read(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            run(&bytes);
            count += 1;
        }
        assert!(count > 0, "{target} has no seeds");
    }
}

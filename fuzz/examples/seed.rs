//! Writes files to start from into FOLDER/TARGET: small files of every format by the writers of this project, and
//! copies of the real ones under `tests`.
//!
//!     cargo run --manifest-path fuzz/Cargo.toml --example seed -- fuzz/corpus

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

#[path = "../../tests/common/small_files.rs"]
mod small_files;

type Done = Result<(), Box<dyn Error>>;

/// Larger files slow down a target more than they add.
const LARGEST: u64 = 8 << 10;

/// For each target, files and folders under `tests`, and the ending of the names of the files to
/// copy.
const REAL: &[(&str, &[&str], &str)] = &[
    ("header", &["vectors/nrt-files", "data/tiny-dok"], ""),
    ("nrt", &["vectors/nrt-files"], "nrt"),
    ("write", &["vectors/nrt-files"], "nrt"),
    ("tensors", &["data/synthea-meds-torch-data/reference-batches"], "safetensors"),
    ("dok", &["data/tiny-dok"], "safetensors"),
    ("parquet", &["data/parquet-lists", "data/tiny-meds", "data/tiny-codes"], "parquet"),
    ("lists", &["data/parquet-lists", "data/synthea-meds-torch-data/tokenization"], "parquet"),
    ("meds", &["data/tiny-meds/data", "data/cohorts/meds/data"], "parquet"),
    ("vocabulary", &["data/tiny-codes", "data/tiny-meds/metadata"], "parquet"),
    ("labels", &["data/synthea-meds/labels", "data/tiny-meds/metadata"], "parquet"),
    ("json", &["vectors/nrt", "data/cohorts/answers"], "json"),
];

/// For each target, the endings of the names of the small files that it reads.
const SMALL: &[(&str, &[&str])] = &[
    ("header", &[".nrt", ".safetensors"]),
    ("nrt", &[".nrt"]),
    ("write", &[".nrt"]),
    ("tensors", &[".safetensors", ".nrt"]),
    ("dok", &[".safetensors"]),
    ("arrow", &[".arrow", ".arrows"]),
    ("parquet", &[".parquet"]),
    ("lists", &[".parquet"]),
    ("labels", &["labels.parquet"]),
    ("json", &[".json", ".ndjson"]),
];

const INDICES: &[&str] = &[
    "0",
    "-1",
    "1:3",
    "::2",
    "::-1",
    "...",
    "..., -1",
    "None, 0",
    "[0, 2]",
    "[0, 1], [1, 0]",
    "0, 1:, ::2",
    "[True, False, True, True]",
    "newaxis, ..., [-1]",
    "1:1, 5:2:-3",
    "[0, -1], None, 1",
    " 2 : , : : ",
];

const WORDS: &[&str] = &[
    "all",
    "1d",
    "30d",
    "24h",
    "365d",
    "count",
    "slope",
    "sum_sqd",
    "columns",
    "sparse",
    "float32",
    "bf16",
    "u8",
    "{\"version\":1}",
];

fn main() -> Done {
    let root = std::env::args().nth(1).map(PathBuf::from).ok_or("name a folder")?;
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests");
    for (target, folders, ending) in REAL {
        for folder in *folders {
            copy_real(&tests.join(folder), &root.join(target), ending)?;
        }
    }
    let scratch = root.join("small");
    fs::create_dir_all(&scratch)?;
    for (name, _) in small_files::SMALL_FILES {
        let bytes = small_files::small_file(&scratch, name);
        for (target, _) in
            SMALL.iter().filter(|(_, ends)| ends.iter().any(|end| name.ends_with(end)))
        {
            fs::create_dir_all(root.join(target))?;
            fs::write(root.join(target).join(name), &bytes)?;
        }
    }
    fs::remove_dir_all(scratch)?;
    for (target, texts) in [("index", INDICES), ("words", WORDS)] {
        fs::create_dir_all(root.join(target))?;
        for (i, text) in texts.iter().enumerate() {
            fs::write(root.join(target).join(i.to_string()), text)?;
        }
    }
    let shape = tests.join("../core/src/generate/mimic-shape.json");
    fs::copy(shape, root.join("words/shape.json"))?;
    write_cohort(&tests, &root)
}

fn copy_real(from: &Path, to: &Path, ending: &str) -> Done {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let path = entry?.path();
        let name = path.file_name().ok_or("a file has a name")?.to_string_lossy().into_owned();
        if path.is_dir() {
            // The name of the folder is kept, because files in several folders have the same name.
            copy_real(&path, &to.join(name), ending)?;
        } else if name.ends_with(ending) && fs::metadata(&path)?.len() <= LARGEST {
            fs::copy(&path, to.join(name))?;
        }
    }
    Ok(())
}

/// Writes each shard of a small cohort as one file: the bytes of its files, one after the other.
fn write_cohort(tests: &Path, root: &Path) -> Done {
    use serrate::io::meds::MedsDataset;
    use serrate::io::meds_torch::{ShardReport, TensorizedCohort, tensorize};
    let folder = root.join("cohort");
    fs::create_dir_all(&folder)?;
    let made = root.join("tensorized");
    let dataset = MedsDataset::open(tests.join("data/tiny-meds"))?;
    let done = |_: &[ShardReport]| std::ops::ControlFlow::Continue(());
    tensorize(&dataset, &made, &Default::default(), done)?;
    for shard in TensorizedCohort::open(&made)?.shards() {
        let mut bytes = fs::read(shard.tensors_path())?;
        bytes.extend(fs::read(shard.schema_path())?);
        fs::write(folder.join(shard.name().replace('/', "-")), bytes)?;
    }
    Ok(fs::remove_dir_all(made)?)
}

//! Files in object stores: the byte ranges that are requested, and the errors of failed requests.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use object_store::ObjectStore;
use object_store::path::Path;
use proptest::prelude::*;
use serrate::io::nrt::{NrtFile, NrtObject, ObjectOptions};
use serrate::table::RaggedTable;

use crate::store::Counting;
use crate::support::{bytes_of, draw_lengths, file_with, i64_bytes, table_from, tensors_of};

/// Options with which only needed bytes are requested: 8 for the length of the header, and ranges
/// are not combined across gaps.
const EXACT: ObjectOptions =
    ObjectOptions { large_lists: false, head: 8, gap: 0, largest: 1 << 20, parallel: 4 };

async fn open_object(store: &Arc<Counting>, options: &ObjectOptions) -> NrtObject {
    let store = Arc::clone(store) as Arc<dyn ObjectStore>;
    NrtObject::open(store, Path::from("a/t.nrt"), options).await.unwrap()
}

fn show_tensors(table: &RaggedTable) -> String {
    serde_json::to_string(&tensors_of(table)).unwrap()
}

/// Returns lengths of lists and a table with these lists: 2,000 rows of up to 39 events of up to 6
/// leaves.
fn make_large() -> (Vec<Vec<usize>>, RaggedTable) {
    let lengths: Vec<Vec<usize>> =
        (0..2000).map(|r| (0..r % 40).map(|e| (r + e) % 7).collect()).collect();
    let table = table_from(&lengths);
    (lengths, table)
}

#[tokio::test]
async fn reading_a_row_requests_only_its_bytes() {
    let (lengths, table) = make_large();
    let bytes = bytes_of(&table);
    let header = NrtFile::from_bytes("t", bytes.clone().into()).unwrap();
    let header = header.tensors().header().data_start();
    let store = Counting::with(&[("a/t.nrt", bytes)]).await;
    let file = open_object(&store, &EXACT).await;
    assert_eq!(
        store.counts(),
        (2, header),
        "one request for the length of the header, one for the header"
    );
    assert_eq!((file.num_rows(), file.ndim()), (2000, 3));
    assert_eq!(file.schema(), table.arrow_schema().unwrap());

    let row = 1234;
    let (events, leaves) = (lengths[row].len() as u64, lengths[row].iter().sum::<usize>() as u64);
    assert!(events > 10 && leaves > 10);
    let read = file.read(row..row + 1, None).await.unwrap();
    assert_eq!(show_tensors(&read), show_tensors(&table.slice(row, 1).unwrap()));
    // A row needs two bounds of axis 1 and, of axis 2, one bound more than it has events. The
    // values are those of id, time, code, flag and numeric_value.
    let bounds = 2 * 8 + (events + 1) * 8;
    let values = 8 + events * 8 + leaves * (2 + 1 + 4);
    assert_eq!(store.counts(), (7, bounds + values), "one request per tensor");

    let time = file.read(row..row + 1, Some(&["time"])).await.unwrap();
    assert_eq!(time.ndim(), 2);
    assert_eq!(store.counts(), (2, 2 * 8 + events * 8), "no request is for axis 2");
    file.read(row..row + 1, Some(&["subject_id"])).await.unwrap();
    assert_eq!(store.counts(), (1, 8));
    assert_eq!(file.read(3..900, Some(&[])).await.unwrap().num_rows(), 897);
    assert_eq!(store.counts(), (0, 0), "rows without columns need no request");
    assert_eq!(file.read(7..7, None).await.unwrap().num_rows(), 0);
    assert_eq!(store.counts(), (0, 0));
    let before: usize = lengths[..row].iter().flatten().sum();
    assert_eq!(file.elements_before(row, 2).await.unwrap(), before);
    assert_eq!(store.counts(), (2, 16), "one request for one bound of each axis");
    assert_eq!(file.requests(), 2 + 7 + 2 + 1 + 2);
}

#[tokio::test]
async fn requests_of_several_ranges_of_rows_are_combined() {
    let (lengths, table) = make_large();
    let store = Counting::with(&[("a/t.nrt", bytes_of(&table))]).await;
    let file = open_object(&store, &EXACT).await;
    let runs = [3..5, 5..6, 700..700, 1000..1001, 1999..2000];
    store.take();
    let read = file.read_runs(&runs, Some(&["code", "subject_id"])).await.unwrap();
    let rows: Vec<usize> = runs.iter().cloned().flatten().collect();
    let expected = table.select(&["code", "subject_id"]).unwrap().take(&rows).unwrap();
    assert_eq!(show_tensors(&read), show_tensors(&expected));
    let gets = store.take();
    let events: usize = rows.iter().map(|r| lengths[*r].len()).sum();
    let leaves: usize = rows.iter().map(|r| lengths[*r].iter().sum::<usize>()).sum();
    // Each range of rows also needs the bound before it, unless it is adjacent to the range before.
    let least = (rows.len() + events) * 8 + rows.len() * 8 + leaves * 2;
    let bytes = gets.iter().map(|(_, r)| r.end - r.start).sum::<u64>();
    let bytes = usize::try_from(bytes).unwrap();
    assert!((least..=least + 2 * 3 * 8).contains(&bytes), "{bytes} {least}");
    assert!(gets.len() <= 4 * 3, "{gets:?}");
    assert_eq!(file.read_runs(&[], None).await.unwrap().num_rows(), 0);

    // A large `gap` combines the ranges of a tensor into one request.
    let joined = open_object(&store, &ObjectOptions { gap: 1 << 20, ..EXACT }).await;
    store.take();
    joined.read_runs(&runs, Some(&["subject_id"])).await.unwrap();
    assert_eq!(store.counts(), (1, (2000 - 3) * 8));
    // A combined request is not larger than `largest`.
    let small = open_object(&store, &ObjectOptions { largest: 1000, ..EXACT }).await;
    store.take();
    let ids = small.read(0..2000, Some(&["subject_id"])).await.unwrap();
    assert_eq!(store.counts(), (16, 2000 * 8));
    let values = |table: &RaggedTable| table.column("subject_id").unwrap().values().clone();
    assert_eq!(*values(&ids), *values(&table));
}

#[tokio::test]
async fn a_small_file_takes_one_request() {
    let table = table_from(&[vec![3, 0], vec![], vec![1]]);
    let store = Counting::with(&[("a/t.nrt", bytes_of(&table))]).await;
    let file = open_object(&store, &ObjectOptions::default()).await;
    assert_eq!(show_tensors(&file.table().await.unwrap()), show_tensors(&table));
    assert_eq!(file.elements_before(3, 2).await.unwrap(), 4);
    assert_eq!(store.take().len(), 1);
    assert_eq!(file.bytes_read(), file.len());
}

#[tokio::test]
async fn files_without_rows_or_values_are_read() {
    let files = [
        file_with(&[]),
        file_with(&[("dim0/x", "F32", vec![0], vec![])]),
        file_with(&[
            ("dim1/bounds", "I64", vec![0], vec![]),
            ("dim1/x", "F32", vec![0], vec![]),
            ("dim2/bounds", "I64", vec![0], vec![]),
            ("dim2/y", "BOOL", vec![0], vec![]),
        ]),
        file_with(&[
            ("dim1/bounds", "I64", vec![2], i64_bytes(&[0, 0])),
            ("dim1/x", "F32", vec![0], vec![]),
        ]),
        // No column is on axis 1, so that only its bounds tell its length.
        file_with(&[
            ("dim0/x", "U8", vec![2], vec![1, 2]),
            ("dim1/bounds", "I64", vec![2], i64_bytes(&[1, 4])),
        ]),
    ];
    for (i, bytes) in files.into_iter().enumerate() {
        let expected = NrtFile::from_bytes("t", bytes.clone().into()).unwrap();
        let store = Counting::with(&[("a/t.nrt", bytes)]).await;
        for options in [EXACT, ObjectOptions::default()] {
            let file = open_object(&store, &options).await;
            assert_eq!(file.num_rows(), expected.num_rows(), "{i}");
            assert_eq!(
                file.axis_len(file.ndim() - 1).unwrap(),
                expected.axis_len(expected.ndim() - 1).unwrap()
            );
            assert_eq!(file.table().await.unwrap(), expected.table().unwrap(), "{i}");
            let names: Vec<&str> = expected.columns().iter().map(|c| c.name()).collect();
            let rows = 0..expected.num_rows();
            let read = file.read(rows.clone(), Some(&names)).await.unwrap();
            assert_eq!(read, expected.read(rows, Some(&names)).unwrap());
        }
    }
}

#[tokio::test]
async fn errors_of_a_store_name_the_object() {
    let (_, table) = make_large();
    let bytes = bytes_of(&table);
    let store =
        Counting::with(&[("a/t.nrt", bytes.clone()), ("a/x.nrt", b"no header".to_vec())]).await;
    let at = |path: &str| {
        NrtObject::open(Arc::clone(&store) as Arc<dyn ObjectStore>, Path::from(path), &EXACT)
    };
    let gone = at("a/none.nrt").await.unwrap_err().to_string();
    assert_eq!(gone, "a/none.nrt: the object does not exist in the store; check its URL");
    let other = at("a/x.nrt").await.unwrap_err().to_string();
    assert!(other.contains("a/x.nrt") && other.contains("header"), "{other}");

    let file = at("a/t.nrt").await.unwrap();
    store.short.store(true, Ordering::Relaxed);
    let short = file.read(5..9, None).await.unwrap_err().to_string();
    assert!(short.contains("a/t.nrt") && short.contains("were requested"), "{short}");
    let open = at("a/t.nrt").await.unwrap_err().to_string();
    assert!(open.contains("returned 7 byte(s)"), "{open}");
    store.short.store(false, Ordering::Relaxed);

    // If the object is replaced while the file is open, rows of both versions must not be mixed.
    store.replace("a/t.nrt", bytes_of(&table.slice(0, 1000).unwrap())).await;
    let replaced = file.read(5..9, None).await.unwrap_err().to_string();
    assert!(replaced.contains("replaced after it was opened"), "{replaced}");
    store.remove("a/t.nrt").await;
    let removed = file.read(5..9, None).await.unwrap_err().to_string();
    assert!(removed.contains("the object does not exist in the store; check its URL"), "{removed}");

    assert!(file.read(5..2001, None).await.is_err());
    assert!(file.read(5..6, Some(&["nothing"])).await.unwrap_err().to_string().contains("code"));
    assert!(file.elements_before(5, 3).await.is_err());
}

#[tokio::test]
async fn errors_for_damaged_bounds_name_them() {
    let file = |ends: &[i64]| {
        file_with(&[
            ("dim1/bounds", "I64", vec![ends.len()], i64_bytes(ends)),
            ("dim1/x", "U8", vec![4], vec![1, 2, 3, 4]),
        ])
    };
    for ends in [[1, 3, 2, 4], [1, -3, 3, 4], [1, 2, 9, 4], [1, 2, 3, 3]] {
        let store = Counting::with(&[("a/t.nrt", file(&ends))]).await;
        for options in [EXACT, ObjectOptions::default()] {
            let e = open_object(&store, &options).await.table().await.unwrap_err().to_string();
            assert!(e.contains("a/t.nrt: dim1/bounds["), "{e}");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn rows_do_not_depend_on_how_requests_are_combined(
        lengths in draw_lengths(), a in 0usize..13, b in 0usize..13,
        head in 8u64..2000, gap in 0u64..200, largest in 1u64..300, large_lists in any::<bool>()
    ) {
        let table = table_from(&lengths);
        let rows = lengths.len();
        let (a, b) = (a.min(b).min(rows), a.max(b).min(rows));
        let options = ObjectOptions { large_lists, head, gap, largest, parallel: 2 };
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let store = Counting::with(&[("a/t.nrt", bytes_of(&table))]).await;
            let file = open_object(&store, &options).await;
            prop_assert_eq!(show_tensors(&file.table().await.unwrap()), show_tensors(&table));
            let part = file.read(a..b, None).await.unwrap();
            prop_assert_eq!(show_tensors(&part), show_tensors(&table.slice(a, b - a).unwrap()));
            let runs = [0..a, b..rows];
            let some = file.read_runs(&runs, Some(&["code", "subject_id"])).await.unwrap();
            let taken: Vec<usize> = (0..a).chain(b..rows).collect();
            let expected = table.select(&["code", "subject_id"]).unwrap().take(&taken).unwrap();
            prop_assert_eq!(show_tensors(&some), show_tensors(&expected));
            Ok(())
        })?;
    }
}

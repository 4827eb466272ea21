//! `.nrt` files as tables.

use super::*;

#[tokio::test]
async fn a_file_by_path_reads_whole() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("x.nrt");
    write(&path, &numbered(1, 4));
    let ctx = four();
    let sql = format!("SELECT * FROM '{}'", show(&path));
    assert_eq!(
        text(&ctx, &sql).await,
        "\
+----+------------------+
| id | code             |
+----+------------------+
| 1  | [[10]]           |
| 2  | [[20, 21]]       |
| 3  | [[30, 31, 32]]   |
| 4  | [[40, 41, 42, 43]] |
+----+------------------+"
            .replace("| code             |", "| code               |")
            .replace("+------------------+", "+--------------------+")
            .replace("[[10]]           |", "[[10]]             |")
            .replace("[[20, 21]]       |", "[[20, 21]]         |")
            .replace("[[30, 31, 32]]   |", "[[30, 31, 32]]     |")
    );
}

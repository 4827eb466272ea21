//! The layouts in `docs/formats.md`: files that the command writes have the bytes that the page shows.

use super::*;

/// A line of a layout: the position of its first byte in the file, and the bytes that it shows.
type ShownBytes = (usize, Vec<u8>);

/// Reads a line of a layout. Its bytes end before the first word that is not two hexadecimal digits, such as `..`.
fn read_line(line: &str) -> ShownBytes {
    let mut words = line.split_whitespace();
    let offset = words.next().unwrap().parse().unwrap();
    let bytes = words
        .take_while(|word| word.len() == 2)
        .map_while(|word| u8::from_str_radix(word, 16).ok());
    (offset, bytes.collect())
}

/// Returns the lines of each layout of a page. A layout is a block that begins with `offset  bytes`.
fn read_layouts(page: &str) -> Vec<Vec<ShownBytes>> {
    let mut layouts = Vec::new();
    for block in page.split("```text\noffset  bytes").skip(1) {
        let (lines, _) = block.split_once("```").unwrap();
        layouts.push(lines.lines().skip(1).map(read_line).collect());
    }
    layouts
}

#[test]
fn files_have_the_documented_bytes() {
    let place = Place::new();
    place.file(
        "p.json",
        r#"[{"age": 71, "code": [[0, 1], [2, 3, 4, 5], [6]]}, {"age": 38, "code": [[7, 8, 9]]}]"#,
    );
    place.ok(&["convert", "p.json", "p.nrt", "--schema", "age=int32", "--schema", "code=uint16"]);
    place.ok(&["convert", "p.nrt", "p.arrow"]);
    place
        .file("v.json", r#"[{"age": 71, "value": [0.5, null]}, {"age": 38, "value": [1.5]}]"#)
        .ok(&["convert", "v.json", "v.safetensors", "--schema", "value=float32"]);
    place.ok(&[
        "-c",
        "COPY (SELECT * FROM (VALUES ('A', 1, 10), ('B', 1, 20), ('A', 2, 30)) t(code, subject_id, n))
         TO 'd.safetensors' STORED AS DOK OPTIONS (keys 'code, subject_id')",
    ]);

    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/formats.md");
    let layouts = read_layouts(&fs::read_to_string(page).unwrap());
    // The third layout is that of a file of features, whose values depend on the data.
    let files = [
        ("p.nrt", 340),
        ("v.safetensors", 304),
        ("", 0),
        ("d.safetensors", 598),
        ("p.arrow", 1306),
    ];
    assert_eq!(layouts.len(), files.len());
    for ((file, size), layout) in
        files.iter().zip(&layouts).filter(|((file, _), _)| !file.is_empty())
    {
        let bytes = fs::read(place.path(file)).unwrap();
        assert_eq!(bytes.len(), *size, "{file}");
        for (offset, shown) in layout {
            let found = bytes.get(*offset..offset + shown.len());
            assert_eq!(found, Some(shown.as_slice()), "{file} at {offset}");
        }
    }
}

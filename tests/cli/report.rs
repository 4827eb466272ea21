//! `serrate report`: the sections of its HTML pages, and their numbers compared with SQL.

use super::*;

const MEDS_SECTIONS: [&str; 7] =
    ["overview", "lengths", "padding", "columns", "codes", "timelines", "findings"];

/// Runs `serrate report` on `source` with the arguments `more`, and returns the HTML page.
fn write_page(place: &Place, source: &str, more: &[&str]) -> String {
    let args = [&["report", source, "-o", "page.html", "--overwrite"][..], more].concat();
    let out = place.ok(&args);
    assert!(out.starts_with("wrote ") && out.contains(" to page.html"), "{out}");
    let page = fs::read_to_string(place.path("page.html")).unwrap();
    check_markup(&page);
    page
}

/// Returns the text of the page between the first `from` and the next `to`.
fn find_between<'a>(page: &'a str, from: &str, to: &str) -> &'a str {
    let start = page.find(from).unwrap_or_else(|| panic!("no {from}")) + from.len();
    let end = page[start..].find(to).unwrap_or_else(|| panic!("no {to}"));
    &page[start..start + end]
}

fn find_section<'a>(page: &'a str, name: &str) -> &'a str {
    find_between(page, &format!("<section id=\"{name}\">"), "</section>")
}

/// Returns the text of the cells of the table with this caption, row by row, without the header.
fn read_table(page: &str, caption: &str) -> Vec<Vec<String>> {
    let body = find_between(page, &format!("<caption>{caption}</caption>"), "</table>");
    let body = find_between(body, "<tbody role=\"rowgroup\">", "</tbody>");
    body.split("<tr ").skip(1).map(|row| row.split("</t").filter_map(cell_text).collect()).collect()
}

/// Returns the text of a cell, without charts, or `None` if `cell` has no tag of a cell.
fn cell_text(cell: &str) -> Option<String> {
    let start = cell.rfind("<th").max(cell.rfind("<td"))?;
    let text = &cell[start..];
    let text = &text[text.find('>')? + 1..];
    Some(text.split("<svg").next()?.trim().to_owned())
}

fn list_sections(page: &str) -> Vec<&str> {
    page.split("<section id=\"").skip(1).map(|s| s.split('"').next().unwrap()).collect()
}

/// Checks that tags are closed in order, ids are unique, links lead to ids of the page, charts have
/// a description, and the page loads nothing.
fn check_markup(page: &str) {
    let mut open: Vec<&str> = Vec::new();
    let mut ids: Vec<&str> = Vec::new();
    let mut rest = page.strip_prefix("<!DOCTYPE html>").unwrap();
    while let Some(start) = rest.find('<') {
        assert!(
            !rest[..start].contains('>'),
            "the character > outside of a tag in {}",
            &rest[..start]
        );
        let end = start + rest[start..].find('>').expect("a tag without >");
        let tag = &rest[start + 1..end];
        rest = &rest[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{tag} closes another element");
            continue;
        }
        let name = tag.split([' ', '/']).next().unwrap();
        let attribute = |name: &str| {
            let start = tag.find(&format!(" {name}=\""))? + name.len() + 3;
            Some(&tag[start..start + tag[start..].find('"').unwrap()])
        };
        assert_eq!(tag.matches('"').count() % 2, 0, "{tag}");
        for load in ["src", "srcset", "action", "data", "style", "onload", "onclick"] {
            assert_eq!(attribute(load), None, "{tag}");
        }
        ids.extend(attribute("id"));
        if let Some(target) = attribute("href") {
            let known = target == "data:,"
                || page.contains(&format!(" id=\"{}\"", target.strip_prefix('#').unwrap()));
            assert!(known, "{tag}");
        }
        if attribute("role") == Some("img") {
            assert!(attribute("aria-label").is_some_and(|l| l.len() > 10), "{tag}");
        }
        for number in ["x", "y", "x1", "y1", "x2", "y2", "width", "height", "r", "points", "cx"] {
            let value = attribute(number).unwrap_or_default().to_lowercase();
            assert!(!value.contains("nan") && !value.contains("inf"), "{tag}");
        }
        if tag.ends_with('/') {
            continue;
        }
        if ["script", "style"].contains(&name) {
            let (inside, after) = rest.split_once(&format!("</{name}>")).unwrap();
            for word in
                ["http:", "https:", "@import", "url(", "fetch", "XMLHttp", "eval", "innerHTML"]
            {
                assert!(!inside.contains(word), "{name} has {word}");
            }
            rest = after;
            continue;
        }
        open.push(name);
    }
    assert!(open.is_empty() && rest.trim().is_empty(), "{open:?}");
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "an id occurs twice");
    assert_eq!(page.matches("<h1").count(), 1);
    assert_eq!(page.matches("<figure").count(), page.matches("<figcaption").count());
    assert!(page.contains("default-src &#39;none&#39;") || page.contains("default-src 'none'"));
}

#[test]
fn the_page_of_meds_data_has_every_section_and_is_the_same_each_time() {
    let place = Place::new();
    for name in ["synthea-meds", "synthea-meds-torch-data", "tiny-meds"] {
        let page = write_page(&place, &data_path(name), &[]);
        assert_eq!(list_sections(&page), MEDS_SECTIONS, "{name}");
        assert!(page.contains(&format!("<h1>{name}</h1>")));
        assert!(!page.contains("http://") && !page.contains("https://"), "{name}");
        assert_eq!(write_page(&place, &data_path(name), &[]), page, "{name}");
    }
    let meds = data_path("synthea-meds");
    let without = write_page(&place, &meds, &["--no-check", "--codes", "0", "--subjects", "0"]);
    assert_eq!(list_sections(&without), MEDS_SECTIONS[..4]);
    let noted = write_page(&place, &meds, &["--note", "1 < 2", "--subjects", "2"]);
    assert!(noted.contains("<p class=\"note\">1 &lt; 2</p>"));
    assert_eq!(noted.matches("<option ").count(), 2);
}

#[test]
fn the_numbers_equal_results_of_sql() {
    let place = Place::new();
    let meds = data_path("synthea-meds");
    let page = write_page(&place, &meds, &["--codes", "7"]);
    let sql = |question: &str| -> Vec<Vec<String>> {
        let out =
            place.ok(&["-f", "csv", "-c", &question.replace("MEDS", &format!("meds('{meds}')"))]);
        out.lines().skip(1).map(|l| l.split(',').map(str::to_owned).collect()).collect()
    };
    let plain = |text: &str| text.replace(',', "");

    let lengths = find_section(&page, "lengths");
    let mut totals = Vec::new();
    for (title, length) in [
        ("events per subject", "ragged_lengths(code, 1)"),
        ("measurements per event", "unnest(ragged_lengths(code, 2))"),
        ("measurements per subject", "array_length(ragged_flatten(code))"),
    ] {
        let all: Vec<f64> = sql(&format!("SELECT {length} AS n FROM MEDS"))
            .iter()
            .map(|row| row[0].parse().unwrap())
            .collect();
        let bins = read_table(lengths, title);
        assert!(bins.len() > 4, "{title}");
        for bin in bins {
            let (low, high) = bin[0].split_once('–').unwrap_or((&bin[0], &bin[0]));
            let (low, high): (f64, f64) =
                (plain(low).parse().unwrap(), plain(high).parse().unwrap());
            let counted = all.iter().filter(|n| (low..=high).contains(*n)).count();
            assert_eq!(plain(&bin[1]), counted.to_string(), "{title}: {bin:?}");
        }
        totals = all;
    }

    let padding = find_section(&page, "padding");
    let cuts = read_table(padding, "cuts of measurements per subject");
    assert_eq!(cuts.last().unwrap()[1], "100.0%");
    let (lists, all) = (totals.len() as f64, totals.iter().sum::<f64>());
    for cut in &cuts {
        let at: f64 = plain(&cut[0]).parse().unwrap();
        let kept: f64 = totals.iter().map(|n| n.min(at)).sum();
        let longer = totals.iter().filter(|n| **n > at).count() as f64;
        let shares = [kept / all, longer / lists, 1.0 - kept / (lists * at)];
        for (shown, share) in cut[1..4].iter().zip(shares) {
            let shown: f64 =
                shown.trim_start_matches(['<', '>']).trim_end_matches('%').parse().unwrap();
            assert!((shown - share * 100.0).abs() < 0.051, "{cut:?}: {share}");
        }
        assert_eq!(plain(&cut[4]), (lists * at).to_string());
    }

    let columns = read_table(&page, "Columns, one row per subject");
    let value = columns.iter().find(|c| c[0] == "numeric_value").unwrap();
    let counted = sql("SELECT count(*), count(v), min(v), max(v), count(DISTINCT v)
         FROM (SELECT unnest(ragged_flatten(numeric_value)) AS v FROM MEDS)");
    let counted: Vec<f64> = counted[0].iter().map(|n| n.parse().unwrap()).collect();
    assert_eq!(plain(&value[3]), counted[0].to_string());
    assert_eq!(value[4], format!("{:.1}%", 100.0 * (1.0 - counted[1] / counted[0])));
    assert_eq!(plain(&value[7]), counted[4].to_string());
    let sorted = sql("SELECT v FROM (SELECT unnest(ragged_flatten(numeric_value)) AS v FROM MEDS)
         WHERE v IS NOT NULL ORDER BY v");
    for (cell, percent) in [(8, 0), (9, 25), (10, 50), (11, 75), (12, 100)] {
        let rank = (sorted.len() * percent).div_ceil(100).max(1);
        let exact: f64 = sorted[rank - 1][0].parse().unwrap();
        let shown: f64 = value[cell].parse().unwrap();
        assert!((shown - exact).abs() <= exact.abs() * 1e-3, "{percent} %: {shown} {exact}");
    }

    let codes = read_table(&page, "Most frequent codes");
    let all = sql(
        "SELECT code, count(*) FROM (SELECT unnest(ragged_flatten(code)) AS code FROM MEDS
         UNION ALL SELECT unnest(static_code) FROM MEDS) GROUP BY code ORDER BY count(*) DESC, code LIMIT 7",
    );
    assert_eq!(codes.len(), 8);
    for (shown, counted) in codes.iter().zip(&all) {
        assert_eq!((&shown[0], plain(&shown[1])), (&counted[0], counted[1].clone()));
    }
    let timed = sql("SELECT sum(array_length(ragged_flatten(code))) FROM MEDS");
    assert_eq!(plain(&codes[7][1]), timed[0][0]);
    assert_eq!(find_section(&page, "codes").matches("class=\"spark\"").count(), 8);
}

#[test]
fn tables_that_are_not_meds_have_the_sections_that_their_columns_allow() {
    let place = Place::new();
    place.patients("x.nrt");
    let page = write_page(&place, "x.nrt", &[]);
    assert_eq!(list_sections(&page), ["overview", "lengths", "padding", "columns"]);
    // On axis 1, rows have 2, 0 and 1 elements. On axis 2, lists have 3, 0 and 2 elements, and so
    // rows have 3, 0 and 2.
    let lists = read_table(&page, "elements of axis 1 per row");
    assert_eq!(lists, [["0", "1", "33.3%"], ["1", "1", "33.3%"], ["2", "1", "33.3%"]]);
    let cuts = read_table(&page, "cuts of elements of axis 2 per row");
    assert_eq!(cuts[0], ["1", "40.0%", "66.7%", "33.3%", "3"]);
    assert_eq!(cuts.last().unwrap(), &["3", "100.0%", "0.00%", "44.4%", "9"]);
    let columns = read_table(&page, "Columns, one row per row");
    let t = columns.iter().find(|c| c[0] == "t").unwrap();
    assert_eq!(t[3..13], ["3", "0", "33.3%", "0", "2", "1.5", "1.5", "1.5", "2", "2"]);

    // A table of lists with times and codes has a section on both.
    let sql = "COPY (SELECT * FROM (VALUES
        ('a', [TIMESTAMP '2020-01-01', TIMESTAMP '2021-01-01'], [['X//1', 'Y'], ['X//1']], [1.0, NULL]),
        ('b', [TIMESTAMP '2020-07-01'], [['X//2']], [DOUBLE 'NaN']))
        AS t(name, time, code, v)) TO 'x.parquet'";
    place.ok(&["-c", &sql.replace("DOUBLE 'NaN'", "'NaN'::DOUBLE")]);
    for name in ["x.parquet", "x.arrow", "x.ndjson"] {
        if name != "x.parquet" {
            place.ok(&["convert", "x.parquet", name]);
        }
        let more: &[&str] =
            if name == "x.ndjson" { &["--schema", "time=timestamp[]"] } else { &[] };
        let page = write_page(&place, name, more);
        assert_eq!(list_sections(&page), MEDS_SECTIONS[..6], "{name}");
        let codes = read_table(&page, "Most frequent codes");
        assert_eq!(codes[0][..3], ["X//1", "2", "50.0%"], "{name}");
        assert_eq!(codes[3][..2], ["all codes with a time", "4"], "{name}");
        assert!(page.contains("<h3>name a</h3>"), "{name}");
    }
    // A folder of files is described as one table.
    let folder = place.path("shards");
    fs::create_dir(&folder).unwrap();
    for i in 0..3 {
        fs::copy(place.path("x.parquet"), folder.join(format!("{i}.parquet"))).unwrap();
    }
    let page = write_page(&place, "shards", &[]);
    assert_eq!(read_table(&page, "Most frequent codes")[0][..2], ["X//1", "6"]);
    let sql = "COPY (SELECT * FROM (VALUES (1, [1, 2], [5]), (2, [3], [6, 7, 8])) AS t(id, a, b)) TO 'y.parquet'";
    place.ok(&["-c", sql]);
    let page = write_page(&place, "y.parquet", &[]);
    assert_eq!(find_section(&page, "columns").matches("<table ").count(), 2);

    // A flat table has no lists.
    place
        .ok(&["-c", "COPY (SELECT * FROM (VALUES (1, 'u'), (2, 'u')) AS t(id, s)) TO 'z.parquet'"]);
    let page = write_page(&place, "z.parquet", &[]);
    assert_eq!(list_sections(&page), ["overview", "columns", "codes"]);
}

#[test]
fn quantiles_that_are_estimated_are_rounded() {
    let place = Place::new();
    let sql = "COPY (SELECT 10000000 + value * 7 AS id,
        TIMESTAMP '2000-01-01 01:02:03' + value * INTERVAL '1 hour' AS t
        FROM generate_series(0, 69999)) TO 'x.parquet'";
    place.ok(&["-c", sql]);
    let page = write_page(&place, "x.parquet", &[]);
    let columns = read_table(&page, "Columns, one row per row");
    let ids = ["&gt;65,536", "10000000", "10120000", "10250000", "10370000", "10489993"];
    assert_eq!(columns[0][7..13], ids);
    let times = ["2001-12-30", "2003-12-29", "2005-12-27"];
    assert_eq!(columns[1][9..12], times);
    assert_eq!(columns[1][8], "2000-01-01 <wbr/>01:02:03");
    // The caption of the chart has the rounded ends of the distribution, not the exact smallest and
    // largest value.
    assert!(page.contains("Distribution of id from 10000000 to 10480000"));
    // Quantiles of few integers are exact and not rounded.
    place.ok(&[
        "-c",
        "COPY (SELECT 10000000 + value AS id FROM generate_series(0, 6)) TO 'y.parquet'",
    ]);
    let page = write_page(&place, "y.parquet", &[]);
    let columns = read_table(&page, "Columns, one row per row");
    assert_eq!(
        columns[0][7..13],
        ["7", "10000000", "10000001", "10000003", "10000005", "10000006"]
    );
}

#[test]
fn durations_have_quantiles() {
    let place = Place::new();
    let since = "TIMESTAMP '2020-01-01' + value * INTERVAL '7 hours' - TIMESTAMP '2020-01-01'";
    for (name, last, expected) in [
        ("few.parquet", 8, ["9", "00:00", "14:00", "1d <wbr/>04:00", "1d <wbr/>18:00"]),
        ("many.parquet", 79_999, ["&gt;65,536", "00:00", "5833d", "11667d", "17500d"]),
    ] {
        let sql = format!(
            "COPY (SELECT value AS id, {since} AS gap FROM generate_series(0, {last})) TO '{name}'"
        );
        place.ok(&["-c", &sql]);
        let page = write_page(&place, name, &[]);
        let columns = read_table(&page, "Columns, one row per row");
        if last < 10 {
            assert_eq!(columns[1][7..12], expected);
            assert_eq!(columns[1][12], "2d <wbr/>08:00");
            continue;
        }
        assert_eq!((&*columns[1][7], &*columns[1][8]), (expected[0], expected[1]));
        // The quantiles are estimates of at most 1/2048 more or less.
        for (found, exact) in columns[1][9..12].iter().zip(&expected[2..]) {
            let days = |text: &str| text.strip_suffix('d').unwrap().parse::<f64>().unwrap();
            assert!((days(found) / days(exact) - 1.0).abs() <= 1.0 / 1000.0, "{found} {exact}");
        }
        assert_eq!(columns[1][12], "23333d <wbr/>01:00");
    }
}

const BATCH_SECTIONS: [&str; 6] = ["overview", "lengths", "batches", "padding", "columns", "codes"];
const TENSORS: &str = "Tensors; a range stands for sizes that differ between files";

#[test]
fn batches_are_described_without_their_padding() {
    let place = Place::new();
    let select = "SELECT * FROM (VALUES
        (1, [7, 7, 3], [1.0, NULL, 'NaN'::DOUBLE]),
        (2, [7], [2.5]),
        (3, CAST([] AS BIGINT[]), CAST([] AS DOUBLE[])),
        (4, [5, 7], [4.0, 2.5])) AS t(id, code, v)";
    for (name, option) in [("padded", ""), ("left", ", side 'left'"), ("packed", ", packed true")] {
        let to = format!("TO '{name}/' STORED AS BATCHES (batch 2{option})");
        place.ok(&["-c", &format!("COPY ({select}) {to}")]);
        let page = write_page(&place, name, &["--codes", "5"]);
        assert_eq!(list_sections(&page), BATCH_SECTIONS, "{name}");
        let lists = read_table(&page, "elements of axis 1 per item");
        let each = ["0", "1", "2", "3"].map(|n| [n, "1", "25.0%"]);
        assert_eq!(lists, each, "{name}");
        let columns = read_table(&page, "Columns, one row per item");
        let v = columns.iter().find(|c| c[0] == "v").unwrap();
        let expected = ["6", "16.7%", "16.7%", "0", "3", "1", "1", "2.5", "2.5", "4"];
        assert_eq!(v[3..13], expected, "{name}");
        assert_eq!(columns.iter().find(|c| c[0] == "id").unwrap()[3..5], ["4", "0"], "{name}");
        let codes = read_table(&page, "Most frequent codes");
        assert_eq!(
            codes,
            [["7", "4", "66.7%"], ["3", "1", "16.7%"], ["5", "1", "16.7%"]],
            "{name}"
        );
        // The tensors of the first batch have 124 bytes and those of the second 88. Each has 36
        // bytes of padding.
        let sizes = read_table(&page, "Padding of each batch");
        let shares: Vec<&str> = sizes.iter().map(|b| b[3].as_str()).collect();
        let batches = find_section(&page, "batches");
        if name == "packed" {
            assert_eq!(shares, ["0.00%", "0.00%"]);
            assert!(batches.contains("dim1/cu_seqlens"), "{batches}");
        } else {
            assert_eq!(shares, ["29.0%", "40.9%"], "{name}");
            assert!(batches.contains("34.0%") && batches.contains("dim1/mask"), "{batches}");
        }
        assert!(batches.contains("v/valid"), "{batches}");
        let tensors = read_table(&page, TENSORS);
        assert!(tensors.iter().any(|t| t[0] == "v/valid" && t[3] == "2"), "{tensors:?}");
    }
    place.fails(2, &["report", "padded", "-o", "l.html", "--labels", "x"]);
    let one = write_page(&place, "padded/batch-000000.safetensors", &[]);
    assert_eq!(list_sections(&one), ["overview", "columns"]);
    assert!(one.contains("2 × 3"));
    // The files of the folder do not all have the same tensors, so that they are not described as
    // batches.
    fs::copy(place.path("packed/batch-000000.safetensors"), place.path("padded/x.safetensors"))
        .unwrap();
    let mixed = write_page(&place, "padded", &[]);
    assert_eq!(list_sections(&mixed), ["overview", "columns"]);
    assert!(find_section(&mixed, "columns").contains("do not have the same tensors"));
}

#[test]
fn padded_and_packed_batches_of_records_are_described_alike() {
    let place = Place::new();
    let cohort = data_path("synthea-meds-torch-data");
    for (unit, axes) in [
        ("event", &["events per item", "measurements per event", "static facts per item"][..]),
        ("measurement", &["measurements per item", "static facts per item"][..]),
    ] {
        let base = ["batches", &cohort, "--batch", "8", "--len", "400", "--window", "end"];
        let base = [&base[..], &["--unit", unit, "--overwrite", "-o", "train"]].concat();
        let mut described: Vec<Vec<String>> = Vec::new();
        for option in [&[][..], &["--side", "left"], &["--fixed"], &["--packed"]] {
            let said = place.ok(&[&base[..], option].concat());
            let page = write_page(&place, "train", &[]);
            assert_eq!(list_sections(&page), BATCH_SECTIONS, "{unit} {option:?}");
            let columns = read_table(&page, "Columns, one row per item");
            let facts = read_table(&page, "Static facts, one list per item");
            described.push(vec![
                find_section(&page, "lengths").to_owned(),
                find_section(&page, "codes").to_owned(),
                format!("{columns:?} {facts:?}"),
            ]);
            for title in axes {
                assert!(!read_table(&page, title).is_empty(), "{title}");
            }
            // `batches` prints the share of padding without decimals.
            let (said, _) = said.split_once(" % of it padding").unwrap();
            let said: f64 = said.rsplit([' ', '(']).next().unwrap().parse().unwrap();
            let shown =
                find_between(find_section(&page, "overview"), "<dt>padding</dt>\n<dd>", "%");
            let shown: f64 = shown.parse().unwrap();
            assert!((shown - said).abs() < 0.56, "{unit} {option:?}: {shown} {said}");
        }
        for other in &described[1..] {
            assert_eq!(other, &described[0], "{unit}");
        }
    }
    let tensors = read_table(&write_page(&place, "train", &[]), TENSORS);
    assert!(tensors.iter().any(|t| t[0] == "dim1/cu_seqlens" && t[1] == "I32"), "{tensors:?}");
}

#[test]
fn html_in_names_and_values_is_escaped() {
    let place = Place::new();
    let evil = "<script>alert(1)</script>";
    let sql = format!(
        "COPY (SELECT * FROM (VALUES
           ('{evil}', [1, 2], ['{evil}', 'it''s \"x\" & </td>']), ('b', [1, 5], ['{evil}', '\u{202e}\u{1}']))
         AS t(\"<i>id\", time, \"</table>\")) TO 'x.parquet'"
    );
    place.ok(&["-c", &sql]);
    let name = "<b>&.parquet";
    fs::rename(place.path("x.parquet"), place.path(name)).unwrap();
    let page = write_page(&place, name, &["--note", "</p><script>"]);
    assert_eq!(list_sections(&page), MEDS_SECTIONS[..6]);
    assert_eq!(page.matches("<script>").count(), 1);
    assert!(!page.contains("<b>") && !page.contains('\u{202e}') && !page.contains("<i>"));
    assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    let codes = read_table(&page, "Most frequent codes");
    assert_eq!(codes[0][..2], ["&lt;script&gt;alert(1)&lt;/script&gt;", "2"]);
    assert_eq!(codes[1][1..2], ["1"]);
}

#[test]
fn empty_tables_and_columns_of_nulls_are_described() {
    let place = Place::new();
    let of = |place: &Place, select: &str| -> String {
        place.ok(&["-c", &format!("COPY ({select}) TO 'x.parquet' OPTIONS (overwrite true)")]);
        write_page(place, "x.parquet", &[])
    };
    // A table without rows.
    let page = of(&place, "SELECT 1 AS id, [1.5] AS x, ['a'] AS code WHERE false");
    assert_eq!(list_sections(&page), ["overview", "lengths", "columns"]);
    assert!(page.contains("There are no lists."));
    // Values, lists and rows that are all NULL.
    let page = of(
        &place,
        "SELECT NULL::DOUBLE AS x, NULL::BIGINT[] AS y, [NULL::TIMESTAMP] AS time, [NULL::VARCHAR] AS code",
    );
    let columns = read_table(&page, "Columns, one row per row");
    assert!(columns.iter().any(|c| c[0] == "x" && c[4] == "100.0%" && c[8] == "–"), "{columns:?}");
    // Empty lists, and floats that are not finite.
    let page = of(
        &place,
        "SELECT * FROM (VALUES ('NaN'::DOUBLE, []::DOUBLE[]), ('Infinity'::DOUBLE, []::DOUBLE[])) AS t(x, y)",
    );
    let columns = read_table(&page, "Columns, one row per row");
    assert_eq!(columns[0][5..9], ["50.0%", "50.0%", "0", "–"], "{columns:?}");
    assert_eq!(read_table(&page, "elements of axis 1 per row"), [["0", "2", "100.0%"]]);
    // Numbers near the limits of their types.
    let page = of(
        &place,
        "SELECT * FROM (VALUES (9223372036854775807, 1.7e308, [1]), (-9223372036854775807, -1.7e308, [2]))
         AS t(i, x, time)",
    );
    let columns = read_table(&page, "Columns, one row per row");
    assert_eq!(columns[0][8], "-9223372036854775807");
    assert_eq!(columns[0][12], "9223372036854775807");
    assert_eq!(columns[1][12], "1.700e308");
    place.ok(&["generate", "--patients", "0", "--to", "meds", "-o", "none"]);
    let said = place.run(&["report", "none", "-o", "none.html"]);
    assert_eq!(said.code == 0, place.exists("none.html"), "{}", said.err);
}

#[test]
fn a_failed_report_writes_no_page() {
    let place = Place::new();
    place.patients("x.nrt").file("bad.parquet", "no").file("kept.html", "old");
    let files = |place: &Place| {
        let mut names: Vec<String> = fs::read_dir(place.0.path())
            .unwrap()
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    };
    let before = files(&place);
    for (code, args) in [
        (1, ["report", "bad.parquet", "-o", "page.html"]),
        (1, ["report", "none.nrt", "-o", "page.html"]),
        (1, ["report", "x.nrt", "-o", "kept.html"]),
        (1, ["report", "x.nrt", "-o", "missing/page.html"]),
        (2, ["report", "x.nrt", "-o", "page.pdf"]),
        (2, ["report", "x.nrt", "-o", "page"]),
    ] {
        place.fails(code, &args);
        assert_eq!(files(&place), before, "{args:?}");
    }
    assert_eq!(fs::read_to_string(place.path("kept.html")).unwrap(), "old");
    let said = place.run(&["report", "x.nrt", "-o", "kept.html"]);
    assert!(said.err.contains("use --overwrite") && !said.err.contains("COPY"), "{}", said.err);
    place.fails(1, &["report", "bad.parquet", "-o", "kept.html", "--overwrite"]);
    assert_eq!(fs::read_to_string(place.path("kept.html")).unwrap(), "old");
    place.ok(&["report", "x.nrt", "-o", "kept.html", "--overwrite"]);
    assert!(fs::read_to_string(place.path("kept.html")).unwrap().starts_with("<!DOCTYPE html>"));
}

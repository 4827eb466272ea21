//! Runs the thirty questions of `sql/questions` and the code blocks of the README and of the pages
//! of `docs/guide`, and compares what they print with the recorded output. With `SERRATE_BLESS=1`,
//! the tests write the recorded output anew.

use std::ops::Range;
use std::path::Path;

use super::*;

const RECIPES: &str = "docs/guide/recipes.md";

fn root_path(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Returns the files with the given extension in a folder of the repository, sorted by name.
fn list_files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(root_path(folder))
        .unwrap()
        .map(|f| f.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == extension))
        .collect();
    files.sort();
    files
}

/// Returns a folder with links to `sql` and `tests`, so that commands of the guide run in it as in
/// a clone.
fn make_clone() -> Place {
    let place = Place::new();
    for folder in ["sql", "tests"] {
        std::os::unix::fs::symlink(root_path(folder), place.path(folder)).unwrap();
    }
    place
}

/// Returns what the statements `sql` print in a terminal.
fn show_results(place: &Place, sql: &str) -> String {
    let said = place.run_with(&["-"], sql);
    assert_eq!(said.code, 0, "{sql}\n{}", said.err);
    said.out
}

/// Writes `now` to `file` if `SERRATE_BLESS` is set. Otherwise, adds a message to `outdated` if
/// `file` has other contents.
fn compare_file(file: &Path, now: &str, outdated: &mut Vec<String>) {
    if std::env::var_os("SERRATE_BLESS").is_some() {
        fs::write(file, now).unwrap();
        return;
    }
    let recorded = fs::read_to_string(file).unwrap_or_default();
    if recorded != now {
        let lines = recorded.lines().zip(now.lines());
        let at = lines.take_while(|(recorded, now)| recorded == now).count();
        let line = |text: &str| text.lines().nth(at).unwrap_or("(the end)").to_string();
        outdated.push(format!(
            "{}:{}:\n  recorded: {}\n  now:      {}",
            file.display(),
            at + 1,
            line(&recorded),
            line(now)
        ));
    }
}

/// The file next to each script has its answer. The page of recipes has the comment of the script
/// as the question, then its statement and what it prints.
#[test]
fn the_thirty_questions_have_the_recorded_answers() {
    let place = make_clone();
    let scripts = list_files("sql/questions", "sql");
    let page = fs::read_to_string(root_path(RECIPES)).unwrap();
    let mut recipes = page.split("\n## ").next().unwrap().to_string();
    let mut outdated = Vec::new();
    let mut questions = 0;
    for script in &scripts {
        let answer = place.ok(&[&script.display().to_string(), "-f", "csv"]);
        compare_file(&script.with_extension("csv"), &answer, &mut outdated);

        let (number, name) = script.file_stem().unwrap().to_str().unwrap().split_once('_').unwrap();
        // A letter after the number marks a variant of the question before it: `08b` follows `08`.
        if number.ends_with(|c: char| c.is_ascii_digit()) {
            questions += 1;
        }
        let digits = number.trim_end_matches(|c: char| c.is_ascii_lowercase());
        assert_eq!(digits, format!("{questions:02}"), "{}", script.display());
        let title = name[..1].to_uppercase() + &name[1..].replace('_', " ");
        let text = fs::read_to_string(script).unwrap();
        let mut question = String::new();
        let mut statement = String::new();
        for line in text.lines() {
            let (part, line) = match line.strip_prefix("-- ") {
                Some(comment) => (&mut question, comment),
                None => (&mut statement, line),
            };
            part.push_str(line);
            part.push('\n');
        }
        recipes.push_str(&format!(
            "\n## {}. {title}\n\n{question}\n```sql\n{statement}```\n\n```text\n{}```\n",
            number.trim_start_matches('0'),
            show_results(&place, &statement)
        ));
    }
    assert_eq!(questions, 30, "{scripts:?}");
    compare_file(&root_path(RECIPES), &recipes, &mut outdated);
    assert!(outdated.is_empty(), "{}", outdated.join("\n"));
}

/// A fenced code block of a Markdown page, with the range of its body in bytes.
struct Block<'a> {
    language: &'a str,
    body: Range<usize>,
}

fn fenced_blocks(page: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut open = None;
    let mut start = 0;
    for line in page.split_inclusive('\n') {
        let end = start + line.len();
        if let Some(language) = line.strip_prefix("```") {
            open = match open {
                None => Some((language.trim(), end)),
                Some((language, body)) => {
                    blocks.push(Block { language, body: body..start });
                    None
                }
            };
        }
        start = end;
    }
    assert!(open.is_none(), "a code block is not closed");
    blocks
}

/// Runs the commands of a `console` block and returns the block with their current output. A
/// command begins with `$ ` and continues on the next line after a backslash or while a double
/// quote is open; all other lines are output.
fn rerun_session(place: &Place, session: &str) -> String {
    let folder = Path::new(env!("CARGO_BIN_EXE_serrate")).parent().unwrap();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::iter::once(folder.to_path_buf()).chain(std::env::split_paths(&path));
    let path = std::env::join_paths(folders).unwrap();
    let mut now = String::new();
    let mut command = String::new();
    for line in session.lines() {
        if let Some(start) = line.strip_prefix("$ ") {
            assert!(command.is_empty(), "the command continues after the last line: {command}");
            command.push_str(start);
        } else if command.is_empty() {
            continue;
        } else {
            command.push('\n');
            command.push_str(line);
        }
        now.push_str(line);
        now.push('\n');
        if command.matches('"').count().is_multiple_of(2) && !command.ends_with('\\') {
            // One pipe has standard output and standard error, in the order in which the command
            // writes them.
            let output = Command::new("sh")
                .arg("-c")
                .arg(format!("exec 2>&1\n{command}"))
                .current_dir(place.0.path())
                .env("PATH", &path)
                .env("LC_ALL", "C.UTF-8")
                .stdin(Stdio::null())
                .output()
                .unwrap();
            now.push_str(&String::from_utf8_lossy(&output.stdout));
            command.clear();
        }
    }
    assert!(command.is_empty(), "the command continues after the last line: {command}");
    now
}

/// Returns the page with the current output of its blocks. A `console` block has commands with
/// their output, and a `text` block has the output of the `sql` block before it. All blocks of a
/// page run in one folder.
fn rerun_page(page: &str) -> String {
    let place = make_clone();
    let mut now = String::new();
    let mut copied = 0;
    let mut printed = None;
    for block in fenced_blocks(page) {
        let body = &page[block.body.clone()];
        let before = printed.take();
        let fresh = match block.language {
            "console" => rerun_session(&place, body),
            "sql" => {
                printed = Some(show_results(&place, body));
                continue;
            }
            "text" => match before {
                Some(output) => output,
                None => continue,
            },
            _ => continue,
        };
        now.push_str(&page[copied..block.body.start]);
        now.push_str(&fresh);
        copied = block.body.end;
    }
    now.push_str(&page[copied..]);
    now
}

/// The blocks `sh` show commands without their output, which must succeed.
#[test]
fn the_commands_of_the_guide_succeed() {
    let mut commands = 0;
    for page in list_files("docs/guide", "md") {
        let text = fs::read_to_string(&page).unwrap();
        for block in fenced_blocks(&text).iter().filter(|block| block.language == "sh") {
            let place = make_clone();
            for line in text[block.body.clone()].lines() {
                let session = format!("$ {line} > out.txt && echo done\n");
                let printed = rerun_session(&place, &session);
                assert!(printed.ends_with("\ndone\n"), "{}: {printed}", page.display());
                commands += 1;
            }
        }
    }
    assert!(commands > 0);
}

#[test]
fn the_readme_and_the_guide_show_what_their_blocks_print() {
    let mut pages = list_files("docs/guide", "md");
    assert!(pages.len() >= 4, "{pages:?}");
    pages.push(root_path("README.md"));
    let mut outdated = Vec::new();
    for page in pages.iter().filter(|p| !p.ends_with(RECIPES)) {
        let text = fs::read_to_string(page).unwrap();
        compare_file(page, &rerun_page(&text), &mut outdated);
    }
    assert!(outdated.is_empty(), "{}", outdated.join("\n"));
}

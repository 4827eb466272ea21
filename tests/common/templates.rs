//! Reads the records in `sql/slt` and the templates in `sql/slt/templates`. A record is a statement
//! of sqllogictest with its expected result. A template holds the records that all functions of a
//! family share.
//!
//! A template is a file of records with these additions:
//!
//! * The line `functions ragged_eq:= ragged_ne:<>` names the functions to which the records below
//!   it apply, up to the next such line. The first one names all functions of the family.
//! * `{function}` stands for the name of the function, and `{operator}` for the text after the
//!   colon.
//! * `----` precedes the result for all functions, `---- ragged_eq ragged_ne` the result for these
//!   functions.
//! * `---- same` stands for the result of the last record above that has one without `same`, and
//!   `---- same 4 5` for its rows that begin with 4 or 5. Such records repeat a query with lists of
//!   another type, with some of the rows, over a view or as a prepared statement.
//!
//! For each function, the records of a template run in their own session.

use std::fs;
use std::path::{Path, PathBuf};

use sqllogictest::{DefaultColumnType, Record, parse_file, parse_with_name};

/// The records that run in one session: those of a file, or those of a template for one function.
pub(crate) struct RecordScript {
    pub(crate) name: String,
    pub(crate) records: Vec<Record<DefaultColumnType>>,
}

pub(crate) struct RecordTemplate {
    pub(crate) path: PathBuf,
    pub(crate) paragraphs: Vec<TemplateParagraph>,
}

/// The lines between two blank lines of a template: a record, an `include` or a line `functions`.
pub(crate) struct TemplateParagraph {
    pub(crate) lines: Vec<String>,
    pub(crate) answers: Vec<FamilyAnswer>,
}

pub(crate) struct FamilyAnswer {
    /// The words after `----`: nothing, names of functions, or `same` and the first values of rows.
    pub(crate) names: Vec<String>,
    pub(crate) rows: Vec<String>,
}

impl FamilyAnswer {
    fn is_derived(&self) -> bool {
        self.names.first().is_some_and(|n| n == "same")
    }
}

impl TemplateParagraph {
    fn new(text: &str) -> Self {
        let (mut lines, mut answers) = (Vec::new(), Vec::<FamilyAnswer>::new());
        for line in text.lines() {
            if let Some(names) = line.strip_prefix("----") {
                let names = names.split_whitespace().map(str::to_owned).collect();
                answers.push(FamilyAnswer { names, rows: Vec::new() });
            } else if let Some(answer) = answers.last_mut() {
                answer.rows.push(line.to_owned());
            } else {
                lines.push(line.to_owned());
            }
        }
        Self { lines, answers }
    }

    /// Returns the functions with their operators if the paragraph is a line `functions`, otherwise
    /// `None`.
    fn functions(&self) -> Option<Vec<(&str, &str)>> {
        let names = self.lines.first()?.strip_prefix("functions ")?;
        Some(names.split_whitespace().map(|n| n.split_once(':').unwrap_or((n, ""))).collect())
    }

    pub(crate) fn has_written_answers(&self) -> bool {
        self.answers.iter().any(|a| !a.is_derived())
    }
}

impl RecordTemplate {
    /// Reads a template. Panics if a record names a function that is not in its first line
    /// `functions`.
    pub(crate) fn read(path: &Path) -> Self {
        let text = fs::read_to_string(path).unwrap();
        let paragraphs = text.trim_end().split("\n\n").map(TemplateParagraph::new).collect();
        let template = Self { path: path.to_owned(), paragraphs };
        let family: Vec<_> = template.functions().into_iter().map(|(name, _)| name).collect();
        assert!(!family.is_empty(), "{} has no line `functions`", path.display());
        for paragraph in &template.paragraphs {
            let applied = paragraph.functions().into_iter().flatten().map(|(name, _)| name);
            let written = paragraph.answers.iter().filter(|a| !a.is_derived());
            let answered = written.flat_map(|a| &a.names).map(String::as_str);
            for name in applied.chain(answered) {
                assert!(
                    family.iter().any(|f| f == name),
                    "{}: the first line `functions` lacks {name}",
                    path.display()
                );
            }
        }
        template
    }

    /// Returns the functions of the family, each with its operator.
    pub(crate) fn functions(&self) -> Vec<(String, String)> {
        let first = self.paragraphs.iter().find_map(TemplateParagraph::functions);
        let first = first.unwrap_or_default().into_iter();
        first.map(|(name, operator)| (name.to_owned(), operator.to_owned())).collect()
    }

    /// Returns the indices of the paragraphs that apply to `function`.
    pub(crate) fn paragraphs_of(&self, function: &str) -> Vec<usize> {
        let mut applies = false;
        let mut positions = Vec::new();
        for (i, paragraph) in self.paragraphs.iter().enumerate() {
            if let Some(functions) = paragraph.functions() {
                applies = functions.iter().any(|(name, _)| *name == function);
            } else if applies {
                positions.push(i);
            }
        }
        positions
    }

    /// Returns the result of the record at `position` for `function`, or `None` if the template
    /// lacks it.
    pub(crate) fn answer(&self, position: usize, function: &str) -> Option<Vec<String>> {
        let answers = &self.paragraphs[position].answers;
        let own = answers.iter().find(|a| a.names.iter().any(|n| n == function));
        let common = || answers.iter().find(|a| a.names.is_empty() || a.is_derived());
        let answer = own.or_else(common)?;
        if !answer.is_derived() {
            return Some(answer.rows.clone());
        }
        let previous = self.paragraphs_of(function).into_iter().rev();
        let previous = previous
            .filter(|i| *i < position)
            .find(|i| self.paragraphs[*i].has_written_answers())?;
        let mut rows = self.answer(previous, function)?;
        let first_values = &answer.names[1..];
        rows.retain(|row| {
            let first = row.split(' ').next().unwrap_or_default();
            first_values.is_empty() || first_values.iter().any(|v| v == first)
        });
        Some(rows)
    }

    /// Returns whether the record at `position` needs a result for `function` that the template
    /// lacks.
    pub(crate) fn lacks_answer(&self, position: usize, function: &str) -> bool {
        !self.paragraphs[position].answers.is_empty() && self.answer(position, function).is_none()
    }

    /// Returns the paragraph at `position` for one function, in the syntax of sqllogictest.
    pub(crate) fn expand(&self, position: usize, function: &str, operator: &str) -> String {
        let paragraph = &self.paragraphs[position];
        if let Some(file) = paragraph.lines[0].strip_prefix("include ") {
            let path = self.path.parent().unwrap().join(file);
            return fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        }
        let mut lines = paragraph.lines.clone();
        if !paragraph.answers.is_empty() {
            lines.push("----".to_owned());
            lines.extend(self.answer(position, function).unwrap_or_default());
        }
        lines.join("\n").replace("{function}", function).replace("{operator}", operator)
    }
}

/// Returns the paths of the `.slt` files in a folder, sorted.
pub(crate) fn list_records(folder: &Path) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|f| f.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|e| e == "slt"));
    files.sort();
    assert!(!files.is_empty(), "{} has no .slt files", folder.display());
    files
}

/// Reads the records of a folder and those of the templates in its folder `templates`.
pub(crate) fn read_scripts(folder: &Path) -> Vec<RecordScript> {
    let mut scripts = Vec::new();
    for path in list_records(folder) {
        let records = parse_file(&path).unwrap_or_else(|e| panic!("{e}"));
        scripts.push(RecordScript { name: path.display().to_string(), records });
    }
    for path in list_records(&folder.join("templates")) {
        let template = RecordTemplate::read(&path);
        for (function, operator) in template.functions() {
            let name = format!("{} for {function}", path.display());
            let mut text = String::new();
            for position in template.paragraphs_of(&function) {
                let paragraph = template.expand(position, &function, &operator);
                assert!(
                    !template.lacks_answer(position, &function),
                    "{name}: this record has no answer of the function; run \
                     SERRATE_BLESS=1 cargo test --test slt\n{paragraph}"
                );
                text.push_str(&paragraph);
                text.push_str("\n\n");
            }
            let records = parse_with_name(&text, name.as_str()).unwrap_or_else(|e| panic!("{e}"));
            scripts.push(RecordScript { name, records });
        }
    }
    scripts
}

//! A JSON parser that keeps numbers as text, so that `1` and `1.0` differ and nothing is rounded.

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Json {
    Null,
    Bool(bool),
    /// The text of the number in the file.
    Number(String),
    Text(String),
    List(Vec<Json>),
    /// Names and values of the members, in the order of the file.
    Object(Vec<(String, Json)>),
}

impl Json {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let mut parser = Parser { bytes: text.as_bytes(), at: 0 };
        let value = parser.value()?;
        match parser.next() {
            None => Ok(value),
            Some(_) => Err(parser.wrong("nothing more")),
        }
    }

    /// Returns a member of an object, or `None` if it is absent or null.
    pub(crate) fn get(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Object(members) => {
                members.iter().find(|(n, v)| n == name && *v != Self::Null).map(|(_, v)| v)
            }
            _ => None,
        }
    }

    pub(crate) fn members(&self) -> Result<&[(String, Self)], String> {
        match self {
            Self::Object(members) => Ok(members),
            other => Err(format!("expected an object, found {other:?}")),
        }
    }

    pub(crate) fn list(&self) -> Result<&[Self], String> {
        match self {
            Self::List(list) => Ok(list),
            other => Err(format!("expected a list, found {other:?}")),
        }
    }

    pub(crate) fn text(&self) -> Result<&str, String> {
        match self {
            Self::Text(text) => Ok(text),
            other => Err(format!("expected a text, found {other:?}")),
        }
    }

    pub(crate) fn bool(&self) -> Result<bool, String> {
        match self {
            Self::Bool(b) => Ok(*b),
            other => Err(format!("expected true or false, found {other:?}")),
        }
    }

    /// Parses a number as the integer type `T`. A fraction or an exponent is an error.
    pub(crate) fn int<T: std::str::FromStr>(&self) -> Result<T, String> {
        match self {
            Self::Number(text) => text.parse().map_err(|_| format!("{text} is no such integer")),
            other => Err(format!("expected an integer, found {other:?}")),
        }
    }

    pub(crate) fn float(&self) -> Result<f64, String> {
        match self {
            Self::Number(text) => text.parse().map_err(|_| format!("{text} is no number")),
            Self::Text(text) => match text.as_str() {
                "NaN" => Ok(f64::NAN),
                "Infinity" => Ok(f64::INFINITY),
                "-Infinity" => Ok(f64::NEG_INFINITY),
                _ => Err(format!("expected a number, found the text {text:?}")),
            },
            other => Err(format!("expected a number, found {other:?}")),
        }
    }
}

struct Parser<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Parser<'_> {
    fn wrong(&self, expected: &str) -> String {
        let found: String =
            String::from_utf8_lossy(&self.bytes[self.at..]).chars().take(20).collect();
        format!("byte {}: expected {expected}, found {found:?}", self.at)
    }

    fn next(&mut self) -> Option<u8> {
        while self.bytes.get(self.at).is_some_and(u8::is_ascii_whitespace) {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    fn accept(&mut self, byte: u8) -> bool {
        let found = self.next() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// Calls `one` for each element up to the byte `end`, and reads the commas between the
    /// elements.
    fn each(
        &mut self,
        end: u8,
        mut one: impl FnMut(&mut Self) -> Result<(), String>,
    ) -> Result<(), String> {
        self.at += 1;
        if self.accept(end) {
            return Ok(());
        }
        loop {
            one(self)?;
            if self.accept(end) {
                return Ok(());
            }
            if !self.accept(b',') {
                return Err(self.wrong("a comma or the end"));
            }
        }
    }

    fn value(&mut self) -> Result<Json, String> {
        match self.next() {
            Some(b'{') => {
                let mut members: Vec<(String, Json)> = Vec::new();
                self.each(b'}', |p| {
                    p.next();
                    let name = p.string()?;
                    if members.iter().any(|(n, _)| *n == name) {
                        return Err(p.wrong("another name"));
                    }
                    if !p.accept(b':') {
                        return Err(p.wrong("a colon"));
                    }
                    members.push((name, p.value()?));
                    Ok(())
                })?;
                Ok(Json::Object(members))
            }
            Some(b'[') => {
                let mut list = Vec::new();
                self.each(b']', |p| {
                    list.push(p.value()?);
                    Ok(())
                })?;
                Ok(Json::List(list))
            }
            Some(b'"') => self.string().map(Json::Text),
            _ => {
                let rest = &self.bytes[self.at..];
                let end = rest.iter().position(|b| b",]} \t\r\n".contains(b)).unwrap_or(rest.len());
                let word = String::from_utf8_lossy(&rest[..end]).into_owned();
                let value = match word.as_str() {
                    "null" => Json::Null,
                    "true" => Json::Bool(true),
                    "false" => Json::Bool(false),
                    number
                        if number.parse::<f64>().is_ok() && !number.contains(['n', 'N', 'y']) =>
                    {
                        Json::Number(word)
                    }
                    _ => return Err(self.wrong("a value")),
                };
                self.at += end;
                Ok(value)
            }
        }
    }

    fn string(&mut self) -> Result<String, String> {
        let start = self.at;
        let mut end = start + 1;
        while let Some(b) = self.bytes.get(end).filter(|b| **b != b'"') {
            end += if *b == b'\\' { 2 } else { 1 };
        }
        let text = self.bytes.get(start..=end).ok_or_else(|| self.wrong("a text"))?;
        let text = serde_json::from_slice(text).map_err(|e| format!("byte {start}: {e}"))?;
        self.at = end + 1;
        Ok(text)
    }
}

#[test]
fn numbers_keep_the_text_of_the_file() {
    let json = Json::parse(r#"{"a": [1, 1.0, -2e3, 18446744073709551615], "b": "x\n", "c": null}"#);
    let json = json.unwrap();
    let list = json.get("a").unwrap().list().unwrap();
    assert_eq!(list[0], Json::Number("1".into()));
    assert_eq!(list[1], Json::Number("1.0".into()));
    assert_eq!(list[3].int::<u64>(), Ok(u64::MAX));
    assert_eq!(list[2].float(), Ok(-2000.0));
    assert!(list[1].int::<i64>().is_err());
    assert_eq!(json.get("b").unwrap().text(), Ok("x\n"));
    assert!(json.get("c").is_none() && json.get("d").is_none());
    for wrong in ["", "[1,]", "{\"a\":1,\"a\":2}", "nan", "[1 2]", "1 2", "\"open"] {
        assert!(Json::parse(wrong).is_err(), "{wrong}");
    }
}

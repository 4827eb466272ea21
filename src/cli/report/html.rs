//! Writes HTML. Every text and every value of an attribute is escaped, so that data cannot become
//! markup.

#[derive(Default)]
pub(super) struct HtmlWriter {
    out: String,
}

pub(super) type HtmlAttributes<'a> = &'a [(&'static str, &'a str)];

impl HtmlWriter {
    pub(super) fn open(&mut self, tag: &'static str, attributes: HtmlAttributes<'_>) {
        self.start_tag(tag, attributes);
        self.out.push('>');
    }

    pub(super) fn close(&mut self, tag: &'static str) {
        self.out.push_str("</");
        self.out.push_str(tag);
        self.out.push_str(">\n");
    }

    pub(super) fn write_empty(&mut self, tag: &'static str, attributes: HtmlAttributes<'_>) {
        self.start_tag(tag, attributes);
        self.out.push_str("/>");
    }

    pub(super) fn write_element(
        &mut self,
        tag: &'static str,
        attributes: HtmlAttributes<'_>,
        text: impl AsRef<str>,
    ) {
        self.open(tag, attributes);
        self.write_text(text);
        self.close(tag);
    }

    pub(super) fn write_text(&mut self, text: impl AsRef<str>) {
        escape_into(text.as_ref(), &mut self.out);
    }

    /// Writes markup that is part of the program, without escaping it.
    pub(super) fn write_markup(&mut self, markup: &'static str) {
        self.out.push_str(markup);
    }

    pub(super) fn finish(self) -> String {
        self.out
    }

    fn start_tag(&mut self, tag: &'static str, attributes: HtmlAttributes<'_>) {
        self.out.push('<');
        self.out.push_str(tag);
        for (name, value) in attributes {
            self.out.push(' ');
            self.out.push_str(name);
            self.out.push_str("=\"");
            escape_into(value, &mut self.out);
            self.out.push('"');
        }
    }
}

/// Escapes markup, and writes control characters and characters that reorder text as visible
/// escapes such as `\u{202e}`.
fn escape_into(text: &str, out: &mut String) {
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{fffe}' | '\u{ffff}' => {
                out.extend(c.escape_unicode());
            }
            c if c.is_control() => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_does_not_become_markup() {
        let mut html = HtmlWriter::default();
        html.open("p", &[("title", "a\"b'c<d>&")]);
        html.write_text("<script>alert(1)</script>\u{0}\n\u{202e}x");
        html.close("p");
        html.write_empty("hr", &[]);
        assert_eq!(
            html.finish(),
            "<p title=\"a&quot;b&#39;c&lt;d&gt;&amp;\">&lt;script&gt;alert(1)&lt;/script&gt;\\u{0}\\n\\u{202e}x</p>\n<hr/>"
        );
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Charset {
    Utf8,
    Ascii,
}

impl Charset {
    /// Returns the character set of the locale, or UTF-8 if no locale is set, as in containers.
    pub(in crate::cli) fn from_locale() -> Self {
        let set = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
        Self::from_name(["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set).as_deref())
    }

    fn from_name(locale: Option<&str>) -> Self {
        let name = locale.unwrap_or("UTF-8").to_ascii_lowercase().replace('-', "");
        if name.contains("utf8") { Self::Utf8 } else { Self::Ascii }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_locale_names_the_character_set() {
        for utf8 in [None, Some("en_US.UTF-8"), Some("C.utf8"), Some("de_DE.UTF8@euro")] {
            assert_eq!(Charset::from_name(utf8), Charset::Utf8);
        }
        for other in ["C", "POSIX", "en_US.ISO-8859-1", "ja_JP.eucJP"] {
            assert_eq!(Charset::from_name(Some(other)), Charset::Ascii);
        }
    }
}

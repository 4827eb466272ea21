use crate::error::{Error, Result};

/// Side on which lists are padded, at every level.
///
/// Longer lists are truncated on the same side: `Right` keeps the first elements, `Left` the last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum PaddingSide {
    /// Values first, then padding: `[1, 2, 0]`.
    #[default]
    Right,
    /// Padding first, then values: `[0, 1, 2]`.
    Left,
}

/// Parses `left` and `right`.
impl std::str::FromStr for PaddingSide {
    type Err = Error;

    fn from_str(s: &str) -> Result<Self> {
        match s {
            "right" => Ok(Self::Right),
            "left" => Ok(Self::Left),
            _ => Err(Error::invalid(format!("the padding side is {s:?}; use 'left' or 'right'"))),
        }
    }
}

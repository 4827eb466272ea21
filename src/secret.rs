//! Comparison of secrets that machines and clients send with their requests.

/// Compares secrets in a time that does not depend on the number of equal bytes.
pub(crate) fn is_equal_secret(a: &[u8], b: &[u8]) -> bool {
    a.len() == b.len() && a.iter().zip(b).fold(0, |all, (x, y)| all | (x ^ y)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_compared_whole() {
        assert!(is_equal_secret(b"secret", b"secret"));
        assert!(!is_equal_secret(b"secret", b"secre"));
        assert!(!is_equal_secret(b"secret", b"Secret"));
    }
}

//! Suggestions for misspelt keys and names in messages of the reader.

use crate::names::nearest;

/// Known name that is closest to the unknown one in a message of the reader, such as "unknown key
/// `jbos`, expected one of `jobs`, `seed`". `None` where no known name is close.
pub(super) fn suggestion(message: &str) -> Option<&str> {
    if !message.starts_with("unknown key") && !message.starts_with("unknown choice") {
        return None;
    }
    let mut quoted = message.split('`').skip(1).step_by(2);
    let unknown = quoted.next()?;
    nearest(unknown, quoted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unknown_name_is_the_first_one_in_the_message() {
        assert_eq!(suggestion("unknown key `jbos`, expected one of `hours`, `jobs`"), Some("jobs"));
        assert_eq!(suggestion("unknown choice `profilled`, expected `oracle` or `profiled`"), Some("profiled"));
        assert_eq!(suggestion("the key `name` is missing"), None);
    }
}

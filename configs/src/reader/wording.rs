//! Messages of the parser in the words of a user: keys and values, and no type of Rust.

/// Message about a key or a value that does not fit, in words that the reference uses: text, whole
/// number, list, table. Other messages stay as they are.
pub(super) fn plain(message: &str) -> String {
    let found = |kind: &str| message.strip_prefix(kind)?.rsplit_once(", expected ");
    if let Some((found, expected)) = found("invalid type: ") {
        return format!("expected {}, found {}", kind(expected), value(found));
    }
    if let Some((found, expected)) = found("invalid value: ") {
        return format!("expected {}, found {}", range(expected), value(found));
    }
    if let Some((length, expected)) = found("invalid length ") {
        return format!("expected {}, found a list of {length}", kind(expected));
    }
    if let Some(rest) = message.strip_prefix("unknown field ") {
        return format!("unknown key {}", rest.replace("there are no fields", "there are no keys"));
    }
    if let Some(rest) = message.strip_prefix("unknown variant ") {
        return format!("unknown choice {}", rest.replace("there are no variants", "there are no choices"));
    }
    if let Some(key) = message.strip_prefix("missing field ") {
        return format!("the key {key} is missing");
    }
    if let Some((keys, known)) =
        message.strip_prefix("unexpected keys in table: ").and_then(|rest| rest.split_once(", available keys: "))
    {
        let quoted = |names: &str| names.split(", ").map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        return format!("unknown key {}, expected {}", quoted(keys), quoted(known));
    }
    if message.starts_with("data did not match any variant") {
        return "expected another form of value".into();
    }
    match message {
        "wanted string or table" => "expected a text or a table".into(),
        "wanted exactly 1 element, found 0 elements" => "expected one key in the table, found none".into(),
        "invalid socket address syntax" => "expected an IP address and a port, such as \"10.0.0.1:7443\"".into(),
        other => other.into(),
    }
}

/// Value that was found, as the parser describes it.
fn value(found: &str) -> String {
    let quoted = |kind: &str| found.strip_prefix(kind).map(|rest| rest.trim_matches('`'));
    if let Some(text) = found.strip_prefix("string ") {
        return format!("the text {text}");
    }
    if let Some(plain) = quoted("integer ").or_else(|| quoted("floating point ")).or_else(|| quoted("boolean ")) {
        return plain.into();
    }
    match found {
        "sequence" => "a list".into(),
        "map" => "a table".into(),
        other => other.into(),
    }
}

/// Kind of value that was expected, as the parser describes it.
fn kind(expected: &str) -> String {
    let tuple = ["a tuple of size ", "an array of length "];
    if let Some(length) = tuple.iter().find_map(|tuple| expected.strip_prefix(tuple)) {
        return format!("a list of {length}");
    }
    let words = match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" | "i8" | "i16" | "i32" | "i64" | "isize" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a string" => "a text",
        "path string" => "a path as text",
        "socket address" => "an IP address and a port as text",
        "a sequence" => "a list",
        "a map" => "a table",
        "string or table" | "variant identifier" => "a text or a table",
        other => {
            let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| other.starts_with(prefix));
            match () {
                () if starts(&["a nonzero ", "NonZero"]) => "a whole number of at least 1",
                () if starts(&["struct ", "internally tagged enum "]) => "a table",
                () if starts(&["enum "]) => "a text or a table",
                () if starts(&["tuple struct ", "tuple variant ", "unit "]) => "another form of value",
                () => other,
            }
        }
    };
    words.into()
}

/// Values that were expected in the place of one that has the right kind.
fn range(expected: &str) -> String {
    let words = match expected {
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65535",
        "u32" => "a whole number from 0 to 4294967295",
        "u64" | "usize" => "a whole number of at least 0",
        "i8" => "a whole number from -128 to 127",
        "i16" => "a whole number from -32768 to 32767",
        "i32" => "a whole number from -2147483648 to 2147483647",
        other => return kind(other),
    };
    words.into()
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn no_type_of_rust_is_left() {
        for (message, words) in [
            (r#"invalid type: string "x", expected usize"#, r#"expected a whole number, found the text "x""#),
            ("invalid type: floating point `1.5`, expected u32", "expected a whole number, found 1.5"),
            ("invalid type: boolean `true`, expected f64", "expected a number, found true"),
            ("invalid type: integer `1`, expected struct CycleConfig", "expected a table, found 1"),
            ("invalid type: map, expected a sequence", "expected a list, found a table"),
            ("invalid value: integer `-1`, expected u32", "expected a whole number from 0 to 4294967295, found -1"),
            ("invalid value: integer `0`, expected a nonzero usize", "expected a whole number of at least 1, found 0"),
            ("invalid length 3, expected a tuple of size 2", "expected a list of 2, found a list of 3"),
            ("unknown field `a`, expected `b` or `c`", "unknown key `a`, expected `b` or `c`"),
            ("unknown variant `a`, expected `b` or `c`", "unknown choice `a`, expected `b` or `c`"),
            ("missing field `name`", "the key `name` is missing"),
            ("unexpected keys in table: after, available keys: after_ms", "unknown key `after`, expected `after_ms`"),
            ("name \"..\" is refused", "name \"..\" is refused"),
        ] {
            assert_eq!(plain(message), words);
        }
    }
}

//! Times in dates.

use jiff::civil::DateTime;

/// Seconds since 1970 of `YYYY-MM-DD hh:mm:ss`, with a `T` in place of the blank or not. An offset `+hh:mm` or `Z`
/// behind it counts; without one, the time is taken as it is.
pub(super) fn seconds(text: &[u8]) -> Option<i64> {
    let number = |from: usize, to: usize| -> Option<i64> {
        let digits = text.get(from..to)?;
        digits.iter().try_fold(0, |number, byte| byte.is_ascii_digit().then(|| number * 10 + i64::from(byte - b'0')))
    };
    let separated = matches!(text.len(), 19 | 20 | 25)
        && text[4] == b'-'
        && text[7] == b'-'
        && matches!(text[10], b' ' | b'T')
        && text[13] == b':'
        && text[16] == b':';
    if !separated {
        return None;
    }
    let offset = match text.get(19..) {
        Some(b"" | b"Z") | None => 0,
        Some(rest) => {
            let sign = match rest[0] {
                b'+' => 1,
                b'-' => -1,
                _ => return None,
            };
            (rest.get(3) == Some(&b':')).then_some(())?;
            sign * (number(20, 22)? * 3600 + number(23, 25)? * 60)
        }
    };
    // Four digits and two digits fit into these types, whatever they are.
    let date = DateTime::new(number(0, 4)? as i16, number(5, 7)? as i8, number(8, 10)? as i8, 0, 0, 0, 0).ok()?;
    let days = date.date().since((jiff::Unit::Day, jiff::civil::date(1970, 1, 1))).ok()?.get_days();
    let (hours, minutes, secs) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    let clock = hours * 3600 + minutes * 60 + secs - offset;
    (hours < 24 && minutes < 60 && secs < 60).then_some(i64::from(days) * 86_400 + clock)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_an_offset_or_none() {
        assert_eq!(seconds(b"1970-01-02 00:00:01"), Some(86_401));
        assert_eq!(seconds(b"1970-01-02T08:00:01+08:00"), Some(86_401));
        assert_eq!(seconds(b"1970-01-01 23:30:01-00:30"), Some(86_401));
        assert_eq!(seconds(b"1970-01-02T00:00:01Z"), Some(86_401));
        for wrong in [
            "",
            "1970-01-02 00:00:01+",
            "1970-01-02 00:00:01z",
            "Unknown",
            "1970-01-02 24:00:00",
            "1970-13-02 00:00:00",
            "1970-01-02 00:00:00 08:00",
        ] {
            assert_eq!(seconds(wrong.as_bytes()), None, "{wrong}");
        }
    }
}

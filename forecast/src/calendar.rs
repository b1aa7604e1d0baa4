//! Calendar: the number of steps in a day and in a week.
//!
//! Seasons are counted in whole steps, so a step that does not divide the day has no daily season:
//! the answer is `None` and not a rounded number that would drift through the day and smear the
//! shape. Days are 24 hours of UTC; a series in local time with clock changes has to be brought to
//! UTC by its importer.

/// Milliseconds in a day of 24 hours.
pub const MILLIS_PER_DAY: i64 = 24 * 60 * 60 * 1000;

/// Milliseconds in a week of seven days.
pub const MILLIS_PER_WEEK: i64 = 7 * MILLIS_PER_DAY;

/// Steps of `step_millis` in a day, or `None` when a day is not a whole number of them.
pub fn steps_per_day(step_millis: i64) -> Option<usize> {
    whole_steps(MILLIS_PER_DAY, step_millis)
}

/// Steps of `step_millis` in a week, or `None` when a week is not a whole number of them.
pub fn steps_per_week(step_millis: i64) -> Option<usize> {
    whole_steps(MILLIS_PER_WEEK, step_millis)
}

fn whole_steps(span_millis: i64, step_millis: i64) -> Option<usize> {
    if step_millis <= 0 || span_millis % step_millis != 0 {
        return None;
    }
    usize::try_from(span_millis / step_millis).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_minutes_give_144_steps_a_day() {
        assert_eq!(steps_per_day(10 * 60 * 1000), Some(144));
        assert_eq!(steps_per_week(10 * 60 * 1000), Some(1008));
    }

    #[test]
    fn a_step_that_does_not_divide_has_no_season() {
        assert_eq!(steps_per_day(57_000), None, "57 s, as in the GenAI trace");
        assert_eq!(steps_per_day(7 * 60 * 60 * 1000), None);
        assert_eq!(steps_per_week(7 * 60 * 60 * 1000), Some(24), "168 h are 24 times 7 h");
        assert_eq!(steps_per_day(MILLIS_PER_WEEK), None, "longer than a day");
    }

    #[test]
    fn a_step_that_is_not_positive_has_no_season() {
        assert_eq!(steps_per_day(0), None);
        assert_eq!(steps_per_week(-1000), None);
    }
}

//! Words of predicted starts, for every program that prints them.

use super::interval::WaitInterval;
use super::reasons::RoomMade;

/// Jobs and nodes that a sentence names before it counts the others.
const NAMED: usize = 5;
const DAY: i64 = 86_400_000;
/// Clocks beyond this count milliseconds of the Unix epoch: simulated clocks begin at zero.
const REAL_CLOCK: i64 = 1_000_000_000_000;

/// Whether a moment of a clock in milliseconds is one of the Unix epoch, rather than of a simulated clock.
pub fn is_real_clock(at_ms: i64) -> bool {
    at_ms > REAL_CLOCK
}

/// A span of time in seconds as people say it; what is not finite is beyond the two months of a future.
pub fn span(secs: f64) -> String {
    match secs {
        secs if !secs.is_finite() => "more than two months".to_owned(),
        secs if secs < 60.0 => format!("{secs:.0} s"),
        secs if secs < 7200.0 => format!("{:.0} min", secs / 60.0),
        secs if secs < 172_800.0 => format!("{:.1} h", secs / 3600.0),
        secs => format!("{:.1} days", secs / 86_400.0),
    }
}

/// End of a running job in words: `on` is the accelerators that the job holds by the name of the node, and `at_ms` the
/// moment from which `ends` counts, milliseconds. The time of day is told where that clock is a real one.
pub fn end_words(name: &str, on: &[(&str, u32)], ends: &WaitInterval, at_ms: i64) -> String {
    let held = match on.len() {
        0..=NAMED => on.iter().map(|(node, gpus)| format!("{gpus} on {node}")).collect::<Vec<_>>().join(", "),
        count => format!("{} on {count} nodes", on.iter().map(|(_, gpus)| gpus).sum::<u32>()),
    };
    let WaitInterval { low, median, high } = *ends;
    let is_known = low == high;
    let range = if is_known { String::new() } else { format!(" ({} to {})", span(low), span(high)) };
    let clock = match is_real_clock(at_ms) {
        true if is_known && median.is_finite() => format!(", at {} UTC", clock(at_ms, median)),
        true if high.is_finite() => format!(", between {} and {} UTC", clock(at_ms, low), clock(at_ms, high)),
        _ => String::new(),
    };
    format!("{name} ({held}) ends in {}{range}{clock}", span(median))
}

/// Time of day `secs` after `at_ms`, with the number of days where that is another day.
fn clock(at_ms: i64, secs: f64) -> String {
    let time = at_ms.saturating_add((1e3 * secs).min(9e15) as i64);
    let minutes = time.rem_euclid(DAY) / 60_000;
    let hour = format!("{:02}:{:02}", minutes / 60, minutes % 60);
    match time.div_euclid(DAY) - at_ms.div_euclid(DAY) {
        0 => hour,
        1 => format!("{hour} tomorrow"),
        days => format!("{hour} in {days} days"),
    }
}

impl RoomMade {
    /// The sentence on the room, where `free` accelerators are free now and the jobs that end are called `names`, in
    /// the order of their ends, where they may be named.
    pub fn words(&self, free: u32, names: &[&str]) -> String {
        let Self { jobs, gpus, ahead } = *self;
        let accelerators = if gpus == 1 { "accelerator is" } else { "accelerators are" };
        if jobs == 0 {
            let rest = match gpus {
                1 => "the policy keeps it for other jobs, or it is on the wrong node",
                _ => "the policy keeps them for other jobs, or they are on the wrong nodes",
            };
            return format!("{gpus} {accelerators} free now, but {rest}");
        }
        let named: Vec<&str> = names.iter().take(jobs.min(NAMED)).copied().collect();
        let ending = match (&named[..], jobs - named.len()) {
            ([], 1) => "a running job ends".to_owned(),
            ([], jobs) => format!("{jobs} running jobs end"),
            ([one], 0) => format!("{one} ends"),
            ([first @ .., last], 0) => format!("{} and {last} end", first.join(", ")),
            (all, others) => format!("{} and {others} others end", all.join(", ")),
        };
        let free = match free {
            0 => String::new(),
            1 => ", with the one that is free now".to_owned(),
            free => format!(", with the {free} that are free now"),
        };
        let ahead = if ahead > 0 { format!("; jobs ahead of it ask for {ahead}") } else { String::new() };
        format!("{gpus} {accelerators} free after {ending}{free}{ahead}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_are_told_with_the_time_of_day_where_there_is_one() {
        let ends = WaitInterval { low: 600.0, median: 3600.0, high: 5400.0 };
        let morning = 20_000 * DAY + 9 * 3_600_000 + 3_600_000 / 2;
        assert_eq!(
            end_words("A", &[("n2", 4)], &ends, morning),
            "A (4 on n2) ends in 60 min (10 min to 90 min), between 09:40 and 11:00 UTC"
        );
        assert_eq!(
            end_words("A", &[("n1", 8), ("n2", 4)], &ends, morning).split(" ends").next(),
            Some("A (8 on n1, 4 on n2)")
        );
        // An hour after the beginning of a simulated clock.
        assert_eq!(end_words("A", &[("n2", 4)], &ends, 3_600_000), "A (4 on n2) ends in 60 min (10 min to 90 min)");
        let late = WaitInterval { low: 15.0 * 3600.0, median: 60.0 * 3600.0, high: 70.0 * 3600.0 };
        assert!(end_words("A", &[], &late, morning).ends_with("between 00:30 tomorrow and 07:30 in 3 days UTC"));
        let never = WaitInterval { high: f64::INFINITY, ..late };
        assert!(end_words("A", &[], &never, morning).ends_with("(15.0 h to more than two months)"));
    }

    #[test]
    fn room_is_told_with_the_jobs_that_make_it() {
        let room = RoomMade { jobs: 2, gpus: 8, ahead: 0 };
        assert_eq!(room.words(0, &["A", "B", "C"]), "8 accelerators are free after A and B end");
        let room = RoomMade { jobs: 1, gpus: 10, ahead: 2 };
        assert_eq!(
            room.words(2, &["A"]),
            "10 accelerators are free after A ends, with the 2 that are free now; jobs ahead of it ask for 2"
        );
        let names = ["a", "b", "c", "d", "e", "f", "g"];
        let room = RoomMade { jobs: 7, gpus: 7, ahead: 0 };
        assert_eq!(room.words(0, &names), "7 accelerators are free after a, b, c, d, e and 2 others end");
        assert_eq!(room.words(0, &[]), "7 accelerators are free after 7 running jobs end");
        let room = RoomMade { jobs: 0, gpus: 1, ahead: 0 };
        assert_eq!(
            room.words(1, &[]),
            "1 accelerator is free now, but the policy keeps it for other jobs, or it is on the wrong node"
        );
        let room = RoomMade { jobs: 0, gpus: 8, ahead: 0 };
        assert!(
            room.words(8, &[]).ends_with("but the policy keeps them for other jobs, or they are on the wrong nodes")
        );
    }
}

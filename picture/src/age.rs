//! How long ago something was, in one unit, as kubectl shows it.

use jiff::SignedDuration;

/// `12s`, `5m`, `3h` or `4d`. The future counts as now: clocks differ a little.
pub fn text(age: SignedDuration) -> String {
    let seconds = age.as_secs().max(0);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7_200 => format!("{}m", seconds / 60),
        7_200..172_800 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_unit_is_enough() {
        let ages =
            [(-3, "0s"), (119, "119s"), (120, "2m"), (7_199, "119m"), (90_000, "25h"), (172_800, "2d")];
        for (seconds, want) in ages {
            assert_eq!(text(SignedDuration::from_secs(seconds)), want);
        }
    }
}

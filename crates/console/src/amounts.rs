//! Bytes and times as people read them.

use std::time::Duration;

/// Hours, minutes and seconds.
pub fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    format!("{}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// A number of bytes with the unit that suits it.
pub fn bytes(count: f64) -> String {
    let units = ["B", "kB", "MB", "GB", "TB"];
    let power = units
        .iter()
        .enumerate()
        .rev()
        .map(|(i, _)| i)
        .find(|&i| count >= 1000f64.powi(i as i32))
        .unwrap_or(0);
    format!("{:.*} {}", usize::from(power > 0), count / 1000f64.powi(power as i32), units[power])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        assert_eq!(
            [bytes(0.0), bytes(999.0), bytes(1500.0), bytes(2.5e9)],
            ["0 B", "999 B", "1.5 kB", "2.5 GB"]
        );
        assert_eq!(clock(Duration::from_secs(3725)), "1:02:05");
    }
}

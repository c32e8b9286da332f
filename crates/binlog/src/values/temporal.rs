//! Dates and times, old and new. Zero dates and zero months or days are kept as they are; what no column can hold is an
//! error.

use crate::bytes::Bytes;
use crate::error::Problem;
use std::fmt;

/// A date; any part may be 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Date {
    /// 0 to 9999.
    pub year: u16,
    /// 0 to 12.
    pub month: u8,
    /// 0 to 31.
    pub day: u8,
}

/// A time of a day, or a time as TIME has it, of up to 838 hours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Time {
    /// Of a TIME only.
    pub is_negative: bool,
    /// 0 to 23; of a TIME up to 838.
    pub hour: u16,
    /// 0 to 59.
    pub minute: u8,
    /// 0 to 59.
    pub second: u8,
    /// 0 to 999999.
    pub microsecond: u32,
    /// How many digits of a fraction the column has.
    pub digits: u8,
}

/// A date and a time of a day, in no time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DateTime {
    /// The date.
    pub date: Date,
    /// The time.
    pub time: Time,
}

/// A moment, in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Timestamp {
    /// Unix time; 0 stands for 0000-00-00 00:00:00 if there is no fraction either.
    pub seconds: u32,
    /// 0 to 999999.
    pub microsecond: u32,
    /// How many digits of a fraction the column has.
    pub digits: u8,
}

fn refused(what: &str, number: impl fmt::Display) -> Problem {
    Problem::invalid(format!("{number} is no {what}"))
}

impl Date {
    fn new(year: u64, month: u64, day: u64) -> Result<Date, Problem> {
        if year > 9999 || month > 12 || day > 31 {
            return Err(refused("date", format!("{year}-{month}-{day}")));
        }
        Ok(Date { year: year as u16, month: month as u8, day: day as u8 })
    }

    /// Five bits for the day, four for the month.
    pub(crate) fn read(bytes: &mut Bytes<'_>) -> Result<Date, Problem> {
        let number = bytes.little(3, "a DATE")?;
        Date::new(number >> 9, number >> 5 & 15, number & 31)
    }
}

impl Time {
    fn new(hour: u64, minute: u64, second: u64, most_hours: u64) -> Result<Time, Problem> {
        if hour > most_hours || minute > 59 || second > 59 {
            return Err(refused("time", format!("{hour}:{minute}:{second}")));
        }
        Ok(Time { hour: hour as u16, minute: minute as u8, second: second as u8, ..Time::default() })
    }

    /// The digits of hours, minutes and seconds as one signed number.
    pub(crate) fn read_old(bytes: &mut Bytes<'_>) -> Result<Time, Problem> {
        let number = bytes.little(3, "a TIME")?;
        let is_negative = number & 0x80_0000 != 0;
        let size = if is_negative { (1 << 24) - number } else { number };
        Ok(Time { is_negative, ..Time::new(size / 10_000, size / 100 % 100, size % 100, 838)? })
    }

    /// A sign, a bit without use, ten bits for hours, six each for minutes and seconds, and the fraction, as one number
    /// that is raised so that none is negative.
    pub(crate) fn read(bytes: &mut Bytes<'_>, digits: u8) -> Result<Time, Problem> {
        let fraction_bytes = fraction_bytes(digits);
        let packed = bytes.big(3 + fraction_bytes, "a TIME")?;
        let fraction_bits = 8 * fraction_bytes;
        let zero = 0x80_0000u64 << fraction_bits;
        let (is_negative, size) = (packed < zero, packed.abs_diff(zero));
        let whole = size >> fraction_bits;
        let time = Time::new(whole >> 12 & 0x7ff, whole >> 6 & 63, whole & 63, 838)?;
        let microsecond = microseconds(size & ((1 << fraction_bits) - 1), digits)?;
        Ok(Time { is_negative, microsecond, digits, ..time })
    }
}

impl DateTime {
    /// All digits as one number.
    pub(crate) fn read_old(bytes: &mut Bytes<'_>) -> Result<DateTime, Problem> {
        let number = bytes.u64("a DATETIME")?;
        let (date, time) = (number / 1_000_000, number % 1_000_000);
        Ok(DateTime {
            date: Date::new(date / 10_000, date / 100 % 100, date % 100)?,
            time: Time::new(time / 10_000, time / 100 % 100, time % 100, 23)?,
        })
    }

    /// A sign that is always set, seventeen bits for years and months, five for days and for hours, six each for
    /// minutes and seconds; then the fraction.
    pub(crate) fn read(bytes: &mut Bytes<'_>, digits: u8) -> Result<DateTime, Problem> {
        let packed = bytes.big(5, "a DATETIME")?;
        let fraction = bytes.big(fraction_bytes(digits), "a DATETIME")?;
        if packed >> 39 != 1 {
            return Err(refused("DATETIME", format!("{packed:#x}")));
        }
        DateTime::of_packed(packed & !(1 << 39), microseconds(fraction, digits)?, digits)
    }

    /// Of the bits above the fraction, as DATETIME and JSON have them.
    pub(crate) fn of_packed(whole: u64, microsecond: u32, digits: u8) -> Result<DateTime, Problem> {
        let months = whole >> 22;
        let date = Date::new(months / 13, months % 13, whole >> 17 & 31)?;
        let time = Time::new(whole >> 12 & 31, whole >> 6 & 63, whole & 63, 23)?;
        Ok(DateTime { date, time: Time { microsecond, digits, ..time } })
    }
}

impl Timestamp {
    pub(crate) fn read_old(bytes: &mut Bytes<'_>) -> Result<Timestamp, Problem> {
        Ok(Timestamp { seconds: bytes.u32("a TIMESTAMP")?, ..Timestamp::default() })
    }

    pub(crate) fn read(bytes: &mut Bytes<'_>, digits: u8) -> Result<Timestamp, Problem> {
        let seconds = bytes.big(4, "a TIMESTAMP")? as u32;
        let fraction = bytes.big(fraction_bytes(digits), "a TIMESTAMP")?;
        Ok(Timestamp { seconds, microsecond: microseconds(fraction, digits)?, digits })
    }

    /// In UTC.
    pub fn date_time(&self) -> DateTime {
        let time = Time { microsecond: self.microsecond, digits: self.digits, ..Time::default() };
        if self.seconds == 0 && self.microsecond == 0 {
            return DateTime { date: Date::default(), time };
        }
        let (days, seconds) = (self.seconds / 86_400, self.seconds % 86_400);
        let time = Time {
            hour: (seconds / 3600) as u16,
            minute: (seconds / 60 % 60) as u8,
            second: (seconds % 60) as u8,
            ..time
        };
        DateTime { date: date_of_day(days), time }
    }
}

/// The date of a day since 1970-01-01, by years that begin in March, in eras of 400 of them.
fn date_of_day(days: u32) -> Date {
    const ERA: u32 = 146_097;
    let since = days + 719_468;
    let (era, day) = (since / ERA, since % ERA);
    let year = (day - day / 1460 + day / 36_524 - day / (ERA - 1)) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    Date { year: (year + era * 400 + next) as u16, month: month as u8, day: day as u8 }
}

fn fraction_bytes(digits: u8) -> usize {
    usize::from(digits).div_ceil(2)
}

/// Of a fraction in as many bytes as its digits need, two in each.
fn microseconds(fraction: u64, digits: u8) -> Result<u32, Problem> {
    let factor = [1, 10_000, 100, 1].get(fraction_bytes(digits)).copied().unwrap_or(1);
    match fraction * factor {
        micros @ 0..=999_999 => Ok(micros as u32),
        _ => Err(refused("fraction of a second", fraction)),
    }
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.is_negative { "-" } else { "" };
        write!(f, "{sign}{:02}:{:02}:{:02}", self.hour, self.minute, self.second)?;
        let digits = usize::from(self.digits.min(6));
        match digits {
            0 => Ok(()),
            _ => write!(f, ".{:0digits$}", self.microsecond / 10u32.pow(6 - digits as u32)),
        }
    }
}

impl fmt::Display for DateTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.date, self.time)
    }
}

/// In UTC.
impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.date_time().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text<T: fmt::Display>(bytes: &[u8], read: impl Fn(&mut Bytes<'_>) -> Result<T, Problem>) -> String {
        let mut left = Bytes(bytes);
        let value = read(&mut left).map_or_else(|_| "error".to_string(), |value| value.to_string());
        assert!(value == "error" || left.is_empty());
        value
    }

    #[test]
    fn old_types_are_read() {
        assert_eq!(text(&[0x71, 0xcf, 0x0f], Date::read), "2023-11-17");
        assert_eq!(text(&[0, 0, 0], Date::read), "0000-00-00");
        assert_eq!(text(&[0xff, 0xff, 0xff], Date::read), "error");
        assert_eq!(text(&20_231_117_120_103u64.to_le_bytes(), DateTime::read_old), "2023-11-17 12:01:03");
        assert_eq!(text(&20_231_317_120_103u64.to_le_bytes(), DateTime::read_old), "error");
        let time = |number: i32| text(&number.to_le_bytes()[..3], Time::read_old);
        assert_eq!(
            [time(8_385_959), time(-8_385_959), time(-1), time(60)].join(" "),
            "838:59:59 -838:59:59 -00:00:01 error"
        );
        assert_eq!(text(&[0; 4], Timestamp::read_old), "0000-00-00 00:00:00");
        assert_eq!(text(&1_700_224_863u32.to_le_bytes(), Timestamp::read_old), "2023-11-17 12:41:03");
        assert_eq!(text(&u32::MAX.to_le_bytes(), Timestamp::read_old), "2106-02-07 06:28:15");
        assert_eq!(text(&951_782_400u32.to_le_bytes(), Timestamp::read_old), "2000-02-29 00:00:00");
    }

    #[test]
    fn new_types_have_fractions() {
        let moment = [0x65, 0x57, 0x5f, 0x5f];
        for (digits, fraction, shown) in [
            (0, &[][..], ""),
            (1, &[50], ".5"),
            (2, &[5], ".05"),
            (3, &[0x04, 0xce], ".123"),
            (4, &[0x04, 0xd2], ".1234"),
            (6, &[0x01, 0xe2, 0x40], ".123456"),
        ] {
            let bytes = [&moment[..], fraction].concat();
            assert_eq!(
                text(&bytes, |bytes| Timestamp::read(bytes, digits)),
                format!("2023-11-17 12:41:03{shown}")
            );
        }
        assert_eq!(
            text(&[0x99, 0xb1, 0xa2, 0xca, 0x43, 0, 0, 1], |b| DateTime::read(b, 6)),
            "2023-11-17 12:41:03.000001"
        );
        assert_eq!(text(&[0x80, 0, 0, 0, 0], |b| DateTime::read(b, 0)), "0000-00-00 00:00:00");
        assert_eq!(text(&[0, 0, 0, 0, 0], |b| DateTime::read(b, 0)), "error");
        assert_eq!(text(&[0x80, 0, 0, 0, 60], |b| DateTime::read(b, 0)), "error");
        assert_eq!(text(&[0x99, 0xb1, 0xa2, 0xca, 0x43, 100], |b| DateTime::read(b, 1)), "error");
    }

    #[test]
    fn negative_times_have_fractions_that_go_the_other_way() {
        let time = |bytes: &[u8], digits| text(bytes, |bytes| Time::read(bytes, digits));
        assert_eq!(time(&[0x80, 0, 0], 0), "00:00:00");
        assert_eq!(time(&[0x80, 0, 1, 0x32], 2), "00:00:01.50");
        assert_eq!(time(&[0x7f, 0xff, 0xff, 0xff], 2), "-00:00:00.01");
        assert_eq!(time(&[0x7f, 0xff, 0xff, 0xce], 2), "-00:00:00.50");
        assert_eq!(time(&[0x7f, 0xff, 0xfe, 0xff, 0xff, 0xff], 6), "-00:00:01.000001");
        assert_eq!(time(&[0xb4, 0x6e, 0xfb], 0), "838:59:59");
        assert_eq!(time(&[0x4b, 0x91, 0x05], 0), "-838:59:59");
        assert_eq!(time(&[0xff, 0xff, 0xff], 0), "error");
    }
}

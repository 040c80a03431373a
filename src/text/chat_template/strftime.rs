//! A date with a time, and Python's `strftime` in the C locale. The clock is the caller's.

use std::fmt::Write;

const DAYS: [&str; 7] = [
    "Sunday",
    "Monday",
    "Tuesday",
    "Wednesday",
    "Thursday",
    "Friday",
    "Saturday",
];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];
const SECONDS_PER_DAY: i64 = 86_400;

/// Date and time of some place, without its time zone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalTime {
    /// Seconds since 1970 as the clock of the place shows them.
    seconds: i64,
}

/// A date of the Gregorian calendar.
struct Date {
    year: i64,
    /// 1 to 12.
    month: u8,
    /// 1 to 31.
    day: u8,
    /// 0 is January 1st.
    day_of_year: i64,
    /// 0 is Sunday.
    weekday: u8,
}

impl LocalTime {
    /// `unix_seconds` where clocks are `offset_minutes` ahead of UTC.
    pub fn new(unix_seconds: u64, offset_minutes: i32) -> LocalTime {
        // Beyond the year 9999 strftime is not defined.
        const MAX_SECONDS: i64 = 253_402_300_799;
        let seconds = i64::try_from(unix_seconds).unwrap_or(MAX_SECONDS);
        let seconds = seconds.min(MAX_SECONDS) + i64::from(offset_minutes) * 60;
        LocalTime { seconds }
    }

    /// Days are counted from March 1st of the year 0, so that leap days end a year. Source: H. Hinnant,
    /// "chrono-Compatible Low-Level Date Algorithms".
    fn date(self) -> Date {
        let days = self.seconds.div_euclid(SECONDS_PER_DAY);
        let shifted = days + 719_468;
        let era = shifted.div_euclid(146_097);
        let day_of_era = shifted.rem_euclid(146_097);
        let year_of_era =
            (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
        let day_from_march = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
        let month_from_march = (5 * day_from_march + 2) / 153;
        let day = day_from_march - (153 * month_from_march + 2) / 5 + 1;
        let month = (month_from_march + 2) % 12 + 1;
        let year = year_of_era + era * 400 + i64::from(month <= 2);
        let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
        let day_of_year = match month <= 2 {
            true => day_from_march - 306,
            false => day_from_march + 59 + i64::from(is_leap),
        };
        Date {
            year,
            // The remainders above bound them.
            month: month as u8,
            day: day as u8,
            day_of_year,
            weekday: (days + 4).rem_euclid(7) as u8,
        }
    }

    /// The text that `format` describes. A directive that is not known stays as it is.
    pub fn strftime(self, format: &str) -> String {
        let mut text = String::new();
        let mut rest = format.chars();
        while let Some(character) = rest.next() {
            if character != '%' {
                text.push(character);
                continue;
            }
            let after = rest.clone();
            let (is_unpadded, directive) = match rest.next() {
                Some('-') => (true, rest.next()),
                directive => (false, directive),
            };
            if !directive.is_some_and(|directive| self.write(directive, is_unpadded, &mut text)) {
                text.push('%');
                rest = after;
            }
        }
        text
    }

    /// Appends the value of a directive, or returns false.
    fn write(self, directive: char, is_unpadded: bool, text: &mut String) -> bool {
        let date = self.date();
        let second_of_day = self.seconds.rem_euclid(SECONDS_PER_DAY);
        let (hour, minute) = (second_of_day / 3600, second_of_day / 60 % 60);
        let hour12 = (hour + 11) % 12 + 1;
        let (weekday, month) = (usize::from(date.weekday), usize::from(date.month) - 1);
        let (number, width) = match directive {
            'Y' => (date.year, 0),
            'C' => (date.year / 100, 2),
            'y' => (date.year % 100, 2),
            'm' => (date.month.into(), 2),
            'd' => (date.day.into(), 2),
            'j' => (date.day_of_year + 1, 3),
            'H' => (hour, 2),
            'I' => (hour12, 2),
            'M' => (minute, 2),
            'S' => (second_of_day % 60, 2),
            'f' => (0, 6),
            'w' => (date.weekday.into(), 0),
            'u' => (i64::from((date.weekday + 6) % 7) + 1, 0),
            // Weeks from the first Sunday or Monday on.
            'U' => ((date.day_of_year + 7 - i64::from(date.weekday)) / 7, 2),
            'W' => {
                let from_monday = i64::from((date.weekday + 6) % 7);
                ((date.day_of_year + 7 - from_monday) / 7, 2)
            }
            _ => {
                let day = i64::from(date.day);
                let composed = match directive {
                    'B' => MONTHS[month].to_owned(),
                    'b' | 'h' => MONTHS[month][..3].to_owned(),
                    'A' => DAYS[weekday].to_owned(),
                    'a' => DAYS[weekday][..3].to_owned(),
                    'p' => (if hour < 12 { "AM" } else { "PM" }).to_owned(),
                    'e' if is_unpadded => day.to_string(),
                    'e' => format!("{day:2}"),
                    'k' => format!("{hour:2}"),
                    'l' => format!("{hour12:2}"),
                    'D' | 'x' => self.strftime("%m/%d/%y"),
                    'F' => self.strftime("%Y-%m-%d"),
                    'R' => self.strftime("%H:%M"),
                    'T' | 'X' => self.strftime("%H:%M:%S"),
                    'r' => self.strftime("%I:%M:%S %p"),
                    'c' => self.strftime("%a %b %e %H:%M:%S %Y"),
                    // The time has no time zone.
                    'z' | 'Z' => String::new(),
                    'n' => "\n".to_owned(),
                    't' => "\t".to_owned(),
                    '%' => "%".to_owned(),
                    _ => return false,
                };
                text.push_str(&composed);
                return true;
            }
        };
        let width = if is_unpadded { 0 } else { width };
        // Writing to a string does not fail.
        let _ = write!(text, "{number:0width$}");
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2026-07-15 12:34:56.
    const NOON: u64 = 1_784_118_896;

    #[test]
    fn directives() {
        let now = LocalTime::new(NOON, 0);
        for (format, expected) in [
            ("%Y-%m-%d", "2026-07-15"),
            ("%d %b %Y", "15 Jul 2026"),
            ("%B %-d, %Y", "July 15, 2026"),
            ("%A, %a", "Wednesday, Wed"),
            ("%H:%M:%S %I %p", "12:34:56 12 PM"),
            ("%j %U %W %w %u %y %C", "196 28 28 3 3 26 20"),
            (
                "%c|%x|%X|%D|%F|%R|%r|%h",
                "Wed Jul 15 12:34:56 2026|07/15/26|12:34:56|07/15/26|2026-07-15|12:34|12:34:56 PM|Jul",
            ),
            ("100% %% %Q %", "100% % %Q %"),
            ("%-m/%-d %e|%f|%z%Z|%n|%t", "7/15 15|000000||\n|\t"),
        ] {
            assert_eq!(now.strftime(format), expected, "{format}");
        }
    }

    #[test]
    fn the_calendar() {
        for (seconds, expected) in [
            (0, "1970-01-01 Thu 001"),
            (68_169_600, "1972-02-29 Tue 060"),
            (951_782_400, "2000-02-29 Tue 060"),
            (978_220_800, "2000-12-31 Sun 366"),
            (4_107_542_400, "2100-03-01 Mon 060"),
            (u64::MAX, "9999-12-31 Fri 365"),
        ] {
            let time = LocalTime::new(seconds, 0);
            assert_eq!(time.strftime("%F %a %j"), expected);
        }
        let time = |offset| LocalTime::new(0, offset).strftime("%F %R");
        assert_eq!(time(-90), "1969-12-31 22:30");
        assert_eq!(time(5 * 60 + 30), "1970-01-01 05:30");
    }
}

//! Dates as numbers, and back: days since 1970-01-01 00:00 UTC, with the time of day as a fraction, as in Python.
//!
//! A date is written as ISO 8601 has it: `2026-01-31`, or with a time, `2026-01-31T14:05:09Z`. A time without a zone
//! counts as UTC.
//!
//! ```
//! use sumout_data::dates::{DateStyle, days_of, text_of};
//! assert_eq!(days_of("1970-01-02"), Some(1.0));
//! assert_eq!(days_of("1970-01-02T18:00:00+06:00"), Some(1.5));
//! assert_eq!(text_of(1.5, DateStyle::Time), "1970-01-02T12:00:00");
//! assert_eq!(text_of(1.5, DateStyle::Day), "1970-01-02");
//! assert_eq!(days_of("31.01.2026"), None);
//! ```

use serde::{Deserialize, Serialize};

/// Whether the dates of a column have a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DateStyle {
    /// 2026-01-31.
    Day,
    /// 2026-01-31T14:05:09.
    Time,
}

/// A day of the Gregorian calendar.
struct Civil {
    year: i64,
    month: i64,
    day: i64,
}

const SECONDS_PER_DAY: f64 = 86_400.0;

/// The days of a text that is a date.
pub fn days_of(text: &str) -> Option<f64> {
    let (date, time) = match text.split_once(['T', ' ']) {
        Some((date, time)) => (date, Some(time)),
        None => (text, None),
    };
    let mut parts = date.split('-');
    let year = digits(parts.next()?, 4)?;
    let (month, day) = (digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
    let exists = (1..=12).contains(&month) && (1..=days_in(year, month)).contains(&day);
    if parts.next().is_some() || !exists {
        return None;
    }
    let seconds = time.map_or(Some(0.0), seconds_of)?;
    Some(days_from_civil(Civil { year, month, day }) as f64 + seconds / SECONDS_PER_DAY)
}

/// The style of a text that is a date.
pub fn style_of(text: &str) -> Option<DateStyle> {
    days_of(text)?;
    Some(if text.contains(':') {
        DateStyle::Time
    } else {
        DateStyle::Day
    })
}

/// The date of a number of days: of the day it falls on, or to the second.
pub fn text_of(days: f64, style: DateStyle) -> String {
    const MOST: f64 = 3_000_000.0; // about the years −6,000 to 10,000: four digits hold no more
    let seconds = (days.clamp(-MOST, MOST) * SECONDS_PER_DAY).round() as i64;
    let (day, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let Civil { year, month, day } = civil_from_days(day.clamp(FIRST_DAY, LAST_DAY));
    let date = format!("{year:04}-{month:02}-{day:02}");
    match style {
        DateStyle::Day => date,
        DateStyle::Time => {
            let (hour, minute) = (second / 3600, second / 60 % 60);
            format!("{date}T{hour:02}:{minute:02}:{:02}", second % 60)
        }
    }
}

/// The days of 0000-01-01 and 9999-12-31.
const FIRST_DAY: i64 = -719_528;
const LAST_DAY: i64 = 2_932_896;

/// A number of exactly so many digits.
fn digits(text: &str, count: usize) -> Option<i64> {
    let are_digits = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| are_digits)
}

/// The seconds of `14:05`, `14:05:09` or `14:05:09.5`, with `Z`, `+02:00` or nothing behind it.
fn seconds_of(time: &str) -> Option<f64> {
    let (clock, zone) = match time.find(['Z', '+', '-']) {
        Some(at) => time.split_at(at),
        None => (time, ""),
    };
    let mut parts = clock.split(':');
    let (hour, minute) = (digits(parts.next()?, 2)?, digits(parts.next()?, 2)?);
    let second = match parts.next() {
        Some(text) => {
            digits(text.get(..2)?, 2)?;
            text.parse()
                .ok()
                .filter(|_| text.len() == 2 || text.as_bytes()[2] == b'.')?
        }
        None => 0.0,
    };
    if parts.next().is_some() || hour > 23 || minute > 59 || !(0.0..60.0).contains(&second) {
        return None;
    }
    Some((hour * 3600 + minute * 60) as f64 + second - zone_seconds(zone)?)
}

/// How far a time zone is ahead of UTC.
fn zone_seconds(zone: &str) -> Option<f64> {
    if zone.is_empty() || zone == "Z" {
        return Some(0.0);
    }
    let (hour, minute) = zone[1..].split_once(':').unwrap_or((&zone[1..], "00"));
    let seconds = (digits(hour, 2)? * 3600 + digits(minute, 2)? * 60) as f64;
    match zone.as_bytes()[0] {
        b'+' => Some(seconds),
        b'-' => Some(-seconds),
        _ => None,
    }
}

fn days_in(year: i64, month: i64) -> i64 {
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        2 if is_leap => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days since 1970-01-01 in the Gregorian calendar. Years are counted from March, so that the leap day is their last;
/// 400 of them have 146,097 days.
fn days_from_civil(Civil { year, month, day }: Civil) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// The other way round.
fn civil_from_days(days: i64) -> Civil {
    let days = days + 719_468;
    let (era, day_of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let leap_days = day_of_era / 1460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = (month_from_march + 2) % 12 + 1;
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    Civil { year, month, day }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every day of 800 years, counted one by one.
    #[test]
    fn days_follow_each_other() {
        let mut days = days_of("1600-01-01").unwrap();
        assert_eq!(days, -135_140.0); // Python: (date(1600, 1, 1) - date(1970, 1, 1)).days
        for year in 1600..2400 {
            for month in 1..=12 {
                for day in 1..=days_in(year, month) {
                    let text = format!("{year}-{month:02}-{day:02}");
                    assert_eq!(
                        (days_of(&text), text_of(days, DateStyle::Day)),
                        (Some(days), text)
                    );
                    days += 1.0;
                }
            }
        }
    }

    #[test]
    fn times_and_zones() {
        let days = |text: &str| days_of(text).unwrap();
        assert_eq!(days("2026-11-17"), 20_774.0); // Python: (date(2026, 11, 17) - date(1970, 1, 1)).days
        assert_eq!(days("1970-01-01 06:00"), 0.25);
        assert_eq!(days("1970-01-01T00:00:00.5Z"), 0.5 / 86_400.0);
        assert_eq!(days("1970-01-01T02:00:00+02:00"), 0.0);
        assert_eq!(
            days("1969-12-31T22:30-0130".replace("0130", "01:30").as_str()),
            0.0
        );
        let text = "2026-11-17T08:09:10";
        assert_eq!(text_of(days(text), DateStyle::Time), text);
        assert_eq!(text_of(-0.25, DateStyle::Time), "1969-12-31T18:00:00");
        assert_eq!(text_of(1e30, DateStyle::Day), "9999-12-31");
        assert_eq!(text_of(-1e30, DateStyle::Day), "0000-01-01");
        assert_eq!(style_of("2026-11-17"), Some(DateStyle::Day));
        assert_eq!(style_of(text), Some(DateStyle::Time));
        for text in [
            "",
            "2026",
            "2026-13-01",
            "2026-02-29",
            "2026-2-1",
            "2026-02-01-",
            "17.11.2026",
            "2026-11-17T25:00",
            "2026-11-17T08",
            "2026-11-17T08:00:61",
            "2026-11-17T08:00x",
            "2026-11-17T08:00:1e",
            "2026-11-17T08:00+x",
            "2026-11-17T08:00:00é",
            "２026-11-17",
            "2026-11-17T08:00+é1",
        ] {
            assert_eq!(days_of(text), None, "{text}");
        }
    }
}

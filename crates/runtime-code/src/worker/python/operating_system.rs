//! What programs get when they ask for the machine: the time, and nothing else.

use std::time::{SystemTime, UNIX_EPOCH};

use monty_types::{ExcType, ExtFunctionResult, MontyDate, MontyDateTime, MontyException, MontyObject, OsFunctionCall};

const REFUSED: &str = "programs have no files, no environment, no network and no processes; call a tool that has what is needed";

/// Answers one request.
pub(crate) fn answer(call: OsFunctionCall) -> ExtFunctionResult {
    match call {
        OsFunctionCall::DateToday => {
            let now = now(0);
            ExtFunctionResult::Return(MontyObject::Date(MontyDate { year: now.year, month: now.month, day: now.day }))
        }
        OsFunctionCall::DateTimeNow(zone) => {
            let mut now = now(zone.as_ref().map_or(0, |zone| i64::from(zone.offset_seconds)));
            if let Some(zone) = zone {
                now.offset_seconds = Some(zone.offset_seconds);
                now.timezone_name = zone.name;
            }
            ExtFunctionResult::Return(MontyObject::DateTime(now))
        }
        refused => {
            let message = format!("{}: {REFUSED}", refused.name());
            ExtFunctionResult::Error(MontyException::new(ExcType::PermissionError, Some(message)))
        }
    }
}

/// The time now, so many seconds east of UTC, as a date without a zone.
fn now(offset_seconds: i64) -> MontyDateTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = i64::try_from(since.as_secs()).unwrap_or_default() + offset_seconds;
    let (year, month, day) = date_of(seconds.div_euclid(86_400));
    let time = seconds.rem_euclid(86_400);
    let part = |value: i64| u8::try_from(value).unwrap_or_default();
    MontyDateTime {
        year,
        month,
        day,
        hour: part(time / 3_600),
        minute: part(time / 60 % 60),
        second: part(time % 60),
        microsecond: since.subsec_micros(),
        offset_seconds: None,
        timezone_name: None,
    }
}

/// The Gregorian date of a day counted from 1970-01-01, by counting in years that start in March.
fn date_of(day: i64) -> (i32, u8, u8) {
    let day = day + 719_468;
    let era = day.div_euclid(146_097);
    let day_of_era = day.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (i32::try_from(year).unwrap_or(1970), u8::try_from(month).unwrap_or(1), u8::try_from(day_of_month).unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_dates() {
        for (day, date) in [
            (0, (1970, 1, 1)),
            (-1, (1969, 12, 31)),
            (59, (1970, 3, 1)),
            (11_016, (2000, 2, 29)),
            (19_782, (2024, 2, 29)),
            (20_819, (2027, 1, 1)),
        ] {
            assert_eq!(date_of(day), date, "{day}");
        }
    }
}

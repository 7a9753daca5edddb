//! What cron cannot say: every second Tuesday, the last day but one of each
//! quarter, every ten days – at a local time, over clock changes.
//!
//! ```text
//! cargo run --release -p examples --example calendar -- [FROM]
//! ```
//!
//! prints the next occurrences after FROM (RFC 3339; otherwise the spring of
//! 2026, when the clocks of Berlin go forward).

use beatline_core::{Error, Timestamp, Trigger};
use beatline_cron::{At, CalendarInterval, Weekday};

fn main() -> Result<(), Error> {
    let from = std::env::args().nth(1).unwrap_or_else(|| "2026-03-20T00:00:00Z".to_owned());
    let from: Timestamp = from.parse()?;
    let berlin = "Europe/Berlin";

    let intervals = [
        ("every ten days at nine", CalendarInterval::days(10).starting(2026, 3, 19).at(9, 0, 0).zone(berlin)?),
        (
            "every second Tuesday and Friday",
            CalendarInterval::weeks(2)
                .starting(2026, 3, 16)
                .on([Weekday::Tue, Weekday::Fri])
                .at(18, 30, 0)
                .zone(berlin)?,
        ),
        (
            "the last day but one of each quarter",
            CalendarInterval::months(3).starting(2026, 3, 1).on_day(-2).at(17, 0, 0).zone(berlin)?,
        ),
        // 02:30 does not exist on 29 March: the run is at 03:00.
        (
            "nightly, right where the clocks change",
            CalendarInterval::days(1).starting(2026, 3, 28).at(2, 30, 0).zone(berlin)?,
        ),
    ];
    for (name, interval) in &intervals {
        interval.validate()?;
        println!("{name}: {}", interval.describe());
        for instant in interval.upcoming(from, 4) {
            println!("    {instant}");
        }
    }

    let launch = At::local(2026, 7, 1, 8, 0, 0, berlin)?;
    println!("once: {}", launch.describe());
    Ok(())
}

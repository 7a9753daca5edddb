//! Cron without a string: the same schedules, and errors that name the field.
#![allow(clippy::unwrap_used)] // a test may panic, its helpers too

mod common;

use beatline_cron::{Cron, CronBuilder, Month, Weekday};
use common::{at, cron, dialect};

#[test]
fn what_is_built_is_what_is_written() {
    let pairs: Vec<(CronBuilder, &str, &str)> = vec![
        (Cron::builder(), "vixie5", "* * * * *"),
        (Cron::builder().hour(3), "vixie5", "0 3 * * *"),
        (Cron::builder().minute(30), "vixie5", "30 * * * *"),
        (Cron::builder().minute([0, 15, 30]).hour(9..=17), "vixie5", "0,15,30 9-17 * * *"),
        (Cron::builder().day_of_week(Weekday::Mon..=Weekday::Fri).hour(3), "vixie5", "0 3 * * mon-fri"),
        (Cron::builder().day_of_week(Weekday::Fri..=Weekday::Mon), "vixie5", "0 0 * * 5-7,1"),
        (Cron::builder().day_of_month(1), "vixie5", "0 0 1 * *"),
        (Cron::builder().day_of_month(-1), "ext5", "0 0 L * *"),
        (Cron::builder().day_of_month(-4..=-2).hour(1), "quartz6", "0 0 1 L-1,L-2,L-3 * ?"),
        (Cron::builder().month(Month::Mar), "vixie5", "0 0 1 3 *"),
        (Cron::builder().month(Month::Nov..=Month::Feb).hour(6), "vixie5", "0 6 * 11,12,1,2 *"),
        (Cron::builder().year(2030), "seven", "0 0 0 1 1 * 2030"),
        (Cron::builder().year(2030..=2032).hour(1), "seven", "0 0 1 * * * 2030-2032"),
        (Cron::builder().second(30), "six", "30 * * * * *"),
        (Cron::builder().every_seconds(15), "six", "*/15 * * * * *"),
        (Cron::builder().every_minutes(7).hour(2), "vixie5", "*/7 2 * * *"),
        (Cron::builder().every_hours(6), "vixie5", "0 */6 * * *"),
        (Cron::builder().weekday_nearest(15).hour(12), "ext5", "0 12 15W * *"),
        (Cron::builder().last_weekday_of_month().hour(12), "ext5", "0 12 LW * *"),
        (Cron::builder().nth_day_of_week(2, Weekday::Fri), "ext5", "0 0 * * fri#2"),
        (Cron::builder().last_day_of_week(Weekday::Sun), "ext5", "0 0 * * 0L"),
        (Cron::builder().day_of_month(13).day_of_week(Weekday::Fri), "vixie5", "0 0 */31,13 * 5"),
        (Cron::builder().day_of_month(13).day_of_week(Weekday::Fri).either_day(), "vixie5", "0 0 13 * 5"),
    ];
    for (builder, name, text) in pairs {
        for zone in ["UTC", "Europe/Berlin"] {
            let built = builder.clone().build().unwrap().zone(zone).unwrap();
            let written = cron(dialect(name), text, zone);
            let from = at("2026-02-20T00:00:00Z");
            // `*/31,13` has the first as well: it shows that both must match.
            let (mut a, mut b) = (built.upcoming(from, 400), written.upcoming(from, 400));
            if text.contains("*/31") {
                let is_13th =
                    |at: &beatline_core::Timestamp| at.to_string().contains("-13T") || at.to_string().contains("-12T2");
                b.retain(is_13th);
                a.truncate(b.len());
            }
            assert_eq!(a, b, "{built} as {text} in {zone}");
            assert_eq!(built.is_interval(), written.is_interval(), "{built} as {text}");
            assert_eq!(built.dialect(), None);
        }
    }
}

#[test]
#[allow(clippy::reversed_empty_ranges)] // that they are is what is tested
fn what_makes_no_sense_is_an_error_that_names_the_field() {
    let wrong: Vec<(CronBuilder, &str)> = vec![
        (Cron::builder().second(60), "second"),
        (Cron::builder().minute(5..=61), "minute"),
        (Cron::builder().hour(24), "hour"),
        (Cron::builder().hour(17..=9), "hour"),
        (Cron::builder().hour([]), "hour"),
        (Cron::builder().every_minutes(0), "minute"),
        (Cron::builder().day_of_month(0), "day_of_month"),
        (Cron::builder().day_of_month(32), "day_of_month"),
        (Cron::builder().day_of_month(-32), "day_of_month"),
        (Cron::builder().day_of_month(-1..=1), "day_of_month"),
        (Cron::builder().day_of_month([]), "day_of_month"),
        (Cron::builder().day_of_month(i8::MIN), "day_of_month"),
        (Cron::builder().weekday_nearest(0), "weekday_nearest"),
        (Cron::builder().weekday_nearest(32), "weekday_nearest"),
        (Cron::builder().nth_day_of_week(6, Weekday::Mon), "nth_day_of_week"),
        (Cron::builder().nth_day_of_week(0, Weekday::Mon), "nth_day_of_week"),
        (Cron::builder().day_of_week([]), "day_of_week"),
        (Cron::builder().month([]), "month"),
        (Cron::builder().year(1969), "year"),
        (Cron::builder().year(2200), "year"),
        (Cron::builder().year(2030..=2029), "year"),
    ];
    for (builder, field) in wrong {
        let shown = format!("{builder:?}");
        let error = builder.build().unwrap_err();
        assert_eq!(error.field(), Some(field), "{error} from {shown}");
    }
}

#[test]
fn a_built_trigger_describes_itself() {
    use beatline_core::Trigger;
    let job = Cron::builder().day_of_week(Weekday::Mon..=Weekday::Fri).hour([3, 15]).build().unwrap();
    assert_eq!(job.describe(), "cron hour 3,15, day of week mon-fri (UTC)");
}

//! Cron and calendar triggers for [beatline](https://docs.rs/beatline): right at
//! every clock change, exact about what never fires, in the dialect you name.
//!
//! ```
//! use beatline_core::Timestamp;
//! use beatline_cron::Cron;
//!
//! let reconcile = Cron::parse("0 3 * * mon-fri")?.zone("Asia/Shanghai")?;
//!
//! let from: Timestamp = "2026-01-02T12:00:00Z".parse()?;
//! assert_eq!(reconcile.next_after(from), Some("2026-01-04T19:00:00Z".parse()?));
//! # Ok::<(), beatline_core::Error>(())
//! ```
//!
//! | you want | use |
//! |---|---|
//! | times of day, days of the week or month | [`Cron::parse`], or without a string [`Cron::builder`] |
//! | another dialect: seconds, years, `L` `W` `#`, Quartz | [`Cron::parse_with`] and a [`Dialect`] |
//! | every *n* days, weeks or months | [`CalendarInterval`] |
//! | once, at an instant | [`At`] |
//!
//! The zone is **UTC unless one is set**: by IANA name, as a fixed offset, or as
//! the machine's own. Each is a [`Trigger`](beatline_core::Trigger); hand it to a
//! scheduler, or ask it yourself with `next_after` and `upcoming`.
//!
//! # When clocks change
//!
//! A job with **fixed times** runs once for each of them. Berlin, `30 2 * * *`,
//! in spring (the hour from 02:00 is missing) and in autumn (it comes twice):
//!
//! ```text
//!   spring   real time   00:00Z      00:30Z      01:00Z      01:30Z
//!            clocks      01:00       01:30       03:00       03:30
//!                                              ╎ 02:30 ╎
//!            30 2 * * *                        └─▶ ▲             once, right after the gap
//!            */30 * * * *  ▲           ▲           ▲           ▲
//!
//!   autumn   real time   00:00Z      00:30Z      01:00Z      01:30Z      02:00Z
//!            clocks      02:00       02:30       02:00       02:30       03:00
//!            30 2 * * *                ▲                                  once, in the first pass
//!            */30 * * * *  ▲           ▲           ▲           ▲           ▲
//! ```
//!
//! An **interval job** – its minute, hour or second starts with `*` – follows
//! real time instead. [`Gap`] and [`Fold`] change what fixed times do; runs that
//! a gap moves to the same instant are one; a jump of three hours or more is a
//! correction of the clock, and the fixed times it leaves out are skipped.
//!
//! # Dialects
//!
//! | dialect | fields | weekdays | besides `*` `,` `-` `/` |
//! |---|---|---|---|
//! | [`Classic`](Dialect::Classic) | minute hour day month weekday | 0–7, 0 and 7 are Sunday | – |
//! | [`Extended`](Dialect::Extended) | the same five | the same | `L` `LW` `15W` `fri#2` `5L` |
//! | [`Seconds`](Dialect::Seconds) | second, then the five | the same | as extended |
//! | [`SecondsYear`](Dialect::SecondsYear) | second, the five, year | the same | as extended |
//! | [`Quartz`](Dialect::Quartz) | second, then the five | 1–7, 1 is Sunday | `?` `L` `L-3` `LW` `L-3W` `15W` `6#2` `6L` `5/10` |
//! | [`QuartzYear`](Dialect::QuartzYear) | second, the five, year | the same | as Quartz |
//!
//! The dialect is said by the caller and never guessed; an expression with
//! another one's number of fields is told its name. In both day fields of all
//! but Quartz Vixie's rule holds: if either starts with `*` both must match,
//! otherwise one of them is enough.
//!
//! # What is exact
//!
//! * [`Cron::never_fires`]: `0 0 30 2 *` is known to be empty, not searched for.
//! * The newest occurrence before an instant is found backwards, and occurrences
//!   in a span are counted as days × times of day: a year of missed seconds
//!   costs a scheduler a microsecond.
//! * A [`ParseError`] names the byte, what was found and what was expected.
//!   Input is capped at [`MAXIMUM_LENGTH`] bytes.
//!
//! # What is absent
//!
//! No date-time type of a third party is in this API: instants are
//! [`Timestamp`](beatline_core::Timestamp)s. Nothing here reads a clock, sleeps,
//! or knows a runtime. There is no `@reboot` and no `@every` (a fixed rate or
//! delay is another trigger), no user or command column, no `H`, no random
//! field (jitter is set on the job), no text in more than one line, and no guess
//! at what a malformed expression meant.
//!
//! # Zone data
//!
//! Zones come from the machine's database (or `TZDIR`), which may be replaced
//! while the program runs; see [`refresh_zones`].
//!
//! # Features
//!
//! * `bundled-zones`: compiles the time-zone database in, for images without
//!   one. Data found on the machine still comes first.

mod at;
mod builder;
mod calendar;
mod calendar_interval;
mod dialect;
mod error;
mod field;
mod mutants;
mod offsets;
mod parse;
mod schedule;
mod timeline;
mod trigger;
mod wall;
mod zone;

pub use at::At;
pub use builder::{CronBuilder, Month, Values, Weekday};
pub use calendar_interval::CalendarInterval;
pub use dialect::Dialect;
pub use error::ParseError;
pub use trigger::{Cron, Fold, Gap, MAXIMUM_LENGTH};
pub use zone::refresh_zones;

// The README's programs are tests.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

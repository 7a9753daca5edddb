//! Cron and calendar triggers.

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

//! When a job is due.

mod context;
mod on_demand;
mod once;
mod walk;

use std::sync::Arc;
use std::time::Duration;

pub use context::TriggerContext;
pub use on_demand::OnDemand;
pub use once::Once;
pub use walk::{WALK_LIMIT, upcoming};

use crate::{Error, Monotonic, Timestamp};

/// When a job is due: a pure function from history to the next occurrence.
///
/// # Who calls it, when, and how
///
/// The scheduler's driver calls [`next`](Trigger::next) once when the job is
/// added and once after each decision about the job, under that job's own lock
/// and no other. Previews, the test kit's laws and other threads call it
/// whenever they like, which is why it takes `&self`: all history comes in the
/// context, none of it lives in the trigger. It must not block, must not read a
/// clock (`context.now` is the clock), and must answer the same for the same
/// context.
///
/// # What it promises
///
/// * The answer is the *first* occurrence after `context.previous_due`, on the
///   line that [`line`](Trigger::line) names, strictly later than
///   `previous_due`. It may lie in the past: the scheduler then finds out how
///   many were missed and asks the job's misfire policy.
/// * Without a `previous_due` the answer is the first occurrence at or after
///   the registration.
/// * Skipping an occurrence, for any reason, must not end the schedule.
///
/// A trigger that panics, or answers a time not after `previous_due`, or the
/// wrong line, makes its job `Faulted`, with an event; every other job goes on.
///
/// # Which methods to write
///
/// `next` alone is enough. The others have defaults that are right for any
/// trigger and slow for some: if instants can be counted without listing them,
/// write [`latest_at_or_before`](Trigger::latest_at_or_before) and
/// [`count_between`](Trigger::count_between) *together*, or a year of missed
/// seconds is walked one by one, up to [`WALK_LIMIT`]. A trigger on the wall
/// clock must say so in `line`. The laws in `beatline-test` check all of it.
///
/// # An implementation
///
/// Twice as long to wait after each occurrence, from one second up to an hour:
///
/// ```
/// use beatline_core::{Next, Trigger, TriggerContext};
/// use std::time::Duration;
///
/// #[derive(Debug)]
/// struct Doubling;
///
/// impl Trigger for Doubling {
///     fn next(&self, context: &TriggerContext) -> Next {
///         let wait = Duration::from_secs(1 << context.due_count.min(12)).min(Duration::from_secs(3600));
///         let from = context.previous_monotonic().unwrap_or(context.registered.monotonic);
///         Next::At(from.saturating_add(wait))
///     }
/// }
/// ```
///
/// And a wrong one. Counting from *now* instead of from the previous due
/// instant loses the schedule's phase: each lateness is added to every later
/// occurrence, and what was missed is never seen, let alone accounted for.
///
/// ```
/// # use beatline_core::{Next, Trigger, TriggerContext};
/// # use std::time::Duration;
/// # struct Drifting;
/// # impl Trigger for Drifting {
/// fn next(&self, context: &TriggerContext) -> Next {
///     Next::At(context.now.monotonic.saturating_add(Duration::from_secs(30))) // wrong: drifts
/// }
/// # }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` does not say when a job is due",
    label = "expected a trigger",
    note = "use `FixedRate::every(period)`, `FixedDelay::after(delay)`, `Once::after(delay)`, `OnDemand`, or implement `Trigger`"
)]
pub trait Trigger: Send + Sync + 'static {
    /// The first occurrence after `context.previous_due`.
    fn next(&self, context: &TriggerContext) -> Next;

    /// The newest occurrence after `context.previous_due` and not after
    /// `limit`; how the scheduler seeks over what was missed.
    ///
    /// Law: the answer is the last of what repeated calls of `next` would
    /// give up to `limit`. The default makes those calls, at most
    /// [`WALK_LIMIT`] of them, and then answers [`Latest::Unknown`].
    fn latest_at_or_before(&self, context: &TriggerContext, limit: Due) -> Latest {
        walk::latest_at_or_before(self, context, limit)
    }

    /// How many occurrences lie after `after` and not after `until`.
    ///
    /// `after` is itself an occurrence. Law: the answer is the number of calls
    /// of `next` it takes from `after` to the last occurrence not after
    /// `until`. The default makes those calls, at most [`WALK_LIMIT`] of them,
    /// and then answers [`Count::AtLeast`].
    fn count_between(&self, context: &TriggerContext, after: Due, until: Due) -> Count {
        walk::count_between(self, context, after, until)
    }

    /// The time line of the answers, the same for the trigger's whole life.
    /// The default is the monotonic clock.
    fn line(&self) -> Line {
        Line::Monotonic
    }

    /// First instant and period, if that is all there is to this trigger for
    /// this registration: the scheduler then computes occurrences itself and
    /// asks no more.
    ///
    /// Law: `next` answers `first + k × period` for k = 0, 1, 2, … and never
    /// ends. The default is `None`.
    fn periodic(&self, _context: &TriggerContext) -> Option<Periodic> {
        None
    }

    /// Whether the trigger's settings make sense; called once, when the job is
    /// added, before anything else.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] names the setting and says what would be right.
    fn validate(&self) -> Result<(), Error> {
        Ok(())
    }

    /// The longest time that can pass between two occurrences, where it is
    /// known; for the metric that makes a staleness alert possible.
    fn longest_gap(&self) -> Option<Duration> {
        None
    }

    /// A few words for labels and logs, such as `every 30s`.
    fn describe(&self) -> String {
        short_type_name::<Self>().to_owned()
    }
}

/// The type's name without its path or parameters.
fn short_type_name<T: ?Sized>() -> &'static str {
    let name = std::any::type_name::<T>();
    let name = name.split('<').next().unwrap_or(name);
    name.rsplit("::").next().unwrap_or(name)
}

/// A trigger's answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Next {
    /// Due at this point of the monotonic clock.
    At(Monotonic),
    /// Due when the wall clock shows this.
    AtWall(Timestamp),
    /// It depends on when the last accepted occurrence gets its fate: ask
    /// again then, with that instant in
    /// [`completion`](TriggerContext::completion).
    ///
    /// If no occurrence is active the scheduler asks again at once, with the
    /// instant of its last decision as completion; the same answer a second
    /// time makes the job `Faulted`.
    AfterCompletion,
    /// Never again. The job is `Exhausted` – or `Idle`, if it never had an
    /// occurrence to begin with, as an [`OnDemand`] job.
    Never,
}

impl Next {
    /// The instant, if the answer is one.
    #[must_use]
    pub const fn due(self) -> Option<Due> {
        match self {
            Next::At(at) => Some(Due::Monotonic(at)),
            Next::AtWall(at) => Some(Due::Wall(at)),
            _ => None,
        }
    }
}

impl From<Due> for Next {
    fn from(due: Due) -> Self {
        match due {
            Due::Monotonic(at) => Next::At(at),
            Due::Wall(at) => Next::AtWall(at),
        }
    }
}

/// The two time lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Line {
    /// The monotonic clock: intervals, delays. Stands still while a Linux
    /// machine is suspended, and nobody can set it.
    Monotonic,
    /// The wall clock: times of day. Can be set, forwards and backwards.
    Wall,
}

/// A due instant, on one of the two lines.
///
/// Instants of one line are ordered; instants of different lines are not
/// comparable and a comparison answers `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Due {
    /// On the monotonic clock.
    Monotonic(Monotonic),
    /// On the wall clock.
    Wall(Timestamp),
}

impl Due {
    /// The line this instant lies on.
    #[must_use]
    pub const fn line(self) -> Line {
        match self {
            Due::Monotonic(_) => Line::Monotonic,
            Due::Wall(_) => Line::Wall,
        }
    }
}

impl PartialOrd for Due {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        match (self, other) {
            (Due::Monotonic(a), Due::Monotonic(b)) => Some(a.cmp(b)),
            (Due::Wall(a), Due::Wall(b)) => Some(a.cmp(b)),
            _ => None,
        }
    }
}

/// A schedule that is nothing but a first instant and a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Periodic {
    /// The first occurrence.
    pub first: Monotonic,
    /// The time from each occurrence to the next; more than zero.
    pub period: Duration,
}

/// The answer to "which is the newest occurrence up to here?".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Latest {
    /// This one.
    At(Due),
    /// There is none.
    None,
    /// There were too many to walk. The scheduler makes one run, for the last
    /// instant reached, counts what was walked and goes on from now.
    Unknown {
        /// The last occurrence that was reached.
        reached: Due,
        /// How many were walked.
        walked: u64,
    },
}

/// A number of occurrences.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Count {
    /// Exactly so many.
    Exact(u64),
    /// There were too many to walk; at least so many.
    AtLeast(u64),
}

/// Passes every method on, so that a boxed or shared trigger is a trigger.
macro_rules! delegate_trigger {
    ($($pointer:ty),*) => {$(
        impl<T: Trigger + ?Sized> Trigger for $pointer {
            fn next(&self, context: &TriggerContext) -> Next {
                (**self).next(context)
            }
            fn latest_at_or_before(&self, context: &TriggerContext, limit: Due) -> Latest {
                (**self).latest_at_or_before(context, limit)
            }
            fn count_between(&self, context: &TriggerContext, after: Due, until: Due) -> Count {
                (**self).count_between(context, after, until)
            }
            fn line(&self) -> Line {
                (**self).line()
            }
            fn periodic(&self, context: &TriggerContext) -> Option<Periodic> {
                (**self).periodic(context)
            }
            fn validate(&self) -> Result<(), Error> {
                (**self).validate()
            }
            fn longest_gap(&self) -> Option<Duration> {
                (**self).longest_gap()
            }
            fn describe(&self) -> String {
                (**self).describe()
            }
        }
    )*};
}

delegate_trigger!(Box<T>, Arc<T>);

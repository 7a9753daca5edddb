use std::cmp::Ordering;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use beatline_core::{
    Count, Due, Latest, Line, Moment, Monotonic, Next, Timestamp, Trigger, TriggerContext, WALK_LIMIT,
};

use super::{BrokenLaw, hold};

/// How far the laws follow a schedule.
const STEPS: usize = 200;

const PURE: &str = "the same context, the same answer";
const FIRST: &str = "the first occurrence is not before the registration";
const ASCENDING: &str = "each occurrence is later than the one before";
const LINE: &str = "every answer lies on the trigger's line";
const NOW: &str = "what is due follows from history, not from how late it is now";
const LATEST: &str = "`latest_at_or_before` is the last that walking `next` reaches";
const COUNT: &str = "`count_between` is the number of steps of `next`";
const PERIODIC: &str = "`periodic` is what `next` answers, for ever";
const SKIP: &str = "skipping an occurrence does not end the schedule";
const WAITS: &str = "with a completion known, it waits for none";
const NO_PANIC: &str = "no panic, however near the ends of time";

/// Checks the laws of triggers.
///
/// # Panics
///
/// If one is broken, saying which.
#[track_caller]
pub fn trigger<T: Trigger + ?Sized>(trigger: &T) {
    if let Err(broken) = check_trigger(trigger) {
        panic!("{}: {broken}", trigger.describe());
    }
}

/// Checks the laws of triggers.
///
/// # Errors
///
/// The first law that does not hold.
pub fn check_trigger<T: Trigger + ?Sized>(trigger: &T) -> Result<(), BrokenLaw> {
    for registered in registrations() {
        let walked = walk(trigger, registered)?;
        check_seek(trigger, registered, &walked)?;
        check_periodic(trigger, registered, &walked)?;
        check_skips(trigger, &walked)?;
    }
    check_ends_of_time(trigger)
}

fn registrations() -> Vec<Moment> {
    let monotonic = [0, 1, 86_399_999_999_999, -5_000_000_001];
    let wall =
        ["2026-01-01T00:00:00Z", "2026-03-29T00:59:59.5Z", "2028-02-29T23:59:59.999999999Z", "1999-12-31T12:00:00Z"];
    let wall = wall.into_iter().filter_map(|wall| wall.parse::<Timestamp>().ok());
    monotonic.into_iter().zip(wall).map(|(at, wall)| Moment::new(Monotonic::from_nanoseconds(at), wall)).collect()
}

/// One occurrence of a walk, and the context in which the one after it is asked
/// for.
struct Step {
    due: Due,
    after: TriggerContext,
}

/// Follows `next`; a trigger that waits is told a completion.
fn walk<T: Trigger + ?Sized>(trigger: &T, registered: Moment) -> Result<Vec<Step>, BrokenLaw> {
    let mut context = TriggerContext::new(registered);
    let mut walked: Vec<Step> = Vec::new();
    while walked.len() < STEPS {
        let Some(due) = ask(trigger, &context)? else { break };
        let order = context.previous_due.map(|previous| due.partial_cmp(&previous));
        hold(order.is_none_or(|order| order == Some(Ordering::Greater)), ASCENDING, || {
            format!("{due:?} comes after {:?}", context.previous_due)
        })?;
        if context.previous_due.is_none() {
            let early = matches!(due, Due::Monotonic(at) if at < registered.monotonic)
                || matches!(due, Due::Wall(at) if at < registered.wall);
            hold(!early, FIRST, || format!("{due:?} for a registration at {registered:?}"))?;
        }
        if due == Due::Monotonic(Monotonic::MAX) || due == Due::Wall(Timestamp::MAX) {
            break; // it never comes, so nothing after it does
        }
        context = context.after(due);
        // As if each had run; what happens without is a law of its own.
        (context.started_count, context.last_start) = (context.due_count, Some(registered.monotonic));
        walked.push(Step { due, after: context });
    }
    Ok(walked)
}

/// Asks once, which is asking a few times: the answer is pure, lies on the line
/// and does not drift with the clock.
fn ask<T: Trigger + ?Sized>(trigger: &T, context: &TriggerContext) -> Result<Option<Due>, BrokenLaw> {
    let answer = trigger.next(context);
    let again = trigger.next(context);
    hold(answer == again, PURE, || format!("first {answer:?}, then {again:?} for {context:?}"))?;
    let mut late = *context;
    late.now = late.now.saturating_add(Duration::from_secs(3 * 3600));
    let late = trigger.next(&late);
    hold(answer == late, NOW, || format!("{answer:?}, and {late:?} three hours later for {context:?}"))?;
    let waits = answer == Next::AfterCompletion && context.completion.is_some();
    hold(!waits, WAITS, || format!("{answer:?} for {context:?}"))?;
    let due = answer.due();
    let line: Line = trigger.line();
    hold(due.is_none_or(|due| due.line() == line), LINE, || format!("{answer:?} on the {line:?} line"))?;
    Ok(due)
}

fn later(due: Due, nanoseconds: i64) -> Due {
    match due {
        Due::Monotonic(at) => Due::Monotonic(Monotonic::from_nanoseconds(at.nanoseconds().saturating_add(nanoseconds))),
        Due::Wall(at) => Due::Wall(Timestamp::from_unix_nanoseconds(at.unix_nanoseconds() + i128::from(nanoseconds))),
    }
}

fn check_seek<T: Trigger + ?Sized>(trigger: &T, registered: Moment, walked: &[Step]) -> Result<(), BrokenLaw> {
    let places = [0, 1, 2, 7, 63, STEPS - 2];
    for place in places.into_iter().filter(|place| place + 1 < walked.len()) {
        for (limit, wanted) in [
            (walked[place].due, place),
            (later(walked[place].due, 1), place + usize::from(walked[place + 1].due <= later(walked[place].due, 1))),
            (later(walked[place + 1].due, -1), place),
        ] {
            let found = trigger.latest_at_or_before(&TriggerContext::new(registered), limit);
            let holds = match found {
                Latest::At(due) => due == walked[wanted].due,
                Latest::Unknown { walked, .. } => walked >= WALK_LIMIT,
                _ => false,
            };
            hold(holds, LATEST, || format!("{found:?} up to {limit:?}, walking reaches {:?}", walked[wanted].due))?;
        }
        for from in places.into_iter().filter(|from| *from <= place) {
            let (after, until) = (walked[from].due, walked[place].due);
            let (found, wanted) = (trigger.count_between(&walked[from].after, after, until), (place - from) as u64);
            let holds = match found {
                Count::Exact(count) => count == wanted,
                Count::AtLeast(count) => count <= wanted,
                _ => false,
            };
            hold(holds, COUNT, || format!("{found:?} from {after:?} to {until:?}, walking takes {wanted}"))?;
        }
    }
    if let Some(first) = walked.first() {
        let limit = later(first.due, -1);
        let found = trigger.latest_at_or_before(&TriggerContext::new(registered), limit);
        let bounded = limit < first.due;
        hold(!bounded || found == Latest::None, LATEST, || format!("{found:?} before the first, {:?}", first.due))?;
    }
    Ok(())
}

fn check_periodic<T: Trigger + ?Sized>(trigger: &T, registered: Moment, walked: &[Step]) -> Result<(), BrokenLaw> {
    let Some(periodic) = trigger.periodic(&TriggerContext::new(registered)) else { return Ok(()) };
    hold(!periodic.period.is_zero(), PERIODIC, || "its period is zero".to_owned())?;
    let mut at = periodic.first;
    for (number, step) in walked.iter().enumerate() {
        hold(step.due == Due::Monotonic(at), PERIODIC, || format!("number {number} is {:?}, not {at:?}", step.due))?;
        at = at.saturating_add(periodic.period);
    }
    hold(walked.len() == STEPS || at == Monotonic::MAX, PERIODIC, || format!("it ends after {}", walked.len()))
}

/// Whether a run was made of it, and whether there ever was one, does not end it.
fn check_skips<T: Trigger + ?Sized>(trigger: &T, walked: &[Step]) -> Result<(), BrokenLaw> {
    for pair in walked.windows(2) {
        let mut skipped = pair[0].after;
        (skipped.last_start, skipped.started_count) = (None, 0);
        let answer = ask(trigger, &skipped)?;
        hold(answer.is_some(), SKIP, || format!("nothing after {:?} for {skipped:?}", pair[0].due))?;
    }
    Ok(())
}

fn check_ends_of_time<T: Trigger + ?Sized>(trigger: &T) -> Result<(), BrokenLaw> {
    let monotonic = [Monotonic::MIN, Monotonic::ORIGIN, Monotonic::MAX];
    let wall = [Timestamp::MIN, Timestamp::UNIX_EPOCH, Timestamp::MAX];
    let ends: Vec<Due> = match trigger.line() {
        Line::Monotonic => monotonic.into_iter().map(Due::Monotonic).collect(),
        Line::Wall => wall.into_iter().map(Due::Wall).collect(),
    };
    let inner = ends.iter().flat_map(|due| [later(*due, -1), *due, later(*due, 1)]);
    let ends: Vec<Due> = inner.collect();
    for registered in monotonic.into_iter().flat_map(|at| wall.into_iter().map(move |wall| Moment::new(at, wall))) {
        for previous in std::iter::once(None).chain(ends.iter().copied().map(Some)) {
            let mut context = TriggerContext::new(registered);
            context.previous_due = previous;
            context.completion = previous.map(|_| registered.monotonic);
            let asked = catch_unwind(AssertUnwindSafe(|| {
                let _ = trigger.periodic(&context);
                trigger.next(&context)
            }));
            hold(asked.is_ok(), NO_PANIC, || format!("`next` panicked for {context:?}"))?;
        }
    }
    // A trigger without a closed form walks far for each of these; few are enough.
    for registered in monotonic.into_iter().zip(wall).map(|(at, wall)| Moment::new(at, wall)) {
        let context = TriggerContext::new(registered);
        for limit in [ends[0], ends[4], ends[ends.len() - 1]] {
            let asked = catch_unwind(AssertUnwindSafe(|| {
                let _ = trigger.latest_at_or_before(&context, limit);
                let _ = trigger.count_between(&context.after(ends[0]), ends[0], limit);
            }));
            hold(asked.is_ok(), NO_PANIC, || format!("a seek up to {limit:?} panicked for {context:?}"))?;
        }
    }
    Ok(())
}

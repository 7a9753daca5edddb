//! The answers any trigger can give, found by calling `next` again and again.

use std::cmp::Ordering;

use crate::{Count, Due, Latest, Trigger, TriggerContext};

/// How many occurrences a trigger without a closed form is walked over, at
/// most, before the answer is "unknown".
pub const WALK_LIMIT: u64 = 100_000;

/// Follows `next` from `context` while it answers an instant that is later
/// than the one before and not after `limit`. A trigger that breaks the law by
/// standing still ends the walk; the scheduler reports it when it asks itself.
fn walk<T: Trigger + ?Sized>(trigger: &T, context: &TriggerContext, limit: Due) -> (Option<Due>, u64, bool) {
    let mut context = *context;
    let (mut reached, mut walked) = (None, 0);
    while let Some(due) = trigger.next(&context).due() {
        let advances = context.previous_due.is_none_or(|previous| due > previous);
        if !advances || due.partial_cmp(&limit).is_none_or(Ordering::is_gt) {
            break;
        }
        if walked == WALK_LIMIT {
            return (reached, walked, true);
        }
        reached = Some(due);
        walked += 1;
        context = context.after(due);
    }
    (reached, walked, false)
}

pub(super) fn latest_at_or_before<T: Trigger + ?Sized>(trigger: &T, context: &TriggerContext, limit: Due) -> Latest {
    match walk(trigger, context, limit) {
        (Some(reached), walked, true) => Latest::Unknown { reached, walked },
        (Some(reached), _, false) => Latest::At(reached),
        (None, ..) => Latest::None,
    }
}

pub(super) fn count_between<T: Trigger + ?Sized>(
    trigger: &T,
    context: &TriggerContext,
    after: Due,
    until: Due,
) -> Count {
    let context = TriggerContext { due_count: context.due_count.saturating_sub(1), ..*context }.after(after);
    match walk(trigger, &context, until) {
        (_, walked, true) => Count::AtLeast(walked),
        (_, walked, false) => Count::Exact(walked),
    }
}

/// The next `count` occurrences of a trigger, as far as they can be told in
/// advance: a trigger that waits for completions shows its next one only.
///
/// ```
/// use beatline_core::{Moment, Monotonic, Once, Timestamp, TriggerContext, upcoming};
/// use std::time::Duration;
///
/// let now = Moment::new(Monotonic::ORIGIN, Timestamp::UNIX_EPOCH);
/// let preview = upcoming(&Once::after(Duration::from_secs(5)), &TriggerContext::new(now), 3);
/// assert_eq!(preview.len(), 1);
/// ```
#[must_use]
pub fn upcoming<T: Trigger + ?Sized>(trigger: &T, context: &TriggerContext, count: usize) -> Vec<Due> {
    let mut context = TriggerContext { completion: None, ..*context };
    let mut found = Vec::new();
    while found.len() < count {
        let Some(due) = trigger.next(&context).due() else { break };
        if context.previous_due.is_some_and(|previous| due.partial_cmp(&previous) != Some(Ordering::Greater)) {
            break;
        }
        found.push(due);
        context = TriggerContext { completion: None, ..context.after(due) };
    }
    found
}

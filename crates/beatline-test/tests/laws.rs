//! Every trigger and policy of ours obeys the laws, and the laws notice those
//! that do not.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use beatline_core::{
    Count, Decision, Due, Keep, Latest, Monotonic, Next, OnDemand, Once, Overflow, Overlap, OverlapPolicy, OverlapView,
    Periodic, Timestamp, Trigger, TriggerContext,
};
use beatline_fixed_delay::FixedDelay;
use beatline_fixed_rate::FixedRate;
use beatline_test::laws;
use beatline_test::scripted::Scripted;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn fixed_rates_obey() {
    let start: Timestamp = "2026-03-29T01:00:00Z".parse().unwrap();
    let end: Timestamp = "2026-03-29T01:10:00Z".parse().unwrap();
    let ends_early: Timestamp = "1990-01-01T00:00:00Z".parse().unwrap();
    for rate in [
        FixedRate::every(SECOND),
        FixedRate::every(SECOND * 30).immediately(),
        FixedRate::every(SECOND * 30).phase(SECOND * 7),
        FixedRate::every(SECOND * 30).initial_delay(SECOND * 95),
        FixedRate::every(SECOND * 7).anchored_at(start),
        FixedRate::every(SECOND * 7).starting_at(start).ending_at(end),
        FixedRate::every(SECOND).ending_at(ends_early),
        FixedRate::every(Duration::from_nanos(1)),
        FixedRate::every(Duration::MAX),
        FixedRate::every(Duration::from_nanos(i64::MAX as u64)),
    ] {
        laws::trigger(&rate);
    }
}

#[test]
fn fixed_delays_obey() {
    laws::trigger(&FixedDelay::after(SECOND));
    laws::trigger(&FixedDelay::after(SECOND * 300).immediately());
    laws::trigger(&FixedDelay::no_delay());
    laws::trigger(&FixedDelay::after(Duration::MAX));
}

#[test]
fn the_triggers_of_core_obey() {
    laws::trigger(&Once::after(SECOND));
    laws::trigger(&Once::immediately());
    laws::trigger(&Once::after(Duration::MAX));
    laws::trigger(&OnDemand);
    laws::trigger(&Scripted::new().due_after(SECOND).due_after(SECOND * 9));
    laws::trigger(&Scripted::new().on_the_wall().due_after(SECOND).due_after(SECOND * 9));
    laws::trigger(&(Box::new(Once::after(SECOND)) as Box<dyn Trigger>));
}

#[track_caller]
fn breaks(trigger: &dyn Trigger, law: &str) {
    let broken = laws::check_trigger(trigger).expect_err("a law is broken");
    assert!(broken.to_string().contains(law), "{broken}");
}

#[test]
fn scripted_faults_are_noticed() {
    breaks(&Scripted::new().due_after(SECOND).stands_still(), "later than the one before");
    breaks(&Scripted::new().due_after(SECOND).answers_the_wrong_line(), "lies on the trigger's line");
    breaks(&Scripted::new().due_after(SECOND).waits_for_ever(), "waits for none");
}

/// A trigger made of closures, to break one law at a time.
struct Made {
    next: Box<dyn Fn(&TriggerContext) -> Next + Send + Sync>,
    latest: Option<fn(&TriggerContext, Due) -> Latest>,
    count: Option<fn(Due, Due) -> Count>,
    periodic: Option<Periodic>,
}

impl Made {
    fn new(next: impl Fn(&TriggerContext) -> Next + Send + Sync + 'static) -> Self {
        Self { next: Box::new(next), latest: None, count: None, periodic: None }
    }
}

impl Trigger for Made {
    fn next(&self, context: &TriggerContext) -> Next {
        (self.next)(context)
    }
    fn latest_at_or_before(&self, context: &TriggerContext, limit: Due) -> Latest {
        self.latest.map_or_else(|| Every.latest_at_or_before(context, limit), |latest| latest(context, limit))
    }
    fn count_between(&self, context: &TriggerContext, after: Due, until: Due) -> Count {
        self.count.map_or_else(|| Every.count_between(context, after, until), |count| count(after, until))
    }
    fn periodic(&self, _context: &TriggerContext) -> Option<Periodic> {
        self.periodic
    }
}

/// Every ten seconds, with the walking defaults.
struct Every;

impl Trigger for Every {
    fn next(&self, context: &TriggerContext) -> Next {
        every(context)
    }
}

fn every(context: &TriggerContext) -> Next {
    let from = context.previous_monotonic().unwrap_or(context.registered.monotonic);
    Next::At(from.saturating_add(SECOND * 10))
}

#[test]
fn each_law_of_triggers_can_fail() {
    laws::trigger(&Every);
    laws::trigger(&Made::new(every));
    breaks(&Made::new(|context| Next::At(context.now.monotonic.saturating_add(SECOND))), "not from how late it is");
    breaks(
        &Made::new(|context| match every(context) {
            Next::At(at) if context.previous_due.is_none() => Next::At(at.saturating_sub(SECOND * 20)),
            next => next,
        }),
        "not before the registration",
    );
    let asked = AtomicU64::new(0);
    breaks(
        &Made::new(move |context| {
            let odd = Duration::from_nanos(asked.fetch_add(1, Ordering::Relaxed));
            match every(context) {
                Next::At(at) => Next::At(at.saturating_add(odd)),
                next => next,
            }
        }),
        "the same context",
    );
    let ends = Made::new(|context| match context.started_count {
        0 if context.due_count > 3 => Next::Never,
        _ => every(context),
    });
    breaks(&ends, "does not end the schedule");
    breaks(
        &Made::new(|context| {
            let at = context.previous_monotonic().unwrap_or(Monotonic::ORIGIN).nanoseconds();
            Next::At(Monotonic::from_nanoseconds(at.checked_add(10_000_000_000).expect("no overflow")))
        })
        .counted_from_the_registration(),
        "no panic",
    );
    let mut made = Made::new(every);
    made.latest = Some(|_, limit| Latest::At(limit));
    breaks(&made, "latest_at_or_before");
    let mut made = Made::new(every);
    made.count = Some(|_, _| Count::Exact(1));
    breaks(&made, "count_between");
    let mut made = Made::new(every);
    made.periodic = Some(Periodic { first: Monotonic::ORIGIN, period: SECOND * 10 });
    breaks(&made, "periodic");
}

impl Made {
    fn counted_from_the_registration(self) -> Self {
        let next = self.next;
        Self::new(move |context| {
            let mut context = *context;
            context.previous_due = context.previous_due.or(Some(Due::Monotonic(context.registered.monotonic)));
            next(&context)
        })
    }
}

#[test]
fn the_built_in_policies_obey() {
    for policy in [
        Overlap::Skip,
        Overlap::BufferOne { keep: Keep::First },
        Overlap::BufferOne { keep: Keep::Latest },
        Overlap::BufferAll { cap: 1, overflow: Overflow::DropNewest },
        Overlap::BufferAll { cap: 3, overflow: Overflow::DropOldest },
        Overlap::buffer_all(),
        Overlap::AllowAll,
    ] {
        laws::overlap(&policy);
    }
}

/// A policy that keeps its own count, as the documentation warns.
#[derive(Clone)]
struct Counting(Arc<AtomicU64>);

impl OverlapPolicy for Counting {
    fn decide(&self, _view: &OverlapView<'_>) -> Decision {
        if self.0.fetch_add(1, Ordering::Relaxed) % 2 == 0 { Decision::Start } else { Decision::Skip }
    }
}

/// A policy that always lets occurrences wait.
#[derive(Clone)]
struct Waiting;

impl OverlapPolicy for Waiting {
    fn decide(&self, _view: &OverlapView<'_>) -> Decision {
        Decision::Buffer
    }
    fn buffer(&self) -> usize {
        2
    }
}

#[test]
fn policies_of_users_are_held_to_the_laws() {
    laws::overlap(&Waiting);
    let broken = laws::check_overlap(&Counting(Arc::default())).unwrap_err();
    assert!(broken.law.contains("same view"), "{broken}");
    let broken = laws::check_overlap(&Overlap::BufferAll { cap: 0, overflow: Overflow::DropOldest }).unwrap_err();
    assert!(broken.law.contains("valid"), "{broken}");
}

//! The decisions of the built-in policies, as a table.

use beatline_core::{
    ActiveRun, Decision, Due, Keep, Monotonic, Overflow, Overlap, OverlapPolicy, OverlapView, SkipReason,
};

#[test]
fn the_built_in_policies_decide_by_room_alone() {
    let at = Monotonic::ORIGIN;
    let busy = [ActiveRun::new(at, Some(at))];
    let free = OverlapView::new(at, Due::Monotonic(at));
    let all = |overflow| Overlap::BufferAll { cap: 3, overflow };
    for (policy, when_busy, buffer, limit) in [
        (Overlap::Skip, Decision::Skip, 0, 1),
        (Overlap::BufferOne { keep: Keep::First }, Decision::Buffer, 1, 1),
        (Overlap::BufferOne { keep: Keep::Latest }, Decision::BufferSupersede, 1, 1),
        (all(Overflow::DropNewest), Decision::Buffer, 3, 1),
        (all(Overflow::DropOldest), Decision::BufferDropOldest, 3, 1),
        (Overlap::AllowAll, Decision::Start, 0, 1000),
    ] {
        assert_eq!(policy.decide(&free), Decision::Start, "{policy:?}");
        assert_eq!(policy.decide(&free.with_runs(&busy)), when_busy, "{policy:?}");
        assert_eq!((policy.buffer(), policy.max_concurrent()), (buffer, limit), "{policy:?}");
        assert_eq!(policy.built_in(), Some(policy));
    }
    assert_eq!(Overlap::buffer_all().buffer(), 1000);
    assert_eq!(Overlap::default(), Overlap::Skip);
}

#[test]
fn labels_are_those_of_the_metrics() {
    for (index, label) in SkipReason::LABELS.iter().enumerate() {
        assert!(label.chars().all(|letter| letter.is_ascii_lowercase() || letter == '_'), "{index} {label}");
    }
    assert_eq!(SkipReason::Removed.index(), SkipReason::LABELS.len() - 1);
    assert_eq!(SkipReason::BufferFull.label(), "buffer_full");
}

//! The laws of triggers.

use std::time::Duration;

use beatline_fixed_delay::FixedDelay;
use beatline_test::laws;

#[test]
fn every_form_keeps_the_laws() {
    let after = FixedDelay::after(Duration::from_secs(30));
    for trigger in [
        after,
        after.immediately(),
        after.initial_delay(Duration::from_secs(7)),
        FixedDelay::no_delay(),
        FixedDelay::after(Duration::MAX),
    ] {
        laws::trigger(&trigger);
    }
}

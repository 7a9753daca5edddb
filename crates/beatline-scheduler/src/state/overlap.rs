//! The overlap stage: accepted, waiting, or skipped; how many and how long is the
//! engine's to hold, whatever a policy answers.

use beatline_core::{ActiveRun, Decision, Moment, Monotonic, OverlapView, RunFacts, SkipReason, Verdict};

use super::State;
use super::effects::Effects;
use super::plan::Plan;
use crate::config::OverlapChoice;
use crate::contain::contain;

impl State {
    pub(super) fn overlap(
        &mut self,
        plan: &Plan,
        choice: Option<&OverlapChoice>,
        facts: RunFacts,
        now: Moment,
        effects: &mut Effects,
    ) -> Verdict {
        let config = &*plan.config;
        let choice = choice.unwrap_or(&config.overlap);
        let has_room = self.active.len() < config.max_concurrent;
        let decision = match self.consult(choice, config.max_concurrent, &facts, now) {
            Ok(decision) => decision,
            Err(message) => {
                self.contained_panic();
                effects.policy_panic = Some(message.into());
                Decision::Skip
            }
        };
        match decision {
            Decision::Start if has_room => {
                self.accept(facts, false, now, effects);
                return Verdict::Accepted(facts.id);
            }
            Decision::Buffer | Decision::BufferDropOldest | Decision::BufferSupersede => {
                return self.buffer(plan, decision, facts, now, effects);
            }
            _ => {}
        }
        self.skip(facts, SkipReason::Overlap, effects);
        Verdict::Skipped(SkipReason::Overlap)
    }

    fn consult(
        &self,
        choice: &OverlapChoice,
        max_concurrent: usize,
        facts: &RunFacts,
        now: Moment,
    ) -> Result<Decision, String> {
        let mut view = OverlapView::new(now.monotonic, facts.due);
        view.lateness = facts.lateness;
        view.active = self.active.len();
        view.max_concurrent = max_concurrent;
        view.buffered = self.buffered();
        if !choice.needs_runs() {
            return Ok(choice.decide(&view));
        }
        let monotonic = Monotonic::from_nanoseconds;
        let runs: Vec<_> = self
            .active
            .iter()
            .map(|run| ActiveRun::new(monotonic(run.accepted), run.has_started().then(|| monotonic(run.started))))
            .collect();
        view.runs = &runs;
        contain(|| choice.decide(&view))
    }

    pub(super) fn accept(&mut self, facts: RunFacts, waited: bool, now: Moment, effects: &mut Effects) {
        self.active.accept(facts.id.0, now.monotonic.nanoseconds(), waited);
        effects.hand_off = Some(facts);
    }

    fn buffer(
        &mut self,
        plan: &Plan,
        decision: Decision,
        facts: RunFacts,
        now: Moment,
        effects: &mut Effects,
    ) -> Verdict {
        if self.active.is_empty() {
            // There is no end to wait for, and nothing else would ever take it out.
            self.accept(facts, false, now, effects);
            return Verdict::Accepted(facts.id);
        }
        let capacity = plan.config.buffer;
        let full = self.buffered() >= capacity;
        if full && (capacity == 0 || decision == Decision::Buffer) {
            self.skip(facts, SkipReason::BufferFull, effects);
            return Verdict::Skipped(SkipReason::BufferFull);
        }
        let buffer = &mut self.cold().buffer;
        let displaced = match decision {
            Decision::BufferSupersede if full => buffer.pop_back().map(|waited| (waited, SkipReason::Superseded)),
            _ if full => buffer.pop_front().map(|waited| (waited, SkipReason::BufferFull)),
            _ => None,
        };
        buffer.push_back(facts);
        if let Some((waited, reason)) = displaced {
            self.skip(waited, reason, effects);
            effects.withdrawn = Some((reason, 1));
            self.continue_after(plan, waited.id.0, now, effects);
        }
        Verdict::Buffered
    }
}

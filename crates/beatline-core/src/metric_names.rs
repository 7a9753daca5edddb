//! The names of all metrics and their labels, in one table.
//!
//! Engine, heartbeats, exporter, alert rules and dashboard all use these
//! constants, or are checked against them. No label is called `job`: Prometheus
//! keeps that one for itself. What a *job* is to a scheduler is a `task` here.

/// The prefix of every name.
pub const PREFIX: &str = "beatline_";

/// The label of the scheduler's name; on each of its metrics.
pub const SCHEDULER: &str = "scheduler";
/// The label of the job's name.
pub const TASK: &str = "task";
/// The label of a heartbeat checker's name.
pub const MONITOR: &str = "monitor";
/// The label of a run's outcome.
pub const OUTCOME: &str = "outcome";
/// The label of the reason an occurrence was skipped for.
pub const REASON: &str = "reason";
/// The label of the state that tasks or connections are counted by.
pub const STATE: &str = "state";
/// The label of the direction of a clock jump: `forward` or `backward`.
pub const DIRECTION: &str = "direction";
/// The label of the crate's version.
pub const VERSION: &str = "version";
/// The label of what a trigger says of itself.
pub const TRIGGER: &str = "trigger";
/// The label of a trigger's time zone; empty without one.
pub const TIMEZONE: &str = "timezone";
/// The label of the overlap policy.
pub const OVERLAP: &str = "overlap";
/// The label of the misfire policy.
pub const MISFIRE: &str = "misfire";

/// The task that all tasks beyond the limit of distinct ones are counted under.
pub const OTHER: &str = "_other";

/// Upper bounds for the duration of runs, in seconds.
pub const RUN_BUCKETS: &[f64] =
    &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0];
/// Upper bounds for lateness and waiting, in seconds.
pub const LATENESS_BUCKETS: &[f64] =
    &[0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];
/// Upper bounds for how late a loop gets to its work, in seconds.
pub const LAG_BUCKETS: &[f64] = &[0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0, 10.0];
/// Upper bounds for the duration of a sweep, in seconds.
pub const SWEEP_BUCKETS: &[f64] = &[1e-5, 5e-5, 1e-4, 5e-4, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0];

/// How a metric counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MetricKind {
    /// Only grows.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts by size.
    Histogram,
}

/// One metric: everything an exporter, a rule or a reader needs to know.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metric {
    /// The full name.
    pub name: &'static str,
    /// How it counts.
    pub kind: MetricKind,
    /// Its labels.
    pub labels: &'static [&'static str],
    /// Upper bounds of a histogram's buckets; empty for the others.
    pub buckets: &'static [f64],
    /// One sentence for people.
    pub help: &'static str,
}
/// Occurrences that became due.
pub const TASK_DUE_TOTAL: &str = "beatline_task_due_total";
/// Runs started.
pub const TASK_STARTED_TOTAL: &str = "beatline_task_started_total";
/// Finished runs by outcome.
pub const TASK_RUNS_TOTAL: &str = "beatline_task_runs_total";
/// Occurrences that never started, by reason.
pub const TASK_SKIPPED_TOTAL: &str = "beatline_task_skipped_total";
/// Retry attempts started.
pub const TASK_RETRIES_TOTAL: &str = "beatline_task_retries_total";
/// Runs in a row that were replaced before they completed.
pub const TASK_REPLACEMENTS_CONSECUTIVE: &str = "beatline_task_replacements_consecutive";
/// Wall time of finished runs.
pub const TASK_RUN_DURATION_SECONDS: &str = "beatline_task_run_duration_seconds";
/// From due (with jitter) to the scheduler acting on it, for runs that started.
pub const TASK_LATENESS_SECONDS: &str = "beatline_task_lateness_seconds";
/// From the decision to the start, caused by overlap buffering or limits.
pub const TASK_QUEUE_WAIT_SECONDS: &str = "beatline_task_queue_wait_seconds";
/// Runs going on now.
pub const TASK_IN_FLIGHT: &str = "beatline_task_in_flight";
/// Occurrences accepted or waiting now: buffer, jitter, permits, hand-off.
pub const TASK_PENDING: &str = "beatline_task_pending";
/// 1 while the task is paused.
pub const TASK_PAUSED: &str = "beatline_task_paused";
/// Next due instant, Unix time; NaN when there is none.
pub const TASK_NEXT_DUE_TIMESTAMP_SECONDS: &str = "beatline_task_next_due_timestamp_seconds";
/// Start of the last run, Unix time; NaN when there is none.
pub const TASK_LAST_START_TIMESTAMP_SECONDS: &str = "beatline_task_last_start_timestamp_seconds";
/// End of the last completed run, Unix time; NaN when there is none.
pub const TASK_LAST_SUCCESS_TIMESTAMP_SECONDS: &str = "beatline_task_last_success_timestamp_seconds";
/// End of the last run that failed, panicked or timed out, Unix time; NaN when there is none.
pub const TASK_LAST_FAILURE_TIMESTAMP_SECONDS: &str = "beatline_task_last_failure_timestamp_seconds";
/// When the task was added, Unix time; NaN once it is gone.
pub const TASK_REGISTERED_TIMESTAMP_SECONDS: &str = "beatline_task_registered_timestamp_seconds";
/// Longest expected gap between two occurrences; NaN when it is not known.
pub const TASK_INTERVAL_SECONDS: &str = "beatline_task_interval_seconds";
/// Always 1; the settings are in the labels.
pub const TASK_INFO: &str = "beatline_task_info";
/// Registered tasks by state.
pub const TASKS: &str = "beatline_tasks";
/// Registered tasks that share the label of the many, because the limit of distinct tasks is reached.
pub const TASKS_WITHOUT_LABEL: &str = "beatline_tasks_without_label";
/// 1 while the scheduler runs.
pub const UP: &str = "beatline_up";
/// Always 1; the version is in the label.
pub const BUILD_INFO: &str = "beatline_build_info";
/// When the driver last ran, Unix time.
pub const LOOP_LAST_TICK_TIMESTAMP_SECONDS: &str = "beatline_loop_last_tick_timestamp_seconds";
/// When the driver means to run next, Unix time; NaN when nothing is due.
pub const LOOP_ARMED_DEADLINE_TIMESTAMP_SECONDS: &str = "beatline_loop_armed_deadline_timestamp_seconds";
/// From the armed deadline to the driver running.
pub const LOOP_LAG_SECONDS: &str = "beatline_loop_lag_seconds";
/// Times the driver did not run at its deadline because a runtime worker was blocked.
pub const LOOP_STALLS_TOTAL: &str = "beatline_loop_stalls_total";
/// The driver's wake-ups.
pub const LOOP_WAKEUPS_TOTAL: &str = "beatline_loop_wakeups_total";
/// Wall-clock steps seen.
pub const CLOCK_JUMPS_TOTAL: &str = "beatline_clock_jumps_total";
/// Entries in the timer.
pub const TIMER_ENTRIES: &str = "beatline_timer_entries";
/// Contained panics of observers and policies.
pub const OBSERVER_PANICS_TOTAL: &str = "beatline_observer_panics_total";
/// Connections by state.
pub const HEARTBEAT_CONNECTIONS: &str = "beatline_heartbeat_connections";
/// Sweeps in which a connection was found to have beaten since the one before, summed over connections.
pub const HEARTBEAT_BEATS_TOTAL: &str = "beatline_heartbeat_beats_total";
/// Sweeps of the table.
pub const HEARTBEAT_SWEEPS_TOTAL: &str = "beatline_heartbeat_sweeps_total";
/// Connections that expired.
pub const HEARTBEAT_EXPIRED_TOTAL: &str = "beatline_heartbeat_expired_total";
/// Suspect edges dropped because nobody took them.
pub const HEARTBEAT_EVENTS_DROPPED_TOTAL: &str = "beatline_heartbeat_events_dropped_total";
/// Time a sweep takes.
pub const HEARTBEAT_SWEEP_DURATION_SECONDS: &str = "beatline_heartbeat_sweep_duration_seconds";
/// From when a sweep was due to when it began.
pub const HEARTBEAT_SWEEP_LAG_SECONDS: &str = "beatline_heartbeat_sweep_lag_seconds";
/// From the passing of a deadline to its report.
pub const HEARTBEAT_DETECTION_DELAY_SECONDS: &str = "beatline_heartbeat_detection_delay_seconds";

/// Every metric, in the order in which the guide lists them.
pub const CATALOGUE: &[Metric] = &[
    Metric {
        name: TASK_DUE_TOTAL,
        kind: MetricKind::Counter,
        labels: &[SCHEDULER, TASK],
        buckets: &[],
        help: "Occurrences that became due.",
    },
    Metric {
        name: TASK_STARTED_TOTAL,
        kind: MetricKind::Counter,
        labels: &[SCHEDULER, TASK],
        buckets: &[],
        help: "Runs started.",
    },
    Metric {
        name: TASK_RUNS_TOTAL,
        kind: MetricKind::Counter,
        labels: &[SCHEDULER, TASK, OUTCOME],
        buckets: &[],
        help: "Finished runs by outcome.",
    },
    Metric {
        name: TASK_SKIPPED_TOTAL,
        kind: MetricKind::Counter,
        labels: &[SCHEDULER, TASK, REASON],
        buckets: &[],
        help: "Occurrences that never started, by reason.",
    },
    Metric {
        name: TASK_RETRIES_TOTAL,
        kind: MetricKind::Counter,
        labels: &[SCHEDULER, TASK],
        buckets: &[],
        help: "Retry attempts started.",
    },
    Metric {
        name: TASK_REPLACEMENTS_CONSECUTIVE,
        kind: MetricKind::Gauge,
        labels: &[SCHEDULER, TASK],
        buckets: &[],
        help: "Runs in a row that were replaced before they completed.",
    },
    Metric {
        name: TASK_RUN_DURATION_SECONDS,
        kind: MetricKind::Histogram,
        labels: &[SCHEDULER, TASK],
        buckets: RUN_BUCKETS,
        help: "Wall time of finished runs.",
    },
    Metric {
        name: TASK_LATENESS_SECONDS,
        kind: MetricKind::Histogram,
        labels: &[SCHEDULER, TASK],
        buckets: LATENESS_BUCKETS,
        help: "From due (with jitter) to the scheduler acting on it, for runs that started.",
    },
    Metric {
        name: TASK_QUEUE_WAIT_SECONDS,
        kind: MetricKind::Histogram,
        labels: &[SCHEDULER, TASK],
        buckets: LATENESS_BUCKETS,
        help: "From the decision to the start, caused by overlap buffering or limits.",
    },
    Metric {
        name: TASK_IN_FLIGHT,
        kind: MetricKind::Gauge,
        labels: &[SCHEDULER, TASK],
        buckets: &[],
        help: "Runs going on now.",
    },
    Metric {
        name: TASK_PENDING,
        kind: MetricKind::Gauge,
        labels: &[SCHEDULER, TASK],
        buckets: &[],
        help: "Occurrences accepted or waiting now: buffer, jitter, permits, hand-off.",
    },
    Metric {
        name: TASK_PAUSED,
        kind: MetricKind::Gauge,
        labels: &[SCHEDULER, TASK],
        buckets: &[],
        help: "1 while the task is paused.",
    },
    Metric {
        name: TASK_NEXT_DUE_TIMESTAMP_SECONDS,
        kind: MetricKind::Gauge,
        labels: &[SCHEDULER, TASK],
        buckets: &[],
        help: "Next due instant, Unix time; NaN when there is none.",
    },
    Metric {
        name: TASK_LAST_START_TIMESTAMP_SECONDS,
        kind: MetricKind::Gauge,
        labels: &[SCHEDULER, TASK],
        buckets: &[],
        help: "Start of the last run, Unix time; NaN when there is none.",
    },
    Metric {
        name: TASK_LAST_SUCCESS_TIMESTAMP_SECONDS,
        kind: MetricKind::Gauge,
        labels: &[SCHEDULER, TASK],
        buckets: &[],
        help: "End of the last completed run, Unix time; NaN when there is none.",
    },
    Metric {
        name: TASK_LAST_FAILURE_TIMESTAMP_SECONDS,
        kind: MetricKind::Gauge,
        labels: &[SCHEDULER, TASK],
        buckets: &[],
        help: "End of the last run that failed, panicked or timed out, Unix time; NaN when there is none.",
    },
    Metric {
        name: TASK_REGISTERED_TIMESTAMP_SECONDS,
        kind: MetricKind::Gauge,
        labels: &[SCHEDULER, TASK],
        buckets: &[],
        help: "When the task was added, Unix time; NaN once it is gone.",
    },
    Metric {
        name: TASK_INTERVAL_SECONDS,
        kind: MetricKind::Gauge,
        labels: &[SCHEDULER, TASK],
        buckets: &[],
        help: "Longest expected gap between two occurrences; NaN when it is not known.",
    },
    Metric {
        name: TASK_INFO,
        kind: MetricKind::Gauge,
        labels: &[SCHEDULER, TASK, TRIGGER, TIMEZONE, OVERLAP, MISFIRE],
        buckets: &[],
        help: "Always 1; the settings are in the labels.",
    },
    Metric {
        name: TASKS,
        kind: MetricKind::Gauge,
        labels: &[SCHEDULER, STATE],
        buckets: &[],
        help: "Registered tasks by state.",
    },
    Metric {
        name: TASKS_WITHOUT_LABEL,
        kind: MetricKind::Gauge,
        labels: &[SCHEDULER],
        buckets: &[],
        help: "Registered tasks that share the label of the many, because the limit of distinct tasks is reached.",
    },
    Metric {
        name: UP,
        kind: MetricKind::Gauge,
        labels: &[SCHEDULER],
        buckets: &[],
        help: "1 while the scheduler runs.",
    },
    Metric {
        name: BUILD_INFO,
        kind: MetricKind::Gauge,
        labels: &[SCHEDULER, VERSION],
        buckets: &[],
        help: "Always 1; the version is in the label.",
    },
    Metric {
        name: LOOP_LAST_TICK_TIMESTAMP_SECONDS,
        kind: MetricKind::Gauge,
        labels: &[SCHEDULER],
        buckets: &[],
        help: "When the driver last ran, Unix time.",
    },
    Metric {
        name: LOOP_ARMED_DEADLINE_TIMESTAMP_SECONDS,
        kind: MetricKind::Gauge,
        labels: &[SCHEDULER],
        buckets: &[],
        help: "When the driver means to run next, Unix time; NaN when nothing is due.",
    },
    Metric {
        name: LOOP_LAG_SECONDS,
        kind: MetricKind::Histogram,
        labels: &[SCHEDULER],
        buckets: LAG_BUCKETS,
        help: "From the armed deadline to the driver running.",
    },
    Metric {
        name: LOOP_STALLS_TOTAL,
        kind: MetricKind::Counter,
        labels: &[SCHEDULER],
        buckets: &[],
        help: "Times the driver did not run at its deadline because a runtime worker was blocked.",
    },
    Metric {
        name: LOOP_WAKEUPS_TOTAL,
        kind: MetricKind::Counter,
        labels: &[SCHEDULER],
        buckets: &[],
        help: "The driver's wake-ups.",
    },
    Metric {
        name: CLOCK_JUMPS_TOTAL,
        kind: MetricKind::Counter,
        labels: &[SCHEDULER, DIRECTION],
        buckets: &[],
        help: "Wall-clock steps seen.",
    },
    Metric {
        name: TIMER_ENTRIES,
        kind: MetricKind::Gauge,
        labels: &[SCHEDULER],
        buckets: &[],
        help: "Entries in the timer.",
    },
    Metric {
        name: OBSERVER_PANICS_TOTAL,
        kind: MetricKind::Counter,
        labels: &[SCHEDULER],
        buckets: &[],
        help: "Contained panics of observers and policies.",
    },
    Metric {
        name: HEARTBEAT_CONNECTIONS,
        kind: MetricKind::Gauge,
        labels: &[MONITOR, STATE],
        buckets: &[],
        help: "Connections by state.",
    },
    Metric {
        name: HEARTBEAT_BEATS_TOTAL,
        kind: MetricKind::Counter,
        labels: &[MONITOR],
        buckets: &[],
        help: "Sweeps in which a connection was found to have beaten since the one before, summed over connections.",
    },
    Metric {
        name: HEARTBEAT_SWEEPS_TOTAL,
        kind: MetricKind::Counter,
        labels: &[MONITOR],
        buckets: &[],
        help: "Sweeps of the table.",
    },
    Metric {
        name: HEARTBEAT_EXPIRED_TOTAL,
        kind: MetricKind::Counter,
        labels: &[MONITOR],
        buckets: &[],
        help: "Connections that expired.",
    },
    Metric {
        name: HEARTBEAT_EVENTS_DROPPED_TOTAL,
        kind: MetricKind::Counter,
        labels: &[MONITOR],
        buckets: &[],
        help: "Suspect edges dropped because nobody took them.",
    },
    Metric {
        name: HEARTBEAT_SWEEP_DURATION_SECONDS,
        kind: MetricKind::Histogram,
        labels: &[MONITOR],
        buckets: SWEEP_BUCKETS,
        help: "Time a sweep takes.",
    },
    Metric {
        name: HEARTBEAT_SWEEP_LAG_SECONDS,
        kind: MetricKind::Histogram,
        labels: &[MONITOR],
        buckets: LAG_BUCKETS,
        help: "From when a sweep was due to when it began.",
    },
    Metric {
        name: HEARTBEAT_DETECTION_DELAY_SECONDS,
        kind: MetricKind::Histogram,
        labels: &[MONITOR],
        buckets: LAG_BUCKETS,
        help: "From the passing of a deadline to its report.",
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_rules_of_the_field() {
        for metric in CATALOGUE {
            assert!(metric.name.starts_with(PREFIX), "{}", metric.name);
            assert!(metric.name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'), "{}", metric.name);
            assert_eq!(metric.name.ends_with("_total"), metric.kind == MetricKind::Counter, "{}", metric.name);
            assert_eq!(metric.buckets.is_empty(), metric.kind != MetricKind::Histogram, "{}", metric.name);
            assert!(metric.buckets.is_sorted(), "{}", metric.name);
            assert!(!metric.labels.contains(&"job"), "Prometheus would rename it");
            assert_eq!(metric.name.starts_with("beatline_heartbeat_"), metric.labels.contains(&MONITOR));
            assert_eq!(CATALOGUE.iter().filter(|other| other.name == metric.name).count(), 1, "{}", metric.name);
        }
    }
}

//! The settings of a checker, validated in one place.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use beatline_core::{Clock, Error};

use crate::checker::HeartbeatChecker;
use crate::clock::TokioClock;
use crate::event::{Batch, Callback, Events, Outbox, Sink};
use crate::pace::Pace;
use crate::ping::{PingCallback, Pinging};
use crate::probe::{Probe, Probing};
use crate::shared::{Settings, Shared};
use crate::statistics::Statistics;
use crate::sync::{AtomicU64, Mutex};
use crate::table::Table;
use crate::workers::{Gate, Workers};
use crate::{Key, pace};

const SHORTEST_TICK: Duration = Duration::from_millis(1);

/// Settings of a [`HeartbeatChecker`], made by
/// [`HeartbeatChecker::builder`]. A time-out alone is enough.
///
/// Everything that is wrong is said by [`build`](Builder::build), with the name
/// of the field.
#[must_use = "a builder does nothing until it is built"]
pub struct Builder<K: Key> {
    timeout: Duration,
    tick: Option<Duration>,
    missed: u32,
    suspect_after: Option<Duration>,
    suspects: bool,
    grace: Option<Duration>,
    late_after: Option<Duration>,
    clock: Option<Arc<dyn Clock>>,
    event_capacity: usize,
    batch_size: usize,
    callback_concurrency: usize,
    callback: Option<EventCallback<K>>,
    probe: Option<Box<dyn Probe<K>>>,
    probe_concurrency: usize,
    probe_timeout: Option<Duration>,
    ping: Option<(Duration, PingCallback<K>)>,
}

type EventCallback<K> = Box<dyn Fn(Batch<K>) -> futures::future::BoxFuture<'static, ()> + Send + Sync>;

impl<K: Key> Builder<K> {
    pub(crate) fn new(timeout: Duration) -> Self {
        Self {
            timeout,
            tick: None,
            missed: 1,
            suspect_after: None,
            suspects: true,
            grace: None,
            late_after: None,
            clock: None,
            event_capacity: 65_536,
            batch_size: 256,
            callback_concurrency: 4,
            callback: None,
            probe: None,
            probe_concurrency: 64,
            probe_timeout: None,
            ping: None,
        }
    }

    /// The precision: a silence is detected at most one tick after the time-out,
    /// plus whatever the sweeps were late. By default 100 ms, but not more than
    /// a quarter of the time-out. At least 1 ms, at most the time-out.
    ///
    /// The checker wakes three times a tick.
    pub fn tick(mut self, tick: Duration) -> Self {
        self.tick = Some(tick);
        self
    }

    /// How many time-outs in a row a connection must miss to be dead; 1 by
    /// default. It is dead after `missed × timeout` of silence.
    pub fn missed(mut self, missed: u32) -> Self {
        self.missed = missed;
        self
    }

    /// The silence after which a connection is suspect. By default one time-out
    /// if it takes several missed ones to be dead, else half the time-out.
    /// Classes made by [`timeout_class`](HeartbeatChecker::timeout_class) always
    /// use that default.
    pub fn suspect_after(mut self, silence: Duration) -> Self {
        self.suspect_after = Some(silence);
        self
    }

    /// No connection is ever suspect; there are only expiries.
    pub fn without_suspects(mut self) -> Self {
        self.suspects = false;
        self
    }

    /// What everyone is given after the checker itself was late: nobody is
    /// declared dead until so much time has passed since the late sweep. By
    /// default one time-out, of each class its own. At most three graces in all
    /// are given to one silence, so that a checker that is always late finds the
    /// dead in the end.
    ///
    /// [`Duration::ZERO`] turns it off: a pause then counts as silence.
    pub fn grace(mut self, grace: Duration) -> Self {
        self.grace = Some(grace);
        self
    }

    /// How late a sweep must be for the time before it to count as a pause. By
    /// default an eighth of the time-out, but at most 1 s and at least one tick.
    pub fn late_after(mut self, lag: Duration) -> Self {
        self.late_after = Some(lag);
        self
    }

    /// Where time is read: by sweeps, once each (and once more at their end).
    /// By default tokio's clock, which tests can pause.
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Some(Arc::new(clock));
        self
    }

    /// How many suspect edges may wait for a consumer; 65,536 by default.
    /// Expired edges wait in the table and need no room.
    pub fn event_capacity(mut self, capacity: usize) -> Self {
        self.event_capacity = capacity;
        self
    }

    /// Is told suspect and expired edges in batches, on tasks of their own.
    ///
    /// Called with no lock held, off the sweep, at most
    /// [`callback_concurrency`](Builder::callback_concurrency) at a time. It may
    /// register, touch and remove connections of this checker, and shut it
    /// down. A panic is contained and counted, and what it had not yet taken out
    /// of its [`Batch`] is reported again after the next sweep.
    ///
    /// Runs where the sweep runs; a sweep outside a tokio runtime leaves edges in
    /// the table.
    pub fn on_events<F, Report>(mut self, callback: F) -> Self
    where
        F: Fn(Batch<K>) -> Report + Send + Sync + 'static,
        Report: Future<Output = ()> + Send + 'static,
    {
        self.callback = Some(Box::new(move |batch| Box::pin(callback(batch))));
        self
    }

    /// The most edges in one batch; 256 by default.
    pub fn batch_size(mut self, edges: usize) -> Self {
        self.batch_size = edges;
        self
    }

    /// How many calls of the callback may run at once; 4 by default. With 1
    /// they never overlap.
    pub fn callback_concurrency(mut self, calls: usize) -> Self {
        self.callback_concurrency = calls;
        self
    }

    /// Asks each suspect whether it is alive.
    pub fn probe(mut self, probe: impl Probe<K>) -> Self {
        self.probe = Some(Box::new(probe));
        self
    }

    /// How many probes may run at once; 64 by default.
    pub fn probe_concurrency(mut self, probes: usize) -> Self {
        self.probe_concurrency = probes;
        self
    }

    /// How long a probe may take. By default the time from suspect to expired.
    pub fn probe_timeout(mut self, timeout: Duration) -> Self {
        self.probe_timeout = Some(timeout);
        self
    }

    /// Calls `ping` with the keys of connections to ping, each connection once
    /// an interval, spread evenly over it: never all at once, not even after a
    /// pause. At most [`callback_concurrency`](Builder::callback_concurrency)
    /// calls run at a time; while they all do, pings wait for a later sweep.
    pub fn ping<F, Sending>(mut self, interval: Duration, ping: F) -> Self
    where
        F: Fn(Vec<K>) -> Sending + Send + Sync + 'static,
        Sending: Future<Output = ()> + Send + 'static,
    {
        self.ping = Some((interval, Box::new(move |keys| Box::pin(ping(keys)))));
        self
    }

    /// Makes the checker. It does nothing by itself until it is
    /// [started](HeartbeatChecker::start), [run](HeartbeatChecker::run) or
    /// scheduled.
    ///
    /// # Errors
    ///
    /// [`Error::Invalid`] with the name of the field: a zero duration or count,
    /// a tick under 1 ms or above the time-out, a suspect threshold that is not
    /// below the silence that expires, a silence of more than 2²⁶ thirds of a
    /// tick (25 days at 100 ms).
    pub fn build(mut self) -> Result<HeartbeatChecker<K>, Error> {
        let sink = match self.callback.take() {
            Some(call) => Sink::Callback(Callback {
                call,
                gate: Gate::new(self.callback_concurrency),
                batch_size: self.batch_size,
            }),
            None => Sink::Nobody,
        };
        Ok(HeartbeatChecker::from_shared(self.finish(sink)?))
    }

    /// Makes the checker, and the stream of its edges.
    ///
    /// # Errors
    ///
    /// Those of [`build`](Builder::build); and `on_events` was given too, where
    /// one of both can have an edge.
    pub fn build_with_events(self) -> Result<(HeartbeatChecker<K>, Events<K>), Error> {
        if self.callback.is_some() {
            return Err(Error::invalid("on_events", "edges go to a callback or to a stream, not to both"));
        }
        let shared = self.finish(Sink::Stream)?;
        let events = Events::new(Arc::clone(&shared));
        Ok((HeartbeatChecker::from_shared(shared), events))
    }

    fn finish(self, sink: Sink<K>) -> Result<Arc<Shared<K>>, Error> {
        let tick = self.validate()?;
        let silence = self.timeout.saturating_mul(self.missed);
        let step = tick / 3;
        let settings = Settings { step, missed: self.missed, suspects: self.suspects, grace: self.grace };
        let class = settings.class(self.timeout, self.suspect_after)?;
        let suspect_after = self.suspect_after.unwrap_or(if self.missed > 1 { self.timeout } else { silence / 2 });
        let probe_timeout = self.probe_timeout.unwrap_or(silence.saturating_sub(suspect_after).max(tick));
        let default_late = (self.timeout / 8).min(Duration::from_secs(1)).max(tick);
        let late_after = match self.grace {
            Some(Duration::ZERO) => None,
            _ => Some(self.late_after.unwrap_or(default_late)),
        };
        let reporting = !matches!(sink, Sink::Nobody);
        let pinging = self.ping.map(|(interval, call)| {
            Pinging::new(call, pace::nanoseconds(interval) / pace::nanoseconds(step).max(1), self.callback_concurrency)
        });
        Ok(Arc::new(Shared {
            table: Table::new(reporting),
            settings,
            classes: Mutex::new(vec![class]),
            clock: self.clock.unwrap_or_else(|| Arc::new(TokioClock::new())),
            pace: Mutex::new(Some(Pace::new(step, late_after))),
            outbox: Outbox::new(sink, self.event_capacity),
            probing: self.probe.map(|probe| Probing::new(probe, self.probe_concurrency, probe_timeout)),
            pinging,
            reports: Workers::default(),
            background: Workers::default(),
            runtime: std::sync::OnceLock::new(),
            front: std::sync::OnceLock::new(),
            stop: tokio::sync::Notify::new(),
            swept: Mutex::new(Statistics::default()),
            panics: AtomicU64::new(0),
        }))
    }

    /// Answers the tick.
    fn validate(&self) -> Result<Duration, Error> {
        let positive = |field, duration: Option<Duration>| match duration {
            Some(Duration::ZERO) => Err(Error::invalid(field, "must be more than zero")),
            _ => Ok(()),
        };
        let at_least_one = |field, count: usize| match count {
            0 => Err(Error::invalid(field, "must be at least 1")),
            _ => Ok(()),
        };
        positive("timeout", Some(self.timeout))?;
        positive("tick", self.tick)?;
        positive("suspect_after", self.suspect_after)?;
        positive("late_after", self.late_after)?;
        positive("probe_timeout", self.probe_timeout)?;
        positive("ping", self.ping.as_ref().map(|(interval, _)| *interval))?;
        at_least_one("missed", self.missed as usize)?;
        at_least_one("event_capacity", self.event_capacity)?;
        at_least_one("batch_size", self.batch_size)?;
        at_least_one("callback_concurrency", self.callback_concurrency)?;
        at_least_one("probe_concurrency", self.probe_concurrency)?;
        if self.timeout < SHORTEST_TICK {
            return Err(Error::invalid("timeout", format!("{:?} is less than 1 ms, the shortest tick", self.timeout)));
        }
        let tick = self.tick.unwrap_or((self.timeout / 4).clamp(SHORTEST_TICK, Duration::from_millis(100)));
        if tick < SHORTEST_TICK {
            return Err(Error::invalid("tick", format!("{tick:?} is less than 1 ms, the resolution of tokio's timer")));
        }
        if tick > self.timeout {
            return Err(Error::invalid("tick", format!("{tick:?} is longer than the time-out of {:?}", self.timeout)));
        }
        if let Some(suspect_after) = self.suspect_after {
            if !self.suspects {
                return Err(Error::invalid("suspect_after", "contradicts without_suspects"));
            }
            if suspect_after >= self.timeout.saturating_mul(self.missed) {
                return Err(Error::invalid(
                    "suspect_after",
                    format!(
                        "{suspect_after:?} is not below the silence that expires, {} × {:?}",
                        self.missed, self.timeout
                    ),
                ));
            }
        }
        if self.probe.is_some() && !self.suspects {
            return Err(Error::invalid("probe", "probes are for suspects, and without_suspects says there are none"));
        }
        if let Some((interval, _)) = &self.ping {
            if *interval < tick {
                return Err(Error::invalid("ping", format!("{interval:?} is less than the tick of {tick:?}")));
            }
        }
        Ok(tick)
    }
}

impl<K: Key> fmt::Debug for Builder<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Builder")
            .field("timeout", &self.timeout)
            .field("tick", &self.tick)
            .field("missed", &self.missed)
            .field("suspect_after", &self.suspect_after)
            .field("grace", &self.grace)
            .finish_non_exhaustive()
    }
}

//! `--trouble`: things that go wrong in real programs, made to order.

use std::str::FromStr;
use std::time::{Duration, Instant};

use beatline::core::Keep;
use beatline::{Error, FixedRate, JobHandle, JobResult, Overlap, Run, Scheduler};

use crate::jobs;
use crate::options::duration;
use crate::pace::Pace;
use crate::text::short;

/// When the first blocking run comes, and how often from then on; of real time,
/// because the stall monitor's threshold is too.
const FIRST_BLOCK: Duration = Duration::from_secs(3);
const BLOCK_EVERY: Duration = Duration::from_secs(10);

/// What shall go wrong.
#[derive(Clone, Debug)]
pub(crate) struct Trouble {
    since: Instant,
    block: Option<Duration>,
    overrun: bool,
    fail: Vec<(&'static str, Duration)>,
}

impl Trouble {
    /// Fails, as long as a run of this job shall fail.
    pub(crate) fn strike(&self, run: &Run) -> JobResult {
        let now = self.since.elapsed();
        match self.fail.iter().find(|(job, until)| *job == run.job() && now < *until) {
            Some((_, until)) => Err(format!("trouble was ordered for another {}", short(*until - now)).into()),
            None => Ok(()),
        }
    }

    /// Adds the jobs that are trouble themselves.
    pub(crate) fn add_jobs(&self, scheduler: &Scheduler, pace: Pace) -> Result<Vec<JobHandle>, Error> {
        let mut jobs = Vec::new();
        if let Some(block) = self.block {
            let now_and_then = FixedRate::every(BLOCK_EVERY.max(block.saturating_mul(2))).initial_delay(FIRST_BLOCK);
            jobs.push(scheduler.job("block", now_and_then).run(move |_run| async move {
                // What an async function must never do: the worker can run nothing else meanwhile.
                std::thread::sleep(block);
            })?);
        }
        if self.overrun {
            let too_long = pace.seconds(42);
            let job = scheduler
                .job("overrun", FixedRate::every(pace.seconds(30)).immediately())
                .overlap(Overlap::BufferOne { keep: Keep::Latest })
                .run(move |_run| tokio::time::sleep(too_long))?;
            jobs.push(job);
        }
        Ok(jobs)
    }
}

impl FromStr for Trouble {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut trouble = Self { since: Instant::now(), block: None, overrun: false, fail: Vec::new() };
        for item in text.split(',').map(str::trim).filter(|_| !text.is_empty()) {
            match item.split_once('=') {
                None if item == "overrun" => trouble.overrun = true,
                Some(("block", time)) => {
                    trouble.block = Some(duration(time).map_err(|problem| format!("{item}: {problem}"))?);
                }
                Some(("fail", order)) => {
                    trouble.fail.push(failing(order).map_err(|problem| format!("{item}: {problem}"))?)
                }
                _ => {
                    return Err(format!(
                        "{item:?} is no trouble we know; give block=DURATION, overrun or fail=JOB:DURATION"
                    ));
                }
            }
        }
        Ok(trouble)
    }
}

fn failing(order: &str) -> Result<(&'static str, Duration), String> {
    let (job, time) = order.split_once(':').ok_or("give the job and for how long, such as fail=quotes:20s")?;
    let known = jobs::NAMES.into_iter().find(|name| *name == job);
    let job = known.ok_or_else(|| format!("there is no job {job:?}; the jobs are {}", jobs::NAMES.join(", ")))?;
    Ok((job, duration(time)?))
}

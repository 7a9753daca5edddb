//! What runs: the kinds of body, behind one trait.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use beatline_core::{Job, JobOutput, JobResult, Run};

/// A run's future.
pub(crate) type BoxFuture = Pin<Box<dyn Future<Output = JobResult> + Send + 'static>>;

/// Where a body runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Polled by a runner, and if that is not enough by a task of its own.
    Async,
    /// Called on a thread of the blocking pool.
    Blocking,
    /// Called on the driver.
    Inline,
}

/// A body that was called.
pub(crate) enum Begun {
    /// It has ended.
    Done(JobResult),
    /// It is to be polled.
    Pending(BoxFuture),
}

/// What a job does. Called inside a containment: it may panic.
pub(crate) trait Body: Send + Sync + 'static {
    const KIND: Kind;

    fn begin(&self, run: Run) -> Begun;
}

/// An asynchronous closure.
pub(crate) struct AsyncBody<F>(pub(crate) F);

impl<F, T> Body for AsyncBody<F>
where
    F: Fn(Run) -> T + Send + Sync + 'static,
    T: Future + Send + 'static,
    T::Output: JobOutput,
{
    const KIND: Kind = Kind::Async;

    fn begin(&self, run: Run) -> Begun {
        let future = (self.0)(run);
        Begun::Pending(Box::pin(async move { future.await.into_result() }))
    }
}

/// A job that is an object.
pub(crate) struct ObjectBody<J>(pub(crate) Arc<J>);

impl<J: Job> Body for ObjectBody<J> {
    const KIND: Kind = Kind::Async;

    fn begin(&self, run: Run) -> Begun {
        let job = Arc::clone(&self.0);
        Begun::Pending(Box::pin(async move { job.run(run).await }))
    }
}

/// A closure that looks first, and goes asynchronous only if there is something
/// to do.
pub(crate) struct CheckBody<F>(pub(crate) F);

impl<F, T> Body for CheckBody<F>
where
    F: Fn(Run) -> Option<T> + Send + Sync + 'static,
    T: Future + Send + 'static,
    T::Output: JobOutput,
{
    const KIND: Kind = Kind::Async;

    fn begin(&self, run: Run) -> Begun {
        match (self.0)(run) {
            None => Begun::Done(Ok(())),
            Some(future) => Begun::Pending(Box::pin(async move { future.await.into_result() })),
        }
    }
}

/// A closure that blocks its thread.
pub(crate) struct BlockingBody<F>(pub(crate) F);

impl<F, T> Body for BlockingBody<F>
where
    F: Fn(Run) -> T + Send + Sync + 'static,
    T: JobOutput,
{
    const KIND: Kind = Kind::Blocking;

    fn begin(&self, run: Run) -> Begun {
        Begun::Done((self.0)(run).into_result())
    }
}

/// A closure short enough for the driver.
pub(crate) struct InlineBody<F>(pub(crate) F);

impl<F, T> Body for InlineBody<F>
where
    F: Fn(Run) -> T + Send + Sync + 'static,
    T: JobOutput,
{
    const KIND: Kind = Kind::Inline;

    fn begin(&self, run: Run) -> Begun {
        Begun::Done((self.0)(run).into_result())
    }
}

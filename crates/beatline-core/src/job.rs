//! What runs.

use async_trait::async_trait;

use crate::{BoxError, Run};

/// What a run returns: nothing, or any error.
///
/// Closures that use `?` need a named error type; ending them with
/// `JobResult::Ok(())` names it.
pub type JobResult = Result<(), BoxError>;

/// What runs, as an object: for jobs that carry state of their own, and for
/// decorators around other jobs. Most jobs are closures and need no `impl`.
///
/// The scheduler calls [`run`](Job::run) once for each occurrence it starts,
/// on the runtime's workers, never two times at once unless the overlap policy
/// allows it. A panic, in the call or in a poll, is caught: that run is
/// `Panicked` and the schedule goes on. The future is dropped at an await point
/// if the run times out or is aborted; whatever must survive that belongs into
/// a `Drop` or a transaction.
///
/// ```
/// use beatline_core::{Job, JobResult, Run, async_trait};
///
/// struct Refresh {
///     url: String,
/// }
///
/// #[async_trait]
/// impl Job for Refresh {
///     async fn run(&self, run: Run) -> JobResult {
///         println!("refreshing {} for {}", self.url, run.due());
///         Ok(())
///     }
/// }
/// ```
#[async_trait]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a job",
    label = "expected an `impl Job`",
    note = "closures and async functions go to `.run(…)`, `.run_blocking(…)`, `.run_inline(…)` or `.run_check(…)`"
)]
pub trait Job: Send + Sync + 'static {
    /// One run.
    async fn run(&self, run: Run) -> JobResult;
}

#[async_trait]
impl<J: Job + ?Sized> Job for Box<J> {
    async fn run(&self, run: Run) -> JobResult {
        (**self).run(run).await
    }
}

#[async_trait]
impl<J: Job + ?Sized> Job for std::sync::Arc<J> {
    async fn run(&self, run: Run) -> JobResult {
        (**self).run(run).await
    }
}

/// What a closure job may return: `()`, or a `Result<(), E>` with any error.
#[diagnostic::on_unimplemented(
    message = "a job cannot return `{Self}`",
    label = "the run ends in `{Self}`",
    note = "a run returns `()` or `Result<(), E>` where `E` converts into a boxed error",
    note = "a value is dropped with `.map(|_| ())` or a closing `;`; a closure that uses `?` ends with `JobResult::Ok(())`",
    note = "a run ends: put the body of the loop here and let the trigger repeat it"
)]
pub trait JobOutput {
    /// The same, with the error boxed.
    #[doc(hidden)]
    fn into_result(self) -> JobResult;
}

impl JobOutput for () {
    fn into_result(self) -> JobResult {
        Ok(())
    }
}

impl<E: Into<BoxError>> JobOutput for Result<(), E> {
    fn into_result(self) -> JobResult {
        self.map_err(Into::into)
    }
}

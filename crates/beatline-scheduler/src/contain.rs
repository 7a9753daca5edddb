//! Foreign code is called through here: a panic in it ends here.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Calls `f`; a panic comes back as its text.
///
/// Unwind safety is asserted: what `f` touches is either the user's own, which
/// then answers for itself, or is not looked at again after a panic.
pub(crate) fn contain<T>(f: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(f)).map_err(panic_text)
}

/// The text of a panic. The payload is forgotten, not dropped: its `Drop` is
/// foreign code too and might panic again.
pub(crate) fn panic_text(payload: Box<dyn Any + Send>) -> String {
    let text = if let Some(text) = payload.downcast_ref::<&'static str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "a panic without a text".to_owned()
    };
    std::mem::forget(payload);
    text
}

/// Something of the user's. A panic in its `Drop` ends here.
pub(crate) struct Contained<T>(Option<T>);

impl<T> Contained<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Some(value))
    }
}

impl<T> std::ops::Deref for Contained<T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.0.as_ref().expect("only `drop` takes it out")
    }
}

impl<T> Drop for Contained<T> {
    fn drop(&mut self) {
        discard(self.0.take());
    }
}

/// Drops something of the user's; a panic in its `Drop` ends here.
pub(crate) fn discard<T>(value: T) {
    if let Err(message) = contain(|| drop(value)) {
        tracing::error!(target: "beatline", message, "a value given to a job panicked when it was dropped");
    }
}

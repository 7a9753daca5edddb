//! Metrics are published, not incremented: how whoever keeps the books and
//! whoever shows them find together, without either knowing the other.

use std::sync::{Arc, Weak};

/// Something that keeps books and copies them into metrics when asked.
///
/// The scheduler and the heartbeat checkers are publishers: the hot path writes
/// its own statistics and nothing else, and a reader of metrics pays for the
/// reading.
pub trait Publish: Send + Sync {
    /// Copies the books into the metrics recorder they were registered with.
    ///
    /// Called before each rendering, from the exporter's own thread, never by two
    /// threads at once for one exporter. It may take locks that are held for
    /// moments; it must not wait for a runtime.
    fn publish(&self);
}

/// Where metrics are read: an exporter that asks its publishers first.
///
/// ```
/// use beatline_core::{BeforeRender, Publish};
/// use std::sync::{Arc, Mutex, Weak};
///
/// #[derive(Default)]
/// struct Exporter {
///     publishers: Mutex<Vec<Weak<dyn Publish>>>,
/// }
///
/// impl BeforeRender for Exporter {
///     fn before_render(&self, publisher: Weak<dyn Publish>) {
///         self.publishers.lock().unwrap().push(publisher);
///     }
/// }
///
/// impl Exporter {
///     fn render(&self) -> String {
///         self.publishers.lock().unwrap().retain(|publisher| match publisher.upgrade() {
///             Some(publisher) => {
///                 publisher.publish();
///                 true
///             }
///             None => false, // it is gone, and published its last figures before it went
///         });
///         String::from("…")
///     }
/// }
/// # Exporter::default().render();
/// ```
pub trait BeforeRender: Send + Sync {
    /// From now on `publisher` is asked before each rendering, for as long as it
    /// exists.
    fn before_render(&self, publisher: Weak<dyn Publish>);
}

impl<T: BeforeRender + ?Sized> BeforeRender for Arc<T> {
    fn before_render(&self, publisher: Weak<dyn Publish>) {
        (**self).before_render(publisher);
    }
}

//! What a touch can be refused for.

/// The connection has been declared dead; a touch does not bring it back.
///
/// Final for this [`Beat`](crate::Beat): whoever comes back registers anew.
/// Whoever gets this closes the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the connection has expired; close it, and register again if it comes back")]
pub struct Expired;

/// Why a touch by key was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TouchError {
    /// The connection has been declared dead.
    #[error("the connection has expired; register the key again if it comes back")]
    Expired,
    /// No connection has this key: it was never registered, was removed, or its
    /// expiry has been reported.
    #[error("no connection has this key; register it first")]
    Unknown,
}

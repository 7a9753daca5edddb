//! The one place atomics and locks come from, so that the model checker can
//! stand in for them.
//!
//! Under `--cfg loom` they are loom's, which runs a model through every order
//! of its atomic steps; otherwise the standard library's.

use std::sync::PoisonError;

#[cfg(loom)]
pub(crate) use loom::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
};
#[cfg(not(loom))]
pub(crate) use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
};

/// Locks, whatever a holder before did: what these locks guard is consistent
/// between any two statements, and a panic of a key's `Clone` must not take the
/// table with it.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

//! Programs that measure beatline; see `src/bin`.

//! The programs are under `examples/`; this library is empty.

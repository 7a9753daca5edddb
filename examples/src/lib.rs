//! Nothing of its own: the programs are under `examples/`.

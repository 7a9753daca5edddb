//! What the programs under `src/bin` share.

pub mod figures;
pub mod policies {
    //! The parts of `policies`.

    pub mod neighbour;
    pub mod overload;
}

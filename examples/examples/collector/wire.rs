//! What goes between exchange and collector, as JSON.

use serde::{Deserialize, Serialize};

/// One answer to "what are the quotes?".
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Answer {
    pub(crate) id: AnswerId,
    pub(crate) quotes: Vec<Quote>,
}

/// Which answer: numbers run from 1 for each client, and begin anew with the
/// exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct AnswerId {
    /// When the exchange opened, in milliseconds since the Unix epoch.
    pub(crate) exchange: u64,
    pub(crate) number: u64,
}

/// One price.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Quote {
    pub(crate) instrument: String,
    pub(crate) session: String,
    pub(crate) price: f64,
    /// At which of the exchange's ticks this price was made.
    pub(crate) tick: u64,
    pub(crate) time: String,
}

/// A trading session, and what is traded in it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Session {
    pub(crate) name: String,
    pub(crate) instruments: Vec<String>,
}

/// What the exchange says it sent to one client.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Sent {
    pub(crate) answers: u64,
    pub(crate) quotes: u64,
    /// The answers it still keeps, because nobody has acknowledged them.
    pub(crate) unacknowledged: Vec<AnswerId>,
}

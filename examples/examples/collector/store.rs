//! What was collected: a file of JSON lines, and the books about it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use beatline::core::BoxError;
use serde::Serialize;

use crate::wire::{Answer, AnswerId, Quote};

/// Answers older than this are known to be stored only by the exchange's word.
const REMEMBERED: usize = 4_096;

/// Quotes on disk.
pub(crate) struct Store {
    directory: PathBuf,
    books: Mutex<Books>,
}

struct Books {
    file: File,
    stored: BTreeSet<AnswerId>,
    unacknowledged: BTreeSet<AnswerId>,
    totals: Totals,
}

/// How much this process has collected.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) answers: u64,
    pub(crate) quotes: u64,
    pub(crate) acknowledged: u64,
}

/// One instrument over all that was stored.
#[derive(Debug, Serialize)]
struct Digest {
    instrument: String,
    quotes: u64,
    low: f64,
    high: f64,
    last: f64,
}

impl Store {
    /// The store in this directory; what is there already is kept.
    pub(crate) fn open(directory: PathBuf) -> std::io::Result<Self> {
        std::fs::create_dir_all(&directory)?;
        let file = OpenOptions::new().create(true).append(true).open(directory.join("quotes.jsonl"))?;
        let books = Books { file, stored: BTreeSet::new(), unacknowledged: BTreeSet::new(), totals: Totals::default() };
        Ok(Self { directory, books: Mutex::new(books) })
    }

    /// The file of quotes.
    pub(crate) fn path(&self) -> PathBuf {
        self.directory.join("quotes.jsonl")
    }

    /// Stores an answer, unless it is stored already. Returns how many answers
    /// wait to be acknowledged.
    ///
    /// A short write into the system's cache, and no await between it and the
    /// books: a run that is dropped at its time-out cannot be dropped in between.
    pub(crate) fn append(&self, answer: &Answer) -> Result<usize, BoxError> {
        let mut lines = Vec::new();
        for quote in &answer.quotes {
            serde_json::to_writer(&mut lines, quote)?;
            lines.push(b'\n');
        }
        let mut books = self.books();
        if !books.stored.contains(&answer.id) {
            books.file.write_all(&lines)?;
            books.totals.answers += 1;
            books.totals.quotes += answer.quotes.len() as u64;
            books.unacknowledged.insert(answer.id);
            books.stored.insert(answer.id);
            if books.stored.len() > REMEMBERED {
                books.stored.pop_first();
            }
        }
        Ok(books.unacknowledged.len())
    }

    /// Whether this answer is stored.
    pub(crate) fn contains(&self, id: AnswerId) -> bool {
        self.books().stored.contains(&id)
    }

    /// What is stored and not acknowledged.
    pub(crate) fn unacknowledged(&self) -> Vec<AnswerId> {
        self.books().unacknowledged.iter().copied().collect()
    }

    /// The exchange knows that these are stored.
    pub(crate) fn acknowledged(&self, ids: &[AnswerId]) {
        let mut books = self.books();
        for id in ids {
            if books.unacknowledged.remove(id) {
                books.totals.acknowledged += 1;
            }
        }
    }

    pub(crate) fn totals(&self) -> Totals {
        self.books().totals
    }

    /// Brings the quotes to the disk, reads them all back and writes `digest.json`
    /// beside them. Blocks for as long as the disk takes. Returns how many quotes
    /// there are, and how many lines could not be read.
    pub(crate) fn digest(&self, stop: impl Fn() -> bool) -> Result<(u64, u64), BoxError> {
        // A second handle, so that nobody waits for the disk under the lock; and the length as it
        // is now, so that a line which is just being written is not read by half.
        let (file, length) = {
            let books = self.books();
            (books.file.try_clone()?, books.file.metadata()?.len())
        };
        file.sync_data()?;
        let mut digests: BTreeMap<String, Digest> = BTreeMap::new();
        let (mut quotes, mut unreadable) = (0, 0);
        for line in BufReader::new(File::open(self.path())?.take(length)).lines() {
            if stop() {
                return Err("stopped before the end of the file".into());
            }
            let Ok(quote) = serde_json::from_str::<Quote>(&line?) else {
                unreadable += 1;
                continue;
            };
            quotes += 1;
            let price = quote.price;
            let empty =
                Digest { instrument: quote.instrument.clone(), quotes: 0, low: price, high: price, last: price };
            let digest = digests.entry(quote.instrument).or_insert(empty);
            digest.quotes += 1;
            digest.low = digest.low.min(price);
            digest.high = digest.high.max(price);
            digest.last = price;
        }
        let digests: Vec<Digest> = digests.into_values().collect();
        replace(&self.directory.join("digest.json"), &serde_json::to_vec_pretty(&digests)?)?;
        Ok((quotes, unreadable))
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Readers see the old file or the new one, never half of it.
fn replace(path: &Path, contents: &[u8]) -> std::io::Result<()> {
    let fresh = path.with_extension("new");
    std::fs::write(&fresh, contents)?;
    std::fs::rename(fresh, path)
}

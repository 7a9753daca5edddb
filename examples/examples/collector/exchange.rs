//! The embedded exchange: HTTP on loopback, with quotes that move and faults that
//! come in the same order at every start.
//!
//! It keeps each answer until its receipt was acknowledged, so that a client can
//! ask again for what got lost on the way. An answer counts as sent when it was
//! made: whether it arrived is for the client to find out.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use beatline::Timestamp;
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::pace::Pace;
use crate::wire::{Answer, AnswerId, Quote, Sent, Session};

/// The market: sessions, what is traded in them, and the price it opens at.
const MARKET: [(&str, &[(&str, f64)]); 4] = [
    ("tokyo", &[("SAKURA", 2_410.0), ("KAEDE", 865.5)]),
    ("frankfurt", &[("LINDE", 98.2), ("AHORN", 41.75), ("BUCHE", 187.4)]),
    ("london", &[("OAK", 512.8), ("YEW", 77.35)]),
    ("new-york", &[("MAPLE", 149.9), ("ASPEN", 23.6), ("CEDAR", 301.15)]),
];

/// How many clients it serves, and how many answers it keeps for each: some 2,200
/// get lost over a weekend, from one reconciliation to the next.
const MOST_CLIENTS: usize = 64;
const MOST_KEPT: usize = 2_500;
/// After this many answers a session falls asleep, until it is woken.
const TICKS_UNTIL_SLEEP: u64 = 7;
/// How long connections may take to end when the exchange closes.
const CLOSING_TIME: Duration = Duration::from_secs(2);

/// A running exchange.
pub(crate) struct Exchange {
    address: SocketAddr,
    close: oneshot::Sender<()>,
    server: JoinHandle<()>,
}

impl Exchange {
    /// Opens an exchange at this address.
    pub(crate) async fn open(address: SocketAddr, pace: Pace) -> std::io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let floor = Arc::new(Floor { pace, trade: Mutex::new(Trade::new()) });
        let routes = Router::new()
            .route("/quotes", get(quotes))
            .route("/answers/{number}", get(answer))
            .route("/sent", get(sent))
            .route("/acknowledge", post(acknowledge))
            .route("/sessions", get(sessions))
            .route("/sessions/{name}/wake", post(wake))
            .with_state(floor);
        let (close, closed) = oneshot::channel::<()>();
        let server = tokio::spawn(async move {
            let serve = axum::serve(listener, routes).with_graceful_shutdown(async move {
                // A sender that was dropped closes it as well.
                let _ = closed.await;
            });
            if let Err(error) = serve.await {
                eprintln!("collector: the exchange failed: {error}");
            }
        });
        Ok(Self { address, close, server })
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Closes it: no new connections, and a moment for those that are open.
    pub(crate) async fn close(mut self) {
        let _ = self.close.send(());
        if tokio::time::timeout(CLOSING_TIME, &mut self.server).await.is_err() {
            self.server.abort();
        }
    }
}

/// What all requests share.
struct Floor {
    pace: Pace,
    trade: Mutex<Trade>,
}

impl Floor {
    fn trade(&self) -> MutexGuard<'_, Trade> {
        self.trade.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct Trade {
    opened: u64,
    tick: u64,
    random: fastrand::Rng,
    /// What goes wrong next; filled again when it is empty.
    faults: Vec<Option<Fault>>,
    listings: Vec<Listing>,
    asleep: Option<&'static str>,
    clients: BTreeMap<String, Client>,
}

struct Listing {
    session: &'static str,
    instrument: &'static str,
    price: f64,
    tick: u64,
}

#[derive(Default)]
struct Client {
    answers: u64,
    quotes: u64,
    kept: VecDeque<Answer>,
}

#[derive(Clone, Copy)]
enum Fault {
    Slow,
    Error,
    Rubbish,
}

impl Trade {
    fn new() -> Self {
        let listing = |(session, instruments): (&'static str, &'static [(&'static str, f64)])| {
            instruments.iter().map(move |&(instrument, price)| Listing { session, instrument, price, tick: 0 })
        };
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        Self {
            opened: u64::try_from(now.as_millis()).unwrap_or(u64::MAX),
            tick: 0,
            random: fastrand::Rng::with_seed(7),
            faults: Vec::new(),
            listings: MARKET.into_iter().flat_map(listing).collect(),
            asleep: None,
            clients: BTreeMap::new(),
        }
    }

    /// Of eight answers one is slow, one an error and one rubbish; the seed says
    /// which.
    fn next_fault(&mut self) -> Option<Fault> {
        if self.faults.is_empty() {
            self.faults = vec![Some(Fault::Slow), Some(Fault::Error), Some(Fault::Rubbish)];
            self.faults.resize(8, None);
            self.random.shuffle(&mut self.faults);
        }
        self.faults.pop().flatten()
    }

    /// Moves every price by up to 0.2 %, but for the session that sleeps.
    fn advance(&mut self) {
        self.tick += 1;
        if self.asleep.is_none() && self.tick % TICKS_UNTIL_SLEEP == 0 {
            self.asleep = self.random.choice(MARKET).map(|(session, _)| session);
        }
        for listing in self.listings.iter_mut().filter(|listing| Some(listing.session) != self.asleep) {
            let step = self.random.f64() * 0.004 - 0.002;
            listing.price = (listing.price * (1.0 + step) * 100.0).round() / 100.0;
            listing.tick = self.tick;
        }
    }

    /// The present quotes as a new answer to this client.
    fn answer(&mut self, client: String) -> Option<Answer> {
        if self.clients.len() >= MOST_CLIENTS && !self.clients.contains_key(&client) {
            return None;
        }
        let time = Timestamp::from(SystemTime::now()).to_string();
        let quote = |listing: &Listing| Quote {
            instrument: listing.instrument.to_owned(),
            session: listing.session.to_owned(),
            price: listing.price,
            tick: listing.tick,
            time: time.clone(),
        };
        let quotes: Vec<Quote> = self.listings.iter().map(quote).collect();
        let client = self.clients.entry(client).or_default();
        client.answers += 1;
        client.quotes += quotes.len() as u64;
        let answer = Answer { id: AnswerId { exchange: self.opened, number: client.answers }, quotes };
        if client.kept.len() == MOST_KEPT {
            client.kept.pop_front();
        }
        client.kept.push_back(answer.clone());
        Some(answer)
    }
}

/// Who is asking.
#[derive(Deserialize)]
struct Caller {
    client: String,
}

async fn quotes(State(floor): State<Arc<Floor>>, Query(caller): Query<Caller>) -> Response {
    let (fault, answer) = {
        let mut trade = floor.trade();
        let fault = trade.next_fault();
        trade.advance();
        match fault {
            Some(Fault::Error) => return (StatusCode::SERVICE_UNAVAILABLE, "trading halted").into_response(),
            _ => (fault, trade.answer(caller.client)),
        }
    };
    let Some(answer) = answer else { return (StatusCode::TOO_MANY_REQUESTS, "too many clients").into_response() };
    match fault {
        Some(Fault::Rubbish) => "<html>It works!</html>".into_response(),
        Some(Fault::Slow) => {
            // Longer than the collector waits.
            tokio::time::sleep(floor.pace.seconds(15)).await;
            Json(answer).into_response()
        }
        _ => Json(answer).into_response(),
    }
}

async fn answer(State(floor): State<Arc<Floor>>, Path(number): Path<u64>, Query(caller): Query<Caller>) -> Response {
    let trade = floor.trade();
    let kept = trade.clients.get(&caller.client).map(|client| &client.kept);
    match kept.into_iter().flatten().find(|answer| answer.id.number == number) {
        Some(answer) => Json(answer).into_response(),
        None => (StatusCode::NOT_FOUND, "no such answer").into_response(),
    }
}

async fn sent(State(floor): State<Arc<Floor>>, Query(caller): Query<Caller>) -> Json<Sent> {
    let trade = floor.trade();
    Json(match trade.clients.get(&caller.client) {
        None => Sent { answers: 0, quotes: 0, unacknowledged: Vec::new() },
        Some(client) => Sent {
            answers: client.answers,
            quotes: client.quotes,
            unacknowledged: client.kept.iter().map(|answer| answer.id).collect(),
        },
    })
}

async fn acknowledge(
    State(floor): State<Arc<Floor>>,
    Query(caller): Query<Caller>,
    Json(received): Json<Vec<AnswerId>>,
) {
    if let Some(client) = floor.trade().clients.get_mut(&caller.client) {
        client.kept.retain(|answer| !received.contains(&answer.id));
    }
}

async fn sessions() -> Json<Vec<Session>> {
    let session = |(name, listings): (&str, &[(&str, f64)])| Session {
        name: name.to_owned(),
        instruments: listings.iter().map(|(instrument, _)| (*instrument).to_owned()).collect(),
    };
    Json(MARKET.into_iter().map(session).collect())
}

async fn wake(State(floor): State<Arc<Floor>>, Path(name): Path<String>) -> Response {
    let mut trade = floor.trade();
    if !MARKET.iter().any(|(session, _)| *session == name) {
        return (StatusCode::NOT_FOUND, "no such session").into_response();
    }
    trade.asleep = trade.asleep.filter(|asleep| *asleep != name);
    StatusCode::NO_CONTENT.into_response()
}

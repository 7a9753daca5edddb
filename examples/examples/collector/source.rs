//! The collector's side of the wire.

use axum::body::Body;
use axum::http::{Method, Request, Uri, header};
use beatline::core::BoxError;
use http_body_util::{BodyExt, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::wire::{Answer, AnswerId, Sent, Session};

/// No honest answer is longer than this.
const LONGEST_ANSWER: usize = 1 << 20;

/// An exchange to collect from. Dropping a request drops it on the wire too.
pub(crate) struct Source {
    base: Uri,
    name: String,
    client: Client<HttpConnector, Body>,
}

impl Source {
    /// The exchange at this URL, to which we are known as `name`.
    pub(crate) fn new(base: Uri, name: String) -> Self {
        Self { base, name, client: Client::builder(TokioExecutor::new()).build_http() }
    }

    /// Where it is.
    pub(crate) fn url(&self) -> String {
        self.base.to_string().trim_end_matches('/').to_owned()
    }

    pub(crate) async fn quotes(&self) -> Result<Answer, BoxError> {
        self.ask("quotes").await
    }

    pub(crate) async fn answer(&self, id: AnswerId) -> Result<Answer, BoxError> {
        self.ask(&format!("answers/{}", id.number)).await
    }

    pub(crate) async fn sent(&self) -> Result<Sent, BoxError> {
        self.ask("sent").await
    }

    pub(crate) async fn sessions(&self) -> Result<Vec<Session>, BoxError> {
        self.ask("sessions").await
    }

    pub(crate) async fn acknowledge(&self, received: &[AnswerId]) -> Result<(), BoxError> {
        self.send(Method::POST, "acknowledge", Some(received)).await.map(drop)
    }

    pub(crate) async fn wake(&self, session: &str) -> Result<(), BoxError> {
        self.send(Method::POST, &format!("sessions/{session}/wake"), None::<&()>).await.map(drop)
    }

    async fn ask<T: DeserializeOwned>(&self, what: &str) -> Result<T, BoxError> {
        let body = self.send(Method::GET, what, None::<&()>).await?;
        serde_json::from_slice(&body).map_err(|error| {
            let begin: String = String::from_utf8_lossy(&body).chars().take(24).collect();
            format!("the exchange answered rubbish, {begin:?}: {error}").into()
        })
    }

    async fn send(
        &self,
        method: Method,
        what: &str,
        body: Option<&(impl Serialize + ?Sized)>,
    ) -> Result<Vec<u8>, BoxError> {
        let request = Request::builder().method(method).uri(format!("{}/{what}?client={}", self.url(), self.name));
        let request = match body {
            Some(body) => {
                request.header(header::CONTENT_TYPE, "application/json").body(Body::from(serde_json::to_vec(body)?))?
            }
            None => request.body(Body::empty())?,
        };
        let answer = self.client.request(request).await?;
        let status = answer.status();
        let body = Limited::new(answer.into_body(), LONGEST_ANSWER).collect().await?.to_bytes();
        if !status.is_success() {
            let reason: String = String::from_utf8_lossy(&body).chars().take(60).collect();
            return Err(format!("the exchange answered {status}: {reason}").into());
        }
        Ok(body.into())
    }
}

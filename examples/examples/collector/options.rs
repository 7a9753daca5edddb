//! The command line, checked in one place: a bad option is named, told what would
//! be right, and ends the program with 2 before anything has started.

use std::fmt::Display;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use axum::http::Uri;
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};

use crate::pace::Pace;
use crate::trouble::Trouble;

/// Collects quotes from an exchange. Every fetch, check and clean-up is a run of
/// a scheduled job, and at the end every due instant is accounted for.
#[derive(Debug, Parser)]
#[command(name = "collector")]
pub(crate) struct Options {
    /// Collect from this exchange, such as http://127.0.0.1:8080, instead of an own one on loopback
    #[arg(long, value_name = "URL", value_parser = source, conflicts_with = "listen")]
    pub(crate) source: Option<Uri>,

    /// Where the own exchange listens; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", value_parser = loopback, default_value = "127.0.0.1:0")]
    pub(crate) listen: SocketAddr,

    /// Where quotes.jsonl is kept [default: a fresh directory under the system's temporary one]
    #[arg(long, value_name = "DIR")]
    pub(crate) data: Option<PathBuf>,

    /// Divide all periods and time-outs by this; at 30, half a minute passes in a second. At 1 a
    /// time of day is the real one; otherwise market time starts at Monday 02:57 in Asia/Shanghai
    #[arg(long, value_name = "N", default_value = "30", allow_negative_numbers = true)]
    pub(crate) speed: Pace,

    /// End after this time, such as 20s, 2m or 1m30s [default: at Ctrl-C]
    #[arg(long = "for", value_name = "DURATION", value_parser = duration)]
    pub(crate) run_for: Option<Duration>,

    /// Make trouble: block=DURATION, overrun, fail=JOB:DURATION; several with commas between
    #[arg(long, value_name = "TROUBLE", default_value = "", hide_default_value = true)]
    pub(crate) trouble: Trouble,

    /// Write the summary to this file as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) summary: Option<PathBuf>,
}

/// Ends the program over an option that only trying could show to be wrong.
pub(crate) fn refuse(option: &str, problem: impl Display, remedy: &str) -> ! {
    Options::command().error(ErrorKind::ValueValidation, format!("{option}: {problem}; {remedy}")).exit()
}

/// A duration as people write it, more than nothing.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    match humantime::parse_duration(text) {
        Ok(Duration::ZERO) => Err("is no time at all; give more, such as 20s".to_owned()),
        Ok(duration) => Ok(duration),
        Err(error) => Err(format!("{error}; give a duration such as 20s, 2m or 1m30s")),
    }
}

fn source(text: &str) -> Result<Uri, String> {
    let example = "give one such as http://127.0.0.1:8080";
    let url: Uri = text.parse().map_err(|error| format!("{error}; {example}"))?;
    match (url.scheme_str(), url.authority()) {
        (Some("http"), Some(_)) if url.path() == "/" && url.query().is_none() => Ok(url),
        (Some("http"), Some(_)) => Err(format!("goes beyond the host; {example}")),
        _ => Err(format!("is not an http URL; {example}")),
    }
}

fn loopback(text: &str) -> Result<SocketAddr, String> {
    let example = "give a loopback address and a port, such as 127.0.0.1:8080";
    match text.parse::<SocketAddr>() {
        Ok(address) if address.ip().is_loopback() => Ok(address),
        Ok(_) => Err(format!("is open to the network; {example}")),
        Err(error) => Err(format!("{error}; {example}")),
    }
}

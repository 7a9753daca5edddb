//! When a cron expression fires next.
//!
//! ```text
//! cargo run --release -p examples --example cron_next -- \
//!     [--dialect vixie5|ext5|six|seven|quartz6|quartz7] EXPRESSION ZONE FROM [COUNT]
//! ```
//!
//! prints the next COUNT (3) instants after FROM (RFC 3339), one a line in UTC,
//! and `NEVER` where there is none or no further one. An expression error goes
//! to standard error with a caret under the byte; the exit code is then 2.
//!
//! With `--batch` it reads lines `dialect expression zone from count`, separated
//! by tabs (`\t` in the expression stands for a tab), and answers each with one
//! line: the instants separated by commas, or `ERROR position message`.

use std::io::{self, BufRead, Write};
use std::process::ExitCode;

use beatline_core::Timestamp;
use beatline_cron::{Cron, Dialect, ParseError};

const USAGE: &str = "usage: cron_next [--dialect vixie5|ext5|six|seven|quartz6|quartz7] EXPRESSION ZONE FROM [COUNT]
       cron_next --batch    (lines of: dialect, expression, zone, from, count; separated by tabs)";

/// What can be wrong with a question.
enum Problem {
    Expression(ParseError),
    /// The zone, the instant, the number or the dialect.
    Other(String),
}

impl From<ParseError> for Problem {
    fn from(error: ParseError) -> Self {
        Problem::Expression(error)
    }
}

impl From<beatline_core::Error> for Problem {
    fn from(error: beatline_core::Error) -> Self {
        Problem::Other(error.to_string())
    }
}

fn dialect(name: &str) -> Result<Dialect, Problem> {
    Ok(match name {
        "vixie5" => Dialect::Classic,
        "ext5" => Dialect::Extended,
        "six" => Dialect::Seconds,
        "seven" => Dialect::SecondsYear,
        "quartz6" => Dialect::Quartz,
        "quartz7" => Dialect::QuartzYear,
        other => return Err(Problem::Other(format!("dialect: `{}` is unknown", other.escape_default()))),
    })
}

fn count(text: &str) -> Result<usize, Problem> {
    text.parse().map_err(|_| Problem::Other(format!("count: `{}` is not a number", text.escape_default())))
}

/// The next `count` instants, handed over one by one, and `NEVER` where they
/// end before.
fn instants(
    dialect: Dialect,
    expression: &str,
    zone: &str,
    from: &str,
    count: usize,
    mut each: impl FnMut(&str) -> io::Result<()>,
) -> Result<io::Result<()>, Problem> {
    let cron = Cron::parse_with(dialect, expression)?.zone(zone)?;
    let mut at: Timestamp = from.parse()?;
    for _ in 0..count {
        let text = match cron.next_after(at) {
            Some(next) => {
                at = next;
                next.to_string()
            }
            None => "NEVER".to_owned(),
        };
        let written = each(&text);
        if written.is_err() || text == "NEVER" {
            return Ok(written);
        }
    }
    Ok(Ok(()))
}

/// Answers one line of a batch with one line.
fn answer(line: &str) -> String {
    let ask = || {
        let columns: Vec<_> = line.split('\t').collect();
        let (name, expression, zone, from, number) = match columns[..] {
            [name, expression, zone, from] => (name, expression, zone, from, "3"),
            [name, expression, zone, from, number, ..] => (name, expression, zone, from, number),
            _ => return Err(Problem::Other("line: expected dialect, expression, zone, from and count".to_owned())),
        };
        let mut found = Vec::new();
        let expression = expression.replace("\\t", "\t");
        let each = |text: &str| {
            found.push(text.to_owned());
            Ok(())
        };
        // Nothing is written here, so that nothing can fail to be.
        let _ = instants(dialect(name)?, &expression, zone, from, count(number.trim())?, each)?;
        Ok(found.join(","))
    };
    match ask() {
        Ok(found) => found,
        Err(Problem::Expression(error)) => format!("ERROR {} {error}", error.position()),
        Err(Problem::Other(message)) => format!("ERROR 0 {message}"),
    }
}

fn batch() -> io::Result<()> {
    let mut output = io::stdout().lock();
    for line in io::stdin().lock().split(b'\n') {
        let line = line?;
        let line = String::from_utf8_lossy(&line);
        writeln!(output, "{}", answer(line.strip_suffix('\r').unwrap_or(&line)))?;
    }
    Ok(())
}

/// The expression with a caret under the byte at which reading stopped; what
/// cannot be printed is escaped.
fn with_caret(expression: &str, error: &ParseError) -> String {
    let (mut shown, mut caret) = (String::new(), None);
    for (index, letter) in expression.char_indices() {
        if index >= error.position() && caret.is_none() {
            caret = Some(shown.len());
        }
        if shown.len() > 300 {
            shown.push_str("...");
            break;
        }
        match letter {
            ' '..='~' => shown.push(letter),
            '\t' => shown.push(' '),
            other => shown.extend(other.escape_default()),
        }
    }
    let column = caret.unwrap_or(shown.len());
    format!("{error}\n  {shown}\n  {}^", " ".repeat(column))
}

fn main() -> ExitCode {
    let mut dialect_name = "vixie5".to_owned();
    let mut words = Vec::new();
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--batch" if words.is_empty() => {
                return match batch() {
                    // Whoever read has read enough.
                    Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
                    Err(error) => {
                        eprintln!("error: {error}");
                        ExitCode::FAILURE
                    }
                    Ok(()) => ExitCode::SUCCESS,
                };
            }
            "--help" | "-h" if words.is_empty() => {
                println!("{USAGE}");
                return ExitCode::SUCCESS;
            }
            "--dialect" => dialect_name = arguments.next().unwrap_or_default(),
            "--" => words.extend(arguments.by_ref()),
            _ => words.push(argument),
        }
    }
    let (expression, zone, from, number) = match &words[..] {
        [expression, zone, from] => (expression, zone, from, "3"),
        [expression, zone, from, number] => (expression, zone, from, number.as_str()),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    let mut output = io::stdout().lock();
    let mut ask =
        || instants(dialect(&dialect_name)?, expression, zone, from, count(number)?, |text| writeln!(output, "{text}"));
    match ask() {
        Ok(Ok(())) => ExitCode::SUCCESS,
        Ok(Err(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Ok(Err(error)) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
        Err(Problem::Expression(error)) => {
            eprintln!("error: {}", with_caret(expression, &error));
            ExitCode::from(2)
        }
        Err(Problem::Other(message)) => {
            eprintln!("error: {message}");
            ExitCode::from(2)
        }
    }
}

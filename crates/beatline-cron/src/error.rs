//! What can be wrong with an expression.

use std::borrow::Cow;
use std::fmt;

/// Why an expression is not one of its dialect.
///
/// The expression's author is to mend it; parsing again does not help. It says
/// where reading stopped, what stood there and what would have been right:
///
/// ```
/// use beatline_cron::Cron;
///
/// let error = Cron::parse("0 3 * * monday").unwrap_err();
/// assert_eq!(error.position(), 8);
/// assert_eq!(error.found(), "`monday`");
/// assert_eq!(
///     error.to_string(),
///     "byte 8 (day of week): expected a three-letter name from `sun` to `sat`, found `monday`",
/// );
/// ```
///
/// Whatever the input held, the text is printable ASCII: anything else is
/// escaped, so that it can go to a terminal or a log as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("byte {position}{}: expected {expected}, found {found}", InField(*field))]
#[non_exhaustive]
pub struct ParseError {
    position: usize,
    field: Option<&'static str>,
    found: Cow<'static, str>,
    expected: Cow<'static, str>,
}

impl ParseError {
    pub(crate) fn new(
        position: usize,
        field: Option<&'static str>,
        found: impl Into<Cow<'static, str>>,
        expected: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self { position, field, found: found.into(), expected: expected.into() }
    }

    /// The byte at which the text stops being an expression, from zero; the
    /// length of the text if it ended too soon.
    #[must_use]
    pub fn position(&self) -> usize {
        self.position
    }

    /// The field that was being read, such as `day of week`; `None` where the
    /// number of fields or the text as a whole is wrong.
    #[must_use]
    pub fn field(&self) -> Option<&'static str> {
        self.field
    }

    /// What was found there, escaped.
    #[must_use]
    pub fn found(&self) -> &str {
        &self.found
    }

    /// What would have been right.
    #[must_use]
    pub fn expected(&self) -> &str {
        &self.expected
    }
}

impl From<ParseError> for beatline_core::Error {
    fn from(error: ParseError) -> Self {
        beatline_core::Error::Trigger(Box::new(error))
    }
}

/// The field in parentheses, where there is one.
struct InField(Option<&'static str>);

impl fmt::Display for InField {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(field) => write!(f, " ({field})"),
            None => Ok(()),
        }
    }
}

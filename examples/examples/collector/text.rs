//! Words and numbers for people.

use std::time::Duration;

/// A duration in one or two units.
pub(crate) fn short(duration: Duration) -> String {
    let (seconds, micros) = (duration.as_secs(), duration.as_micros());
    match seconds {
        0 if micros < 1_000 => format!("{micros} µs"),
        0 => format!("{:.1} ms", duration.as_secs_f64() * 1_000.0),
        1..=59 => format!("{:.1} s", duration.as_secs_f64()),
        60..=3_599 => format!("{} m {:02} s", seconds / 60, seconds % 60),
        3_600..=359_999 => format!("{} h {:02} m", seconds / 3_600, seconds / 60 % 60),
        _ => "over 100 h".to_owned(),
    }
}

/// A time to wait, in tenths of a second while it can be watched.
pub(crate) fn countdown(duration: Duration) -> String {
    if duration < Duration::from_secs(60) { format!("{:.1} s", duration.as_secs_f64()) } else { short(duration) }
}

/// A label such as `timed_out` in words.
pub(crate) fn spaced(label: &str) -> String {
    label.replace('_', " ")
}

/// `3 completed, 1 timed out`, or a dash.
pub(crate) fn counts<'a>(counts: impl IntoIterator<Item = (&'a &'static str, &'a u64)>) -> String {
    let parts: Vec<String> = counts.into_iter().map(|(label, count)| format!("{count} {}", spaced(label))).collect();
    if parts.is_empty() { "–".to_owned() } else { parts.join(", ") }
}

/// Without line ends and other control characters: what comes over the wire must
/// not move the cursor.
pub(crate) fn in_one_line(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { ' ' } else { character }).collect()
}

/// At most `width` characters, an ellipsis for the rest.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(width.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

/// Exactly `width` characters, filled up on the right.
pub(crate) fn column(text: &str, width: usize) -> String {
    format!("{:<width$}", cut(text, width))
}

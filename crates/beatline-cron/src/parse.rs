//! Reads expressions.

use std::borrow::Cow;
use std::ops::RangeInclusive;

use crate::dialect::{Dialect, Field};
use crate::error::ParseError;
use crate::field::{Bits, DayOfMonth, DayOfWeek, DayRule, Pattern, Years};
use crate::mutants::mutant;

/// Reads an expression of at most `cap` bytes.
pub(crate) fn parse(dialect: Dialect, expression: &str, cap: usize) -> Result<Pattern, ParseError> {
    if expression.len() > cap {
        let (found, expected) = (format!("{} bytes", expression.len()), format!("at most {cap} bytes"));
        return Err(ParseError::new(cap, None, found, expected));
    }
    let fields = split(expression);
    let first = fields.first().copied().unwrap_or((expression.len(), ""));
    let expanded = match first.1.as_bytes() {
        [b'@', ..] => Some(alias(dialect, &fields)?),
        _ => None,
    };
    // An alias is read in a dialect that all who have aliases contain.
    match expanded {
        Some(classic) => read_fields(Dialect::Classic, &split(classic)),
        None => {
            check_count(dialect, expression, &fields)?;
            read_fields(dialect, &fields)
        }
    }
}

/// The fields and the bytes they begin at.
fn split(expression: &str) -> Vec<(usize, &str)> {
    let mut fields = Vec::new();
    let mut position = 0;
    for part in expression.split([' ', '\t']) {
        if !part.is_empty() {
            fields.push((position, part));
        }
        position += part.len() + 1;
    }
    fields
}

fn alias(dialect: Dialect, fields: &[(usize, &str)]) -> Result<&'static str, ParseError> {
    let (position, name) = fields[0];
    if dialect.is_quartz() {
        return Err(ParseError::new(position, None, shown(name), "fields; the Quartz dialects have no aliases"));
    }
    let classic = match name.to_ascii_lowercase().as_str() {
        "@yearly" | "@annually" => "0 0 1 1 *",
        "@monthly" => "0 0 1 * *",
        "@weekly" => "0 0 * * 0",
        "@daily" | "@midnight" => "0 0 * * *",
        "@hourly" => "0 * * * *",
        _ => {
            let expected = "one of `@yearly`, `@annually`, `@monthly`, `@weekly`, `@daily`, `@midnight`, `@hourly`";
            return Err(ParseError::new(position, None, shown(name), expected));
        }
    };
    match fields.get(1) {
        Some((position, more)) => Err(ParseError::new(*position, None, shown(more), "nothing after an alias")),
        None => Ok(classic),
    }
}

fn check_count(dialect: Dialect, expression: &str, fields: &[(usize, &str)]) -> Result<(), ParseError> {
    let wanted = dialect.field_count();
    if fields.len() == wanted {
        return Ok(());
    }
    // What stops the reader first is said first: junk is junk in any number.
    for (&(position, text), field) in fields.iter().zip(dialect.fields()) {
        let known = |byte: &u8| byte.is_ascii_alphanumeric() || b"*,-/?#".contains(byte);
        if let Some(offset) = text.bytes().position(|byte| !known(&byte)) {
            let found = shown_char(&text[floor(text, offset)..]);
            return Err(ParseError::new(position + offset, Some(field.name()), found, "a field"));
        }
    }
    let position = fields.get(wanted).map_or(expression.len(), |(position, _)| *position);
    let names: Vec<_> = dialect.fields().iter().map(|field| field.name()).collect();
    let mut expected = format!("{wanted} fields ({})", names.join(", "));
    if let Some(sibling) = dialect.sibling(fields.len()) {
        expected.push_str(&format!(", or {sibling} for {}", fields.len()));
    }
    let found = match fields.len() {
        0 => "nothing".to_owned(),
        1 => "1 field".to_owned(),
        many => format!("{many} fields"),
    };
    Err(ParseError::new(position, None, found, expected))
}

fn read_fields(dialect: Dialect, fields: &[(usize, &str)]) -> Result<Pattern, ParseError> {
    let mut pattern = Pattern {
        seconds: 1,
        minutes: 0,
        hours: 0,
        day_of_month: DayOfMonth::default(),
        months: 0,
        day_of_week: DayOfWeek::default(),
        years: None,
        day_rule: DayRule::Both,
        interval: false,
    };
    let mut days = Vec::with_capacity(2);
    for (&(position, text), &field) in fields.iter().zip(dialect.fields()) {
        let mut reader = Reader { dialect, field, text, start: position, position: 0 };
        let starts_with_star = text.starts_with('*');
        match field {
            Field::Second | Field::Minute | Field::Hour => {
                pattern.interval |=
                    mutant!("interval-by-minute", starts_with_star, starts_with_star && field != Field::Minute);
                let bits = reader.plain()?.low();
                match field {
                    Field::Second => pattern.seconds = bits,
                    Field::Minute => pattern.minutes = bits,
                    _ => pattern.hours = bits,
                }
            }
            Field::Month => pattern.months = reader.plain()?.low(),
            Field::Year => pattern.years = Some(Years(reader.plain()?)),
            Field::DayOfMonth | Field::DayOfWeek => {
                days.push((reader.start, text));
                if dialect.is_quartz() && text == "?" {
                    pattern.day_of_month =
                        if field == Field::DayOfMonth { DayOfMonth::EVERY } else { pattern.day_of_month };
                    pattern.day_of_week =
                        if field == Field::DayOfWeek { DayOfWeek::EVERY } else { pattern.day_of_week };
                } else if field == Field::DayOfMonth {
                    pattern.day_of_month = reader.day_of_month()?;
                } else {
                    pattern.day_of_week = reader.day_of_week()?;
                }
            }
        }
    }
    if dialect.is_quartz() {
        check_question_marks(&days)?;
    } else if days.iter().all(|(_, text)| mutant!("star-by-start", !text.starts_with('*'), *text != "*")) {
        pattern.day_rule = DayRule::Either;
    }
    Ok(pattern)
}

/// In Quartz exactly one of the day fields is `?`.
fn check_question_marks(days: &[(usize, &str)]) -> Result<(), ParseError> {
    let is_open = |index: usize| days.get(index).is_some_and(|(_, text)| *text == "?");
    if is_open(0) != is_open(1) {
        return Ok(());
    }
    let (position, text) = days[1];
    let expected = if is_open(0) {
        "a day of the week, as the day of the month is `?` already"
    } else {
        "`?`, here or as the day of the month: one of the two must be open"
    };
    Err(ParseError::new(position, Some(Field::DayOfWeek.name()), shown(text), expected))
}

/// Reads one field, item by item.
struct Reader<'a> {
    dialect: Dialect,
    field: Field,
    text: &'a str,
    /// Where the field begins in the expression.
    start: usize,
    /// Where the reader stands in the field.
    position: usize,
}

/// What stands before a step.
enum Item {
    /// Every value of the field, or the values of a range.
    Range(u32, u32),
    /// One value.
    Value(u32),
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.position).copied()
    }

    /// Steps over `byte`, in any case, if it comes next.
    fn take(&mut self, byte: u8) -> bool {
        let next = self.peek().is_some_and(|next| next.eq_ignore_ascii_case(&byte));
        self.position += usize::from(next);
        next
    }

    fn fail<T>(&self, at: usize, expected: impl Into<Cow<'static, str>>) -> Result<T, ParseError> {
        let at = floor(self.text, at);
        let found = token(&self.text[at..]);
        Err(ParseError::new(self.start + at, Some(self.field.name()), found, expected))
    }

    fn bounds(&self) -> (u32, u32) {
        self.field.bounds(self.dialect.is_quartz())
    }

    /// Reads items between commas, each with `read`.
    fn list(&mut self, mut read: impl FnMut(&mut Self) -> Result<(), ParseError>) -> Result<(), ParseError> {
        loop {
            read(self)?;
            match self.peek() {
                None => return Ok(()),
                Some(b',') => self.position += 1,
                Some(_) => return self.fail(self.position, self.expected_after_item()),
            }
        }
    }

    fn expected_after_item(&self) -> &'static str {
        match self.text.as_bytes().get(self.position.wrapping_sub(1)) {
            Some(b'*') => "`,`, `/` or the end of the field",
            _ if self.peek() == Some(b'/') => "`,` or the end of the field: a step follows `*` or a range only",
            _ => "`,` or the end of the field",
        }
    }

    /// A field of values and ranges.
    fn plain(&mut self) -> Result<Bits, ParseError> {
        let mut bits = Bits::default();
        let base = if self.field == Field::Year { Years::FIRST as u32 } else { 0 };
        self.list(|reader| {
            let item = reader.item()?;
            reader.values(item, |value| bits.insert(value - base))
        })?;
        Ok(bits)
    }

    fn day_of_month(&mut self) -> Result<DayOfMonth, ParseError> {
        let mut days = DayOfMonth::default();
        self.list(|reader| reader.day_of_month_item(&mut days))?;
        Ok(days)
    }

    fn day_of_month_item(&mut self, days: &mut DayOfMonth) -> Result<(), ParseError> {
        let special = self.dialect.has_special_days();
        if special && self.take(b'L') {
            let mut before_last = 0;
            if self.dialect.is_quartz() && self.take(b'-') {
                before_last = self.number(0..=30, "0 to 30 days before the last")?;
            }
            let set = if self.take(b'W') { &mut days.nearest_weekday_before_last } else { &mut days.before_last };
            *set |= 1 << before_last;
            return Ok(());
        }
        let item = self.item()?;
        if let (true, Item::Value(day)) = (special, &item) {
            let day = *day;
            if self.take(b'W') {
                days.nearest_weekday |= 1 << day;
                return Ok(());
            }
        }
        self.values(item, |day| days.days |= 1 << day)
    }

    fn day_of_week(&mut self) -> Result<DayOfWeek, ParseError> {
        let mut days = DayOfWeek::default();
        self.list(|reader| reader.day_of_week_item(&mut days))?;
        Ok(days)
    }

    fn day_of_week_item(&mut self, days: &mut DayOfWeek) -> Result<(), ParseError> {
        // Sunday is 1 in Quartz, and 0 as well as 7 everywhere else.
        let first = self.bounds().0;
        let bit = |weekday: u32| 1_u8 << ((weekday - first) % 7);
        if self.dialect.is_quartz() && self.take(b'L') {
            days.days |= bit(7);
            return Ok(());
        }
        let item = self.item()?;
        if let (true, Item::Value(weekday)) = (self.dialect.has_special_days(), &item) {
            let weekday = *weekday;
            if self.take(b'L') {
                days.last |= bit(weekday);
                return Ok(());
            }
            if self.take(b'#') {
                let nth = self.number(1..=5, "a number from 1 to 5 after `#`")?;
                days.nth[nth as usize - 1] |= bit(weekday);
                return Ok(());
            }
        }
        self.values(item, |weekday| days.days |= bit(weekday))
    }

    /// `*`, a value or a range, without its step.
    fn item(&mut self) -> Result<Item, ParseError> {
        let (first, last) = self.bounds();
        if self.take(b'*') {
            return Ok(Item::Range(first, last));
        }
        let low = self.value()?;
        if !self.take(b'-') {
            return Ok(Item::Value(low));
        }
        let position = self.position;
        let mut high = self.value()?;
        if high < low {
            let to_sunday = self.field == Field::DayOfWeek && !self.dialect.is_quartz() && high == 0;
            let wraps = self.dialect.is_quartz() && self.field != Field::Year;
            if mutant!("range-to-sunday", to_sunday, false) {
                high = 7;
            } else if wraps {
                high += mutant!("wrapping-span", last - first + 1, last);
            } else {
                return self.fail(position, format!("a value of at least {low}: ranges ascend"));
            }
        }
        Ok(Item::Range(low, high))
    }

    /// The step, if one follows and may, and then each value.
    fn values(&mut self, item: Item, mut each: impl FnMut(u32)) -> Result<(), ParseError> {
        let (first, last) = self.bounds();
        let quartz = self.dialect.is_quartz();
        let (low, mut high) = match item {
            Item::Range(low, high) => (low, high),
            Item::Value(value) => (value, value),
        };
        let mut step = 1;
        if (matches!(item, Item::Range(..)) || quartz) && self.take(b'/') {
            step = if quartz && self.field != Field::Year {
                let largest = self.field.largest_quartz_step();
                self.number(1..=largest, format!("a step from 1 to {largest}"))?
            } else {
                self.number(1..=u32::MAX, "a step of at least 1")?
            };
            if matches!(item, Item::Value(_)) {
                high = last;
            }
        }
        let mut value = low;
        while value <= high {
            // Only a range that wraps goes beyond the last value.
            each(if value > last { value - (last - first + 1) } else { value });
            value = value.saturating_add(mutant!("step", step, 1));
        }
        Ok(())
    }

    /// A number or a name of this field.
    fn value(&mut self) -> Result<u32, ParseError> {
        let (first, last) = self.bounds();
        let names = self.field.names();
        if names.is_empty() || !self.peek().is_some_and(|byte| byte.is_ascii_alphabetic()) {
            return self.number(first..=last, self.expected_value());
        }
        let start = self.position;
        let rest = &self.text.as_bytes()[start..];
        let letters = rest.iter().take_while(|byte| byte.is_ascii_alphabetic()).count();
        // `friL` is a name and a letter of its own.
        let with_l = letters == 4 && self.dialect.has_special_days() && rest[3].eq_ignore_ascii_case(&b'L');
        let name = &rest[..letters.min(3)];
        let found = names.iter().position(|known| known.as_bytes().eq_ignore_ascii_case(name));
        match found {
            Some(index) if letters == 3 || (with_l && self.field == Field::DayOfWeek) => {
                self.position += 3;
                // Months count from one; Quartz weekdays as well.
                Ok(index as u32 + first)
            }
            _ => self.fail(start, self.expected_value()),
        }
    }

    fn expected_value(&self) -> String {
        let (first, last) = self.bounds();
        let names = self.field.names();
        let is_word = self.peek().is_some_and(|byte| byte.is_ascii_alphabetic());
        match (names.first(), names.last()) {
            (Some(from), Some(to)) if is_word => format!("a three-letter name from `{from}` to `{to}`"),
            (Some(from), Some(to)) => format!("a number from {first} to {last} or a name from `{from}` to `{to}`"),
            _ => format!("a number from {first} to {last}"),
        }
    }

    fn number(
        &mut self,
        range: RangeInclusive<u32>,
        expected: impl Into<Cow<'static, str>>,
    ) -> Result<u32, ParseError> {
        let start = self.position;
        let mut number = 0_u32;
        while let Some(digit @ b'0'..=b'9') = self.peek() {
            number = number.saturating_mul(10).saturating_add(u32::from(digit - b'0'));
            self.position += 1;
        }
        if self.position == start || !range.contains(&number) {
            return self.fail(start, expected);
        }
        Ok(number)
    }
}

/// The last boundary of a character at or before `at`.
fn floor(text: &str, mut at: usize) -> usize {
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// The word, number or character a text begins with, ready to be printed.
fn token(text: &str) -> Cow<'static, str> {
    let word = text.bytes().take_while(u8::is_ascii_alphanumeric).count();
    if word > 0 { shown(&text[..word]) } else { shown_char(text) }
}

fn shown_char(text: &str) -> Cow<'static, str> {
    let mut chars = text.chars();
    match chars.next() {
        None => Cow::Borrowed("the end of the field"),
        Some(first) => Cow::Owned(format!("`{}`", first.escape_default())),
    }
}

/// A text in backquotes, escaped and of bounded length.
fn shown(text: &str) -> Cow<'static, str> {
    const LONGEST: usize = 24;
    let mut shown: String = text.chars().take(LONGEST).flat_map(char::escape_default).collect();
    if text.chars().nth(LONGEST).is_some() {
        shown.push_str("...");
    }
    Cow::Owned(format!("`{shown}`"))
}

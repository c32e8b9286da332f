//! Whether a record satisfies an expression. Truth has three values, as in SQL: what is compared with a field that a
//! record does not have is neither true nor false, and only what is true is found.

use crate::rows::Record;
use crate::schema::Value;
use std::cmp::Ordering;

/// A condition over the fields of a record.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Expression {
    And(Vec<Expression>),
    Or(Vec<Expression>),
    Not(Box<Expression>),
    /// The field, by number, and what must hold of it.
    Field(u32, Test),
}

/// What is asked of a field; of a list, of any of its values.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Test {
    /// One of these.
    OneOf(Vec<Value>),
    /// Between two values, each with whether it belongs to it.
    Range(Option<(Value, bool)>, Option<(Value, bool)>),
    /// A string that begins so.
    Prefix(String),
    /// A string with this pattern: `%` is anything, `_` one character, `\` takes either as itself.
    Like(String),
    /// There is none.
    IsNull,
}

impl Expression {
    /// Whether it is true, false, or neither.
    pub(crate) fn truth(&self, record: &Record) -> Option<bool> {
        match self {
            Expression::And(parts) => fold(parts, record, false),
            Expression::Or(parts) => fold(parts, record, true),
            Expression::Not(part) => part.truth(record).map(|truth| !truth),
            Expression::Field(number, Test::IsNull) => Some(record.value(*number).is_none()),
            Expression::Field(number, test) => match record.value(*number)? {
                Value::List(values) => Some(values.iter().any(|value| test.holds(value))),
                value => Some(test.holds(&value)),
            },
        }
    }

    pub(crate) fn is_true(&self, record: &Record) -> bool {
        self.truth(record) == Some(true)
    }
}

/// `decisive` if any part is that, the other if all are, or neither.
fn fold(parts: &[Expression], record: &Record, decisive: bool) -> Option<bool> {
    let mut all = Some(!decisive);
    for part in parts {
        match part.truth(record) {
            Some(truth) if truth == decisive => return Some(decisive),
            Some(_) => {}
            None => all = None,
        }
    }
    all
}

impl Test {
    fn holds(&self, value: &Value) -> bool {
        let is =
            |other: &Value, wanted: &[Ordering]| value.compare(other).is_some_and(|is| wanted.contains(&is));
        match (self, value) {
            (Test::OneOf(values), _) => values.iter().any(|one| is(one, &[Ordering::Equal])),
            (Test::Range(low, high), _) => {
                let above = |(low, with): &(Value, bool)| {
                    is(low, &[Ordering::Greater]) || (*with && is(low, &[Ordering::Equal]))
                };
                let below = |(high, with): &(Value, bool)| {
                    is(high, &[Ordering::Less]) || (*with && is(high, &[Ordering::Equal]))
                };
                low.as_ref().is_none_or(above) && high.as_ref().is_none_or(below)
            }
            (Test::Prefix(prefix), Value::String(text)) => text.starts_with(prefix),
            (Test::Like(pattern), Value::String(text)) => like(text, pattern),
            _ => false,
        }
    }
}

/// Whether a text has a pattern; in time of their product at most.
fn like(text: &str, pattern: &str) -> bool {
    let (text, pattern): (Vec<char>, Vec<char>) = (text.chars().collect(), pattern.chars().collect());
    let (mut at, mut of_pattern) = (0, 0);
    // Where to go on when what came after the last `%` does not fit.
    let mut again: Option<(usize, usize)> = None;
    while at < text.len() {
        let fits = match pattern.get(of_pattern) {
            Some('%') => {
                again = Some((at, of_pattern + 1));
                of_pattern += 1;
                continue;
            }
            Some('_') => Some(1),
            Some('\\') if pattern.get(of_pattern + 1) == Some(&text[at]) => Some(2),
            Some('\\') if pattern.get(of_pattern + 1).is_some() => None,
            Some(c) if *c == text[at] => Some(1),
            _ => None,
        };
        match (fits, again) {
            (Some(taken), _) => {
                at += 1;
                of_pattern += taken;
            }
            (None, Some((from, back))) => {
                again = Some((from + 1, back));
                (at, of_pattern) = (from + 1, back);
            }
            (None, None) => return false,
        }
    }
    pattern[of_pattern..].iter().all(|c| *c == '%')
}

/// What each text with a pattern begins with.
pub(super) fn literal_prefix(pattern: &str) -> String {
    let (mut prefix, mut characters) = (String::new(), pattern.chars());
    loop {
        match characters.next() {
            None | Some('%' | '_') => return prefix,
            Some('\\') => prefix.push(characters.next().unwrap_or('\\')),
            Some(c) => prefix.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_as_in_sql() {
        for (text, pattern, fits) in [
            ("", "", true),
            ("", "%", true),
            ("a", "", false),
            ("abc", "a%c", true),
            ("abc", "a_c", true),
            ("ac", "a_c", false),
            ("aXbXc", "a%X%c", true),
            ("a%c", "a\\%c", true),
            ("abc", "a\\%c", false),
            ("a\\", "a\\", true),
            ("mississippi", "%iss%ip%", true),
            ("mississippi", "%iss%ipp", false),
            ("äöü", "_ö%", true),
        ] {
            assert_eq!(like(text, pattern), fits, "{text} {pattern}");
            assert!(!fits || text.starts_with(&literal_prefix(pattern)));
        }
        let long = "a".repeat(3000);
        assert!(!like(&long, &format!("{}b", "%a".repeat(300))));
    }
}

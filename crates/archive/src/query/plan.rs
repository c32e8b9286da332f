//! Which index answers an expression, in which ranges.
//!
//! Each part of the topmost `or` takes the index of which most fields, from the first on, are compared with constants,
//! then one in a range. If one part has none, all records are read. Whatever is read is asked the whole expression
//! again, so a plan may be wider than the question, never narrower.

use super::expression::{literal_prefix, Expression, Test};
use crate::schema::{built_in, Index, Schema, Value, NO_VALUE};
use crate::{Digest, Oid};
use std::ops::Range;

/// Ranges of one part, at most: beyond that values in lists are compared with each record.
const MOST_RANGES: usize = 10_000;

/// How an expression is answered.
pub(super) struct Plan {
    /// What each reads is not read again: a record that an earlier one shows is known by its expression.
    pub(super) parts: Vec<Part>,
}

/// One branch of the topmost `or`.
pub(super) struct Part {
    pub(super) access: Access,
    pub(super) expression: Expression,
}

/// What is read.
pub(super) enum Access {
    /// These records, ascending.
    Oids(Vec<Oid>),
    /// Entries of an index.
    Index(Ranges),
    /// All records.
    All,
}

/// Entries of an index.
pub(super) struct Ranges {
    index: Index,
    /// Ascending, without overlap.
    pub(super) ranges: Vec<Range<Vec<u8>>>,
    /// Fields from the first on that have one value in all of them.
    constants: usize,
    /// Fields from the first on that are compared with constants.
    equal: usize,
    /// Whether the next one is in a range.
    has_range: bool,
}

impl Plan {
    pub(super) fn new(schema: &Schema, expression: Option<&Expression>) -> Plan {
        let all = |expression: Expression| Plan { parts: vec![Part { access: Access::All, expression }] };
        let Some(expression) = expression else { return all(Expression::And(Vec::new())) };
        let mut branches = Vec::new();
        flatten(expression, true, &mut branches);
        let parts = branches.into_iter().map(|branch| {
            let access = access(schema, branch)?;
            Some(Part { access, expression: branch.clone() })
        });
        match parts.collect() {
            Some(parts) => Plan { parts },
            None => all(expression.clone()),
        }
    }

    /// Whether records come in the order of these fields, all in one direction.
    pub(super) fn comes_in_order_of(&self, fields: &[u32]) -> bool {
        let [part] = &self.parts[..] else { return false };
        match &part.access {
            Access::Oids(_) | Access::All => {
                // The time within an OID is that of `created`, and both ascend.
                fields.iter().all(|field| *field == built_in::OID)
            }
            Access::Index(ranges) => {
                let of_index = &ranges.index.fields;
                (0..=ranges.constants).any(|skipped| of_index[skipped..].starts_with(fields))
            }
        }
    }

    /// In words, a line for each part.
    pub(super) fn explain(&self, schema: &Schema) -> Vec<String> {
        self.parts.iter().map(|part| part.access.explain(schema)).collect()
    }
}

impl Access {
    fn explain(&self, schema: &Schema) -> String {
        match self {
            Access::Oids(oids) => format!("{} records by OID", oids.len()),
            Access::All => "all records: no index answers this".to_string(),
            Access::Index(ranges) => {
                let names = schema.names(&ranges.index);
                let by: Vec<String> = names
                    .iter()
                    .enumerate()
                    .map(|(at, name)| match at {
                        at if at < ranges.equal => format!("{name} ="),
                        at if at == ranges.equal && ranges.has_range => format!("{name} in a range"),
                        _ => (*name).to_string(),
                    })
                    .collect();
                let count = ranges.ranges.len();
                format!("index ({}), {count} {}", by.join(", "), if count == 1 { "range" } else { "ranges" })
            }
        }
    }
}

/// The parts of an `or`, or of an `and`, and of those of its kind within it.
fn flatten<'e>(expression: &'e Expression, or: bool, into: &mut Vec<&'e Expression>) {
    match (expression, or) {
        (Expression::Or(parts), true) | (Expression::And(parts), false) => {
            parts.iter().for_each(|part| flatten(part, or, into));
        }
        _ => into.push(expression),
    }
}

/// What answers an expression without reading all; `None`: nothing does.
fn access(schema: &Schema, expression: &Expression) -> Option<Access> {
    let mut parts = Vec::new();
    flatten(expression, false, &mut parts);
    let tests = |wanted: u32| {
        parts.iter().filter_map(move |part| match part {
            Expression::Field(number, test) if *number == wanted => Some(test),
            _ => None,
        })
    };
    for test in tests(built_in::OID) {
        if let Test::OneOf(values) = test {
            let mut oids: Vec<Oid> =
                values.iter().filter_map(|value| value.to_string().parse().ok()).collect();
            oids.sort_unstable();
            oids.dedup();
            return Some(Access::Oids(oids));
        }
    }
    let ready = schema.indexes.iter().filter(|index| index.is_ready);
    let usable = ready.filter_map(|index| ranges(index, &|number| tests(number).collect()));
    usable
        .max_by_key(|found| (found.equal, found.has_range, usize::MAX - found.index.fields.len()))
        .map(Access::Index)
}

/// The ranges of an index in which is what has passed the tests; `None`: it would be all.
fn ranges<'t>(index: &Index, tests: &dyn Fn(u32) -> Vec<&'t Test>) -> Option<Ranges> {
    let mut prefixes = vec![index.number.to_be_bytes().to_vec()];
    let (mut constants, mut equal, mut has_value) = (0, 0, false);
    let mut range = None;
    for number in &index.fields {
        let of_field = tests(*number);
        let keys = constants_of(*number, &of_field).filter(|keys| prefixes.len() * keys.len() <= MOST_RANGES);
        let Some(keys) = keys else {
            range = range_of(*number, &of_field);
            break;
        };
        // Without one of its fields a record has no entry.
        has_value |= keys.iter().any(|key| *key != [NO_VALUE]);
        if keys.len() == 1 && constants == equal {
            constants += 1;
        }
        equal += 1;
        prefixes =
            prefixes.iter().flat_map(|prefix| keys.iter().map(|key| [&prefix[..], key].concat())).collect();
    }
    if !has_value && range.is_none() {
        return None;
    }
    let has_range = range.is_some();
    let of_prefix = |prefix: Vec<u8>| match &range {
        Some((low, high)) => [&prefix[..], low].concat()..[&prefix[..], high].concat(),
        None => prefix.clone()..after(prefix),
    };
    let ranges = prefixes.into_iter().map(of_prefix).filter(|range| range.start < range.end).collect();
    Some(Ranges { index: index.clone(), ranges, constants, equal, has_range })
}

/// The keys of the values that a field can have, sorted, if the tests leave only some.
fn constants_of(number: u32, tests: &[&Test]) -> Option<Vec<Vec<u8>>> {
    let is_data = number == built_in::DATA;
    let mut keys = tests.iter().find_map(|test| match test {
        Test::OneOf(values) => Some(values.iter().map(|value| key(value, is_data)).collect::<Vec<_>>()),
        Test::IsNull if !is_data => Some(vec![vec![NO_VALUE]]),
        _ => None,
    })?;
    keys.sort_unstable();
    keys.dedup();
    Some(keys)
}

fn key(value: &Value, is_data: bool) -> Vec<u8> {
    let mut key = Vec::new();
    match value.to_string().parse::<Digest>() {
        Ok(digest) if is_data => key.extend(digest.0),
        _ => value.put_key(&mut key),
    }
    key
}

/// The least range of keys that all tests leave; `None`: no test is one of ranges.
fn range_of(number: u32, tests: &[&Test]) -> Option<(Vec<u8>, Vec<u8>)> {
    if number == built_in::DATA {
        return None;
    }
    // Behind those without a value, and before nothing.
    let (mut low, mut high) = (vec![NO_VALUE + 1], vec![NO_VALUE + 2]);
    let mut is_one = false;
    let mut narrow = |from: Option<Vec<u8>>, to: Option<Vec<u8>>| {
        is_one = true;
        low = from.map_or(low.clone(), |from| from.max(low.clone()));
        high = to.map_or(high.clone(), |to| to.min(high.clone()));
    };
    for test in tests {
        match test {
            Test::Range(from, to) => {
                let from = from.as_ref().map(|(value, with)| match with {
                    true => key(value, false),
                    false => after(key(value, false)),
                });
                let to = to.as_ref().map(|(value, with)| match with {
                    true => after(key(value, false)),
                    false => key(value, false),
                });
                narrow(from, to);
            }
            Test::Prefix(prefix) => narrow_to_prefix(prefix, &mut narrow),
            Test::Like(pattern) => narrow_to_prefix(&literal_prefix(pattern), &mut narrow),
            Test::OneOf(_) | Test::IsNull => {}
        }
    }
    is_one.then_some((low, high))
}

fn narrow_to_prefix(prefix: &str, narrow: &mut dyn FnMut(Option<Vec<u8>>, Option<Vec<u8>>)) {
    let mut from = Vec::new();
    Value::put_key_prefix(prefix, &mut from);
    narrow(Some(from.clone()), Some(after(from)));
}

/// The least key behind all that begin so.
pub(crate) fn after(mut prefix: Vec<u8>) -> Vec<u8> {
    while let Some(last) = prefix.pop() {
        if last < 0xff {
            prefix.push(last + 1);
            break;
        }
    }
    prefix
}

//! The records that satisfy an expression, in their order, up to a limit; a cursor is the place of the last one.

use super::parse;
use super::plan::{Access, Plan};
use crate::archive::Archive;
use crate::bytes::{put_bytes, put_number, Rest};
use crate::rows::Record;
use crate::schema::{Schema, NO_VALUE};
use crate::{Digest, Error, Result};
use std::collections::BinaryHeap;
use std::ops::Bound;
use teak_core::Snapshot;

/// Which records are asked for.
#[derive(Debug, Clone, Default)]
pub struct Query {
    /// What they satisfy; empty: all do.
    pub expression: String,
    /// Names of fields, the first counts most; those that are equal in all come in some order, the same on each page.
    /// Without, they come as they are found: by the fields of the index, or by OID.
    pub order: Vec<(String, Direction)>,
    /// So many at most.
    pub limit: Option<u64>,
    /// Those behind the last one of an earlier answer to the same question.
    pub cursor: Option<String>,
}

/// One of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Direction {
    /// The least first; records without the field before all others.
    #[default]
    Ascending,
    /// The greatest first.
    Descending,
}

/// Records that can be sorted without an index, in memory.
const MOST_SORTED: usize = 1_000_000;

/// Where a record was found.
struct Place {
    part: usize,
    range: usize,
    /// Of its entry, or its OID.
    key: Vec<u8>,
}

/// A question that was read.
struct Question {
    plan: Plan,
    order: Vec<(u32, Direction)>,
    /// Whether the plan's own order is to be turned round; `None`: it is another, so all is sorted.
    backwards: Option<bool>,
    /// Of all of it.
    digest: [u8; 8],
}

impl Archive {
    /// Calls `tell` for each record that is asked for, until it says `false`; all is as of one moment. If the limit
    /// was reached, the cursor to go on with.
    pub fn query(
        &self,
        query: &Query,
        tell: &mut dyn FnMut(&Record) -> Result<bool>,
    ) -> Result<Option<String>> {
        let schema = self.schema();
        let question = Question::read(&schema, query)?;
        let limit = query.limit.unwrap_or(u64::MAX);
        if limit == 0 {
            return Ok(query.cursor.clone());
        }
        match question.backwards {
            Some(backwards) => self.stream(&question, query, backwards, limit, tell),
            None => self.sort(&question, query, limit, tell),
        }
    }

    /// How a question is answered, in words: which index, or that all records are read, and whether they are sorted.
    pub fn explain(&self, query: &Query) -> Result<Vec<String>> {
        let schema = self.schema();
        let question = Question::read(&schema, query)?;
        let mut lines = question.plan.explain(&schema);
        if question.backwards.is_none() {
            lines.push("sorted in memory".to_string());
        }
        Ok(lines)
    }

    fn stream(
        &self,
        question: &Question,
        query: &Query,
        backwards: bool,
        limit: u64,
        tell: &mut dyn FnMut(&Record) -> Result<bool>,
    ) -> Result<Option<String>> {
        let from = query.cursor.as_ref().map(|cursor| question.read_cursor(cursor)).transpose()?;
        let from = from.map(|bytes| read_place(&bytes).ok_or_else(bad_cursor)).transpose()?;
        let (mut told, mut cursor) = (0, None);
        let snapshot = self.engine().snapshot();
        self.visit(&snapshot, question, from, backwards, &mut |place, record| {
            told += 1;
            let goes_on = tell(record)?;
            if told == limit {
                cursor = Some(question.cursor(&place_bytes(place)));
            }
            Ok(goes_on && told < limit)
        })?;
        Ok(cursor)
    }

    fn sort(
        &self,
        question: &Question,
        query: &Query,
        limit: u64,
        tell: &mut dyn FnMut(&Record) -> Result<bool>,
    ) -> Result<Option<String>> {
        let after = query.cursor.as_ref().map(|cursor| question.read_cursor(cursor)).transpose()?;
        let wanted = usize::try_from(limit).unwrap_or(usize::MAX);
        // The least so far, the greatest of them on top.
        let mut least = BinaryHeap::new();
        let snapshot = self.engine().snapshot();
        self.visit(&snapshot, question, None, false, &mut |_, record| {
            let key = question.sort_key(record);
            if after.as_ref().is_some_and(|after| key <= *after) {
                return Ok(true);
            }
            if least.len() < wanted.min(MOST_SORTED) {
                least.push((key, record.oid));
            } else if wanted > MOST_SORTED {
                let text =
                    format!("more than {MOST_SORTED} records to sort: name a limit, or fields of an index");
                return Err(Error::Query(text));
            } else if let Some(mut top) = least.peek_mut() {
                if key < top.0 {
                    *top = (key, record.oid);
                }
            }
            Ok(true)
        })?;
        let sorted = least.into_sorted_vec();
        for (at, (key, oid)) in sorted.iter().enumerate() {
            let Some(record) = self.record_in(&snapshot, *oid)? else { continue };
            let is_last = at as u64 + 1 == limit;
            if !tell(&record)? || is_last {
                return Ok(is_last.then(|| question.cursor(key)));
            }
        }
        Ok(None)
    }

    /// Calls for each record of a plan, behind a place.
    fn visit(
        &self,
        snapshot: &Snapshot,
        question: &Question,
        from: Option<Place>,
        backwards: bool,
        call: &mut dyn FnMut(&Place, &Record) -> Result<bool>,
    ) -> Result<()> {
        let (first_part, mut first_range, mut last_key) = match from {
            Some(place) => (place.part, Some(place.range), Some(place.key)),
            None => (0, None, None),
        };
        for (number, part) in question.plan.parts.iter().enumerate().skip(first_part) {
            let ranges = match &part.access {
                Access::Oids(oids) => oids.len(),
                Access::Index(ranges) => ranges.ranges.len(),
                Access::All => 1,
            };
            let mut turns: Vec<usize> = (0..ranges).collect();
            if backwards {
                turns.reverse();
            }
            let begin = first_range
                .take()
                .map_or(0, |range| turns.iter().position(|turn| *turn == range).unwrap_or(ranges));
            for range in turns.into_iter().skip(begin) {
                let mut place = Place { part: number, range, key: Vec::new() };
                let goes_on = self.visit_range(
                    snapshot,
                    &part.access,
                    range,
                    last_key.take(),
                    backwards,
                    &mut |key, record| {
                        let earlier = &question.plan.parts[..number];
                        if !part.expression.is_true(record)
                            || earlier.iter().any(|part| part.expression.is_true(record))
                        {
                            return Ok(true);
                        }
                        place.key = key.to_vec();
                        call(&place, record)
                    },
                )?;
                if !goes_on {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn visit_range(
        &self,
        snapshot: &Snapshot,
        access: &Access,
        range: usize,
        last_key: Option<Vec<u8>>,
        backwards: bool,
        call: &mut dyn FnMut(&[u8], &Record) -> Result<bool>,
    ) -> Result<bool> {
        let bounds = |low: Bound<Vec<u8>>, high: Bound<Vec<u8>>| match (last_key.clone(), backwards) {
            (Some(key), false) => (Bound::Excluded(key), high),
            (Some(key), true) => (low, Bound::Excluded(key)),
            (None, _) => (low, high),
        };
        let trees = self.trees();
        let mut rows = match access {
            Access::Oids(oids) => {
                let oid = oids[range];
                return match (last_key, self.record_in(snapshot, oid)?) {
                    (None, Some(record)) => call(&oid.0, &record),
                    _ => Ok(true),
                };
            }
            Access::All => snapshot.range(&trees.records, bounds(Bound::Unbounded, Bound::Unbounded)),
            Access::Index(index) => {
                let range = index.ranges[range].clone();
                snapshot
                    .range(&trees.entries, bounds(Bound::Included(range.start), Bound::Excluded(range.end)))
            }
        };
        if backwards {
            rows = rows.descending();
        }
        while rows.advance()? {
            let record = match access {
                Access::All => self.record_of_row(rows.key(), rows.value()?)?,
                _ => {
                    let oid = crate::archive::oid_of_entry(rows.key())?;
                    let lost = || Error::Inconsistent(format!("an index has {oid}, which there is not"));
                    self.record_in(snapshot, oid)?.ok_or_else(lost)?
                }
            };
            if !call(rows.key(), &record)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

impl Question {
    fn read(schema: &Schema, query: &Query) -> Result<Question> {
        let expression = match query.expression.trim() {
            "" => None,
            _ => Some(parse(schema, &query.expression)?),
        };
        let plan = Plan::new(schema, expression.as_ref());
        let mut order = Vec::new();
        for (name, direction) in &query.order {
            let field = schema.field(name)?;
            if !field.queryable || field.of_type.list {
                return Err(Error::field(
                    &field.name,
                    "is a list, or not queryable: nothing can be ordered by it",
                ));
            }
            order.push((field.number, *direction));
        }
        let fields: Vec<u32> = order.iter().map(|(field, _)| *field).collect();
        let is_one = order.windows(2).all(|two| two[0].1 == two[1].1);
        let backwards = (is_one && (order.is_empty() || plan.comes_in_order_of(&fields)))
            .then(|| order.first().is_some_and(|(_, direction)| *direction == Direction::Descending));
        let all = format!("{}\n{order:?}\n{:?}", query.expression, plan.explain(schema));
        let digest = Digest::of(all.as_bytes()).0;
        Ok(Question { plan, order, backwards, digest: *digest.first_chunk().unwrap_or(&[0; 8]) })
    }

    /// Bytes that sort as the order has it; the last are the OID.
    fn sort_key(&self, record: &Record) -> Vec<u8> {
        let mut key = Vec::new();
        let turn = |key: &mut Vec<u8>, from: usize, direction: Direction| {
            if direction == Direction::Descending {
                key[from..].iter_mut().for_each(|byte| *byte = !*byte);
            }
        };
        for (field, direction) in &self.order {
            let from = key.len();
            match record.value(*field) {
                Some(value) => value.put_key(&mut key),
                None => key.push(NO_VALUE),
            }
            turn(&mut key, from, *direction);
        }
        let from = key.len();
        key.extend(record.oid.0);
        turn(&mut key, from, self.order.last().map_or(Direction::Ascending, |(_, direction)| *direction));
        key
    }

    fn cursor(&self, place: &[u8]) -> String {
        self.digest.iter().chain(place).map(|byte| format!("{byte:02x}")).collect()
    }

    fn read_cursor(&self, cursor: &str) -> Result<Vec<u8>> {
        let digits = cursor.as_bytes().chunks(2);
        let byte = |two: &[u8]| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok();
        let bytes: Vec<u8> = digits.map(byte).collect::<Option<_>>().ok_or_else(bad_cursor)?;
        match bytes.split_first_chunk::<8>() {
            Some((digest, place)) if *digest == self.digest => Ok(place.to_vec()),
            _ => Err(bad_cursor()),
        }
    }
}

fn bad_cursor() -> Error {
    Error::Query(
        "the cursor is none of this question, or the index that answered it is another now: ask anew".into(),
    )
}

fn place_bytes(place: &Place) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_number(&mut bytes, place.part as u64);
    put_number(&mut bytes, place.range as u64);
    put_bytes(&mut bytes, &place.key);
    bytes
}

fn read_place(bytes: &[u8]) -> Option<Place> {
    let mut rest = Rest(bytes);
    let (part, range) = (usize::try_from(rest.number()?).ok()?, usize::try_from(rest.number()?).ok()?);
    let key = rest.bytes()?.to_vec();
    rest.is_empty().then_some(Place { part, range, key })
}

//! What stands in the rows of the trees, and in their keys: docs/design/archive.md has the list of trees.
//!
//! ```text
//! contents   what (1: chunk, 2: data, 4: a list, 8: orphan, 16: protected)
//!            [chunk: number, length, uses] [data: size, created, [list: 16 bytes], [since when], [protection]]
//! lists      of each chunk: 32 bytes of its name, number, length
//! records    version, created, changed, 32 bytes of the data's name, size, protection,
//!            count, of each field: number, value
//! protection 0 or 1 + until when, count of holds, names
//! ```
//!
//! Numbers are in groups of seven bits, times in microseconds since 1970.

use crate::bytes::{put_bytes, put_number, put_signed, Rest};
use crate::schema::{built_in, Index, Schema, Value, NO_VALUE};
use crate::{calendar, Digest, Oid};

/// The name of a list.
pub(crate) type ListName = [u8; 16];

/// Of what has a content.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Content {
    pub(crate) chunk: Option<StoredChunk>,
    pub(crate) data: Option<StoredData>,
}

/// A part of data, or all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct StoredChunk {
    pub(crate) number: u64,
    pub(crate) length: u64,
    /// Places in lists, and the data that it is.
    pub(crate) uses: u64,
}

/// Data, whose bytes are the chunk of its name, or those of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredData {
    pub(crate) size: u64,
    pub(crate) created: i64,
    pub(crate) list: Option<ListName>,
    /// Since when no record names it.
    pub(crate) orphaned: Option<i64>,
    pub(crate) protection: Protection,
}

/// Until when, and by which holds, nobody removes or changes something.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Protection {
    /// In microseconds since 1970.
    pub until: Option<i64>,
    /// Names of legal holds, sorted.
    pub holds: Vec<String>,
}

impl Protection {
    /// Whether there has ever been some that is not lifted.
    pub(crate) fn is_none(&self) -> bool {
        self.until.is_none() && self.holds.is_empty()
    }

    /// What protects it at that moment, in words; `None`: nothing does.
    pub fn reason(&self, now: i64) -> Option<String> {
        let until = self.until.filter(|until| *until > now);
        let until = until.map(|until| format!("retained until {}", calendar::write_timestamp(until)));
        let holds = (!self.holds.is_empty()).then(|| format!("on hold by {}", self.holds.join(", ")));
        match (until, holds) {
            (Some(until), Some(holds)) => Some(format!("{until}; {holds}")),
            (until, holds) => until.or(holds),
        }
    }

    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(self.until.is_some()));
        if let Some(until) = self.until {
            put_signed(out, until);
        }
        put_number(out, self.holds.len() as u64);
        self.holds.iter().for_each(|name| put_bytes(out, name.as_bytes()));
    }

    fn take(rest: &mut Rest<'_>) -> Option<Protection> {
        let until = match rest.byte()? {
            0 => None,
            1 => Some(rest.signed()?),
            _ => return None,
        };
        let count = rest.number()?;
        let holds = (0..count).map(|_| rest.text()).collect::<Option<_>>()?;
        Some(Protection { until, holds })
    }
}

impl Content {
    pub(crate) fn is_empty(&self) -> bool {
        self.chunk.is_none() && self.data.is_none()
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        let data = self.data.as_ref();
        let flags = [
            self.chunk.is_some(),
            data.is_some(),
            data.is_some_and(|data| data.list.is_some()),
            data.is_some_and(|data| data.orphaned.is_some()),
            data.is_some_and(|data| !data.protection.is_none()),
        ];
        let mut out = vec![flags.iter().rev().fold(0, |bits, flag| bits << 1 | u8::from(*flag))];
        if let Some(chunk) = &self.chunk {
            put_number(&mut out, chunk.number);
            put_number(&mut out, chunk.length);
            put_number(&mut out, chunk.uses);
        }
        if let Some(data) = data {
            put_number(&mut out, data.size);
            put_signed(&mut out, data.created);
            out.extend(data.list.iter().flatten());
            if let Some(since) = data.orphaned {
                put_signed(&mut out, since);
            }
            if !data.protection.is_none() {
                data.protection.put(&mut out);
            }
        }
        out
    }

    pub(crate) fn read(bytes: &[u8]) -> Option<Content> {
        let mut rest = Rest(bytes);
        let flags = rest.byte().filter(|flags| *flags < 32 && (flags & 2 != 0 || *flags < 2))?;
        let mut content = Content::default();
        if flags & 1 != 0 {
            let (number, length, uses) = (rest.number()?, rest.number()?, rest.number()?);
            content.chunk = Some(StoredChunk { number, length, uses });
        }
        if flags & 2 != 0 {
            let (size, created) = (rest.number()?, rest.signed()?);
            let list = if flags & 4 != 0 { Some(rest.array()?) } else { None };
            let orphaned = if flags & 8 != 0 { Some(rest.signed()?) } else { None };
            let protection =
                if flags & 16 != 0 { Protection::take(&mut rest)? } else { Protection::default() };
            content.data = Some(StoredData { size, created, list, orphaned, protection });
        }
        rest.is_empty().then_some(content)
    }
}

/// A chunk, as a list names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) name: Digest,
    pub(crate) number: u64,
    pub(crate) length: u64,
}

pub(crate) fn list_bytes(chunks: &[Listed]) -> Vec<u8> {
    let mut out = Vec::with_capacity(chunks.len() * 40);
    for chunk in chunks {
        out.extend(chunk.name.0);
        put_number(&mut out, chunk.number);
        put_number(&mut out, chunk.length);
    }
    out
}

pub(crate) fn read_list(bytes: &[u8]) -> Option<Vec<Listed>> {
    let (mut rest, mut chunks) = (Rest(bytes), Vec::new());
    while !rest.is_empty() {
        let (name, number, length) = (Digest(rest.array()?), rest.number()?, rest.number()?);
        chunks.push(Listed { name, number, length });
    }
    Some(chunks)
}

/// The key of the part of a list that begins at an offset. Behind the last one is the name of the data.
pub(crate) fn list_key(list: &ListName, offset: u64) -> [u8; 24] {
    let mut key = [0; 24];
    key[..16].copy_from_slice(list);
    key[16..].copy_from_slice(&offset.to_be_bytes());
    key
}

/// Where a list has the name of its data.
pub(crate) const LIST_END: u64 = u64::MAX;

/// A record, in one of its versions.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Its name.
    pub oid: Oid,
    /// From 1.
    pub version: u64,
    /// When it was put, in microseconds since 1970.
    pub created: i64,
    /// When this version was made, likewise.
    pub changed: i64,
    /// Its data.
    pub data: Digest,
    /// Of the data, in bytes.
    pub size: u64,
    /// What protects it.
    pub protection: Protection,
    /// By number of the field, sorted.
    pub(crate) values: Vec<(u32, Value)>,
}

impl Record {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(96);
        put_number(&mut out, self.version);
        put_signed(&mut out, self.created);
        put_signed(&mut out, self.changed);
        out.extend(self.data.0);
        put_number(&mut out, self.size);
        self.protection.put(&mut out);
        put_number(&mut out, self.values.len() as u64);
        for (number, value) in &self.values {
            put_number(&mut out, u64::from(*number));
            value.put(&mut out);
        }
        out
    }

    pub(crate) fn read(oid: Oid, bytes: &[u8]) -> Option<Record> {
        let mut rest = Rest(bytes);
        let (version, created, changed) = (rest.number()?, rest.signed()?, rest.signed()?);
        let (data, size) = (Digest(rest.array()?), rest.number()?);
        let protection = Protection::take(&mut rest)?;
        let count = rest.number()?;
        let value = |rest: &mut Rest<'_>| Some((u32::try_from(rest.number()?).ok()?, Value::take(rest)?));
        let values = (0..count).map(|_| value(&mut rest)).collect::<Option<_>>()?;
        let record = Record { oid, version, created, changed, data, size, protection, values };
        rest.is_empty().then_some(record)
    }

    /// The value of a field, of those that are computed, too.
    pub(crate) fn value(&self, number: u32) -> Option<Value> {
        Some(match number {
            built_in::OID => Value::String(self.oid.to_string()),
            built_in::DATA => Value::String(self.data.to_string()),
            built_in::SIZE => Value::Long(self.size as i64),
            built_in::CREATED => Value::Timestamp(self.created),
            built_in::CHANGED => Value::Timestamp(self.changed),
            built_in::VERSION => Value::Long(self.version as i64),
            _ => {
                let at = self.values.binary_search_by_key(&number, |(number, _)| *number).ok()?;
                self.values[at].1.clone()
            }
        })
    }

    /// What it has of the fields of a schema, by full name, in the schema's order.
    pub fn fields<'s>(&self, schema: &'s Schema) -> Vec<(&'s str, Value)> {
        let fields = schema.fields().iter();
        fields.filter_map(|field| Some((&*field.name, self.value(field.number)?))).collect()
    }

    /// The keys of its entries.
    pub(crate) fn entries(&self, schema: &Schema) -> Vec<Vec<u8>> {
        schema.indexes.iter().filter_map(|index| self.entry(index)).collect()
    }

    /// The key of its entry in an index, if it has one of its fields.
    pub(crate) fn entry(&self, index: &Index) -> Option<Vec<u8>> {
        let mut key = Vec::with_capacity(64);
        key.extend(index.number.to_be_bytes());
        let mut has_some = false;
        for number in &index.fields {
            if *number == built_in::DATA {
                // By its bytes: half as long.
                key.extend(self.data.0);
                has_some = true;
                continue;
            }
            match self.value(*number) {
                Some(value) => {
                    value.put_key(&mut key);
                    has_some = true;
                }
                None => key.push(NO_VALUE),
            }
        }
        key.extend(self.oid.0);
        has_some.then_some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Record {
        Record {
            oid: Oid([7; 16]),
            version: 3,
            created: -5,
            changed: i64::MAX,
            data: Digest::of(b"x"),
            size: u64::MAX,
            protection: Protection { until: Some(9), holds: vec!["case 1".into(), "é".into()] },
            values: vec![(7, Value::String("text/plain".into())), (100, Value::List(vec![Value::Long(-1)]))],
        }
    }

    fn contents() -> Vec<Content> {
        let chunk = StoredChunk { number: 1, length: 70_000, uses: 2 };
        let data =
            |list, orphaned, protection| StoredData { size: 3, created: 4, list, orphaned, protection };
        vec![
            Content::default(),
            Content { chunk: Some(chunk), data: None },
            Content { chunk: Some(chunk), data: Some(data(None, None, Protection::default())) },
            Content { chunk: None, data: Some(data(Some([1; 16]), Some(-1), record().protection)) },
        ]
    }

    #[test]
    fn rows_come_back_and_cut_or_changed_ones_never_panic() {
        let bytes = record().bytes();
        assert_eq!(Record::read(record().oid, &bytes), Some(record()));
        for content in contents() {
            let bytes = content.bytes();
            assert_eq!(Content::read(&bytes), Some(content));
            for at in 0..bytes.len() {
                Content::read(&bytes[..at]);
                for byte in 0..=255 {
                    let mut changed = bytes.clone();
                    changed[at] = byte;
                    Content::read(&changed);
                    read_list(&changed);
                }
            }
        }
        for at in 0..bytes.len() {
            assert_eq!(Record::read(record().oid, &bytes[..at]), None);
            for byte in 0..=255 {
                let mut changed = bytes.clone();
                changed[at] = byte;
                Record::read(record().oid, &changed);
            }
        }
        let chunks: Vec<_> = (0..3)
            .map(|number| Listed { name: Digest([number; 32]), number: 1 << number, length: 9 })
            .collect();
        assert_eq!(read_list(&list_bytes(&chunks)), Some(chunks));
    }
}

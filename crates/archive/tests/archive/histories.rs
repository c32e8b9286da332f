//! Random histories of puts, changes, removals, holds, gc, schemas and scrubs against a model that is maps, with power
//! cuts and kills at any write: what was answered is there, what was removed does not come back, and all rows fit.

use crate::place::{assert_sound, get, metadata, seed, Place, Random};
use std::collections::BTreeMap;
use teak_archive::{Archive, Definition, Digest, Error, Name, Oid, Protecting, Result, Scrub};
use teak_core::file::Fault;
use teak_core::CommitFlush;

#[derive(Debug, Clone, PartialEq)]
struct Rec {
    data: Digest,
    version: u64,
    field: Option<String>,
    is_held: bool,
}

#[derive(Debug, Clone, PartialEq)]
struct Data {
    bytes: Vec<u8>,
    is_held: bool,
}

/// What an archive should have.
#[derive(Debug, Clone, PartialEq, Default)]
struct Model {
    records: BTreeMap<Oid, Rec>,
    data: BTreeMap<Digest, Data>,
    schema: usize,
}

const SCHEMAS: [&str; 3] = [
    r#"{"namespaces": {"m": {"a": "string(10)"}}}"#,
    r#"{"namespaces": {"m": {"a": "string(10)", "b": {"type": "long", "queryable": false}}}, "indexes": [["m.a", "system.size"]]}"#,
    r#"{"namespaces": {"m": {"a": "string(20)"}}, "indexes": [["m.a"], ["file.name", "m.a"]]}"#,
];

#[derive(Debug, Clone)]
enum Op {
    Put(Vec<u8>, Option<String>),
    Update(Oid, String),
    Remove(Oid),
    Protect(Name, bool),
    Collect,
    Schema(usize),
    Scrub,
    Checkpoint,
}

impl Model {
    fn is_orphan(&self, data: Digest) -> bool {
        self.records.values().all(|record| record.data != data)
    }

    fn protects(&self, name: Name) -> bool {
        match name {
            Name::Record(oid) => self.records[&oid].is_held,
            Name::Data(data) => self.data[&data].is_held,
        }
    }

    /// Does it; whether the archive is to do it, too.
    fn apply(&mut self, op: &Op, oid: Option<Oid>) -> bool {
        match op {
            Op::Put(bytes, field) => {
                let data = Digest::of(bytes);
                let new = Data { bytes: bytes.clone(), is_held: false };
                self.data.entry(data).or_insert(new);
                if let Some(oid) = oid {
                    self.records.insert(oid, Rec { data, version: 1, field: field.clone(), is_held: false });
                }
            }
            Op::Update(oid, text) => {
                if self.protects(Name::Record(*oid)) {
                    return false;
                }
                let record = self.records.get_mut(oid).unwrap();
                record.version += u64::from(record.field.as_ref() != Some(text));
                record.field = Some(text.clone());
            }
            Op::Remove(oid) => {
                if self.protects(Name::Record(*oid)) || self.protects(Name::Data(self.records[oid].data)) {
                    return false;
                }
                self.records.remove(oid);
            }
            Op::Protect(Name::Record(oid), hold) => self.records.get_mut(oid).unwrap().is_held = *hold,
            Op::Protect(Name::Data(data), hold) => self.data.get_mut(data).unwrap().is_held = *hold,
            Op::Collect => {
                let gone = self.data.iter().filter(|(name, data)| !data.is_held && self.is_orphan(**name));
                let gone: Vec<Digest> = gone.map(|(name, _)| *name).collect();
                gone.iter().for_each(|name| drop(self.data.remove(name)));
            }
            Op::Schema(number) => self.schema = *number,
            Op::Scrub | Op::Checkpoint => {}
        }
        true
    }
}

fn carry_out(archive: &Archive, op: &Op) -> Result<Option<Oid>> {
    match op {
        Op::Put(bytes, field) => {
            let fields: Vec<_> = field.iter().map(|text| ("m.a", &**text)).collect();
            return Ok(Some(archive.put(&mut &**bytes, &metadata(&fields))?.oid));
        }
        Op::Update(oid, text) => drop(archive.update(*oid, &metadata(&[("m.a", text)]))?),
        Op::Remove(oid) => archive.remove(*oid)?,
        Op::Protect(name, true) => archive.protect(*name, &Protecting::Hold("h".into()))?,
        Op::Protect(name, false) => archive.protect(*name, &Protecting::Release("h".into()))?,
        Op::Collect => drop(archive.collect(Some(0), &|| false)?),
        Op::Schema(number) => archive.set_schema(&Definition::parse(SCHEMAS[*number])?)?,
        Op::Scrub => {
            let scrubbed =
                archive.scrub(&Scrub { bytes_per_second: None, restart: true, stop: &|| false })?;
            assert!(scrubbed.damage.is_empty(), "{scrubbed:?}");
        }
        Op::Checkpoint => archive.engine().checkpoint()?,
    }
    Ok(None)
}

/// What an archive has; of data all bytes.
fn observe(archive: &Archive) -> Model {
    let schema = archive.schema();
    let table = archive.engine().open_table("archive").unwrap();
    let keys = |tree: usize| {
        let rows =
            archive.engine().snapshot().rows(table.tree(tree)).map(|row| row.unwrap().0).collect::<Vec<_>>();
        rows.into_iter()
    };
    let mut model = Model::default();
    for key in keys(4) {
        let record = archive.record(Oid(key.try_into().unwrap())).unwrap();
        let mut fields = record.fields(&schema).into_iter();
        let field = fields.find(|(name, _)| *name == "m.a").map(|(_, value)| value.to_string());
        let is_held = !record.protection.holds.is_empty();
        model.records.insert(record.oid, Rec { data: record.data, version: record.version, field, is_held });
    }
    for key in keys(1) {
        let name = Digest(key.try_into().unwrap());
        let Ok(stat) = archive.stat(Name::Data(name)) else { continue };
        let bytes = get(archive, Name::Data(name)).unwrap();
        model.data.insert(name, Data { bytes, is_held: !stat.protection.holds.is_empty() });
    }
    let present = Definition::of(&schema);
    model.schema = SCHEMAS
        .iter()
        .position(|text| {
            let wanted = Definition::parse(text).unwrap();
            wanted.indexes == present.indexes
        })
        .unwrap();
    model
}

fn choose(model: &Model, random: &mut Random) -> Op {
    let text = |random: &mut Random| format!("t{}", random.below(4));
    let oids: Vec<Oid> = model.records.keys().copied().collect();
    let datas: Vec<Digest> = model.data.keys().copied().collect();
    loop {
        match random.below(20) {
            0..=6 => {
                let mut bytes = Random(1).bytes(random.below(3) * 3000);
                let own = Random(2 + random.next() % 3).bytes([0, 10, 300, 2000, 40_000][random.below(5)]);
                bytes.extend(own);
                if random.below(4) == 0 {
                    // Chunks that are there twice.
                    bytes.extend(bytes.clone());
                }
                let field = (random.below(2) == 0).then(|| text(random));
                return Op::Put(bytes, field);
            }
            7..=8 if !oids.is_empty() => return Op::Update(oids[random.below(oids.len())], text(random)),
            9..=12 if !oids.is_empty() => return Op::Remove(oids[random.below(oids.len())]),
            13..=14 if !datas.is_empty() => {
                let names = oids
                    .iter()
                    .map(|oid| Name::Record(*oid))
                    .chain(datas.iter().map(|data| Name::Data(*data)));
                let names: Vec<Name> = names.collect();
                let name = names[random.below(names.len())];
                return Op::Protect(name, !model.protects(name));
            }
            15..=16 => return Op::Collect,
            17 => return Op::Schema(random.below(SCHEMAS.len())),
            18 => return Op::Scrub,
            19 => return Op::Checkpoint,
            _ => {}
        }
    }
}

/// After a crash within `op`: all of it, nothing, or, of a collection, a part.
fn settle(before: Model, op: &Op, found: Model) -> Model {
    if found == before {
        return found;
    }
    let new = found.records.keys().find(|oid| !before.records.contains_key(oid)).copied();
    let mut after = before.clone();
    after.apply(op, new);
    if matches!(op, Op::Collect) {
        assert_eq!(found.records, before.records);
        for (name, data) in &before.data {
            match found.data.get(name) {
                Some(there) => assert_eq!(there, data),
                None => assert!(!after.data.contains_key(name), "{name} was in use"),
            }
        }
        assert!(found.data.keys().all(|name| before.data.contains_key(name)));
        return found;
    }
    assert_eq!(found, after, "within {op:?}");
    found
}

/// An archive in half of the histories waits for the disk at each step, so that crashes come between them, too.
fn waiting(archive: Archive, seed: u64) -> Option<Archive> {
    if seed.is_multiple_of(2) {
        archive.engine().settings().set_commit_flush(CommitFlush::Sync);
    }
    Some(archive)
}

fn history(seed: u64) {
    let mut place = Place::new(seed);
    let (mut random, mut model) = (Random(seed), Model::default());
    let mut archive = waiting(place.init(), seed);
    archive.as_ref().unwrap().set_schema(&Definition::parse(SCHEMAS[0]).unwrap()).unwrap();
    for _ in 0..60 {
        let open = archive.as_ref().unwrap();
        let op = choose(&model, &mut random);
        let fails = random.below(4) == 0;
        if fails {
            place.fs.fail_from(random.below(30) as u64, Fault::PowerCut);
        }
        let before = model.clone();
        let is_done = match carry_out(open, &op) {
            Ok(oid) => {
                assert!(model.apply(&op, oid), "{op:?} is to be refused");
                true
            }
            Err(Error::Protected { .. }) => {
                assert!(!model.apply(&op, None), "{op:?} is not to be refused");
                true
            }
            Err(error) => {
                assert!(place.fs.power_is_off(), "{op:?}: {error}");
                false
            }
        };
        if fails || random.below(15) == 0 {
            drop(archive.take());
            place.fs = if random.below(2) == 0 { place.fs.crash() } else { place.fs.kill() };
            place.seed += 1;
            let opened = place.open().unwrap();
            let found = observe(&opened);
            if is_done {
                assert_eq!(found, model, "after {op:?}");
            } else {
                model = settle(before, &op, found);
            }
            assert_sound(&opened);
            archive = waiting(opened, seed);
        }
    }
    let archive = archive.unwrap();
    assert_eq!(observe(&archive), model);
    carry_out(&archive, &Op::Collect).unwrap();
    model.apply(&Op::Collect, None);
    assert_eq!(observe(&archive), model);
    assert_sound(&archive);
}

#[test]
fn an_archive_is_as_its_model_whatever_happens_when() {
    let first = seed(1);
    let count = std::env::var("TEAK_SEEDS").ok().and_then(|count| count.parse().ok()).unwrap_or(60);
    for seed in first..first + count {
        if let Err(panic) = std::panic::catch_unwind(|| history(seed)) {
            println!("TEAK_SEED={seed}");
            std::panic::resume_unwind(panic);
        }
    }
}

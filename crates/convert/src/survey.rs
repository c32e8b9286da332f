//! Before anything is done: what is to be converted, in which sets, and what stands against it.

use super::catalog::{self, Encryption, Table};
use super::definition::ForeignKey;
use super::name::{Asked, Name};
use super::plan::{self, Member, Members, Step};
use super::trial::{self, Trial};
use super::{Arguments, ConvertError};
use std::collections::{BTreeMap, BTreeSet};
use teak_client::Connection;

/// Tables that belong together, and what is to be done with them.
#[derive(Debug)]
pub struct Set {
    pub members: Members,
    /// Those that exist: `members` also has parents that constraints only name.
    pub tables: BTreeMap<Name, Table>,
    pub steps: Vec<Step>,
    /// Parts of definitions that the new engine does not keep, as the trial has shown; None if there was none.
    pub lost: Option<BTreeMap<Name, Vec<String>>>,
}

impl Set {
    /// Whether there are foreign keys that will be missing for a while.
    pub fn has_keys(&self) -> bool {
        self.members.values().any(|member| !member.foreign_keys.is_empty() || !member.missing.is_empty())
    }

    /// The tables that are converted.
    pub fn converted(&self) -> impl Iterator<Item = &Table> {
        self.steps.iter().filter_map(|step| match step {
            Step::Convert { table, .. } => self.tables.get(table),
            _ => None,
        })
    }

    pub fn bytes(&self) -> u64 {
        self.converted().map(|table| table.bytes).sum()
    }
}

/// What was found.
#[derive(Debug, Default)]
pub struct Survey {
    pub sets: Vec<Set>,
    /// Tables that have the engine already.
    pub already: usize,
    /// What cannot be converted, and why.
    pub obstacles: Vec<(Name, String)>,
    /// What will be otherwise.
    pub notes: Vec<String>,
    /// Bytes a second of a sample.
    pub rate: Option<f64>,
}

/// Looks at everything that was asked for. `recorded` are foreign keys that an earlier run has dropped.
pub fn survey(
    connection: &mut Connection,
    mut trial: Option<Trial<'_>>,
    asked: &[Asked],
    recorded: &[(Name, ForeignKey)],
    arguments: &Arguments,
) -> Result<Survey, ConvertError> {
    let engine = arguments.to.engine();
    let encryption =
        Encryption::read(connection, arguments.decrypt || arguments.to == super::Target::Innodb)?;
    let named = catalog::tables(connection, asked)?;
    let names: BTreeSet<Name> = named.iter().map(|table| table.name.clone()).collect();
    let mut edges = catalog::edges(connection)?;
    edges.extend(recorded.iter().map(|(child, key)| catalog::Edge {
        child: child.clone(),
        parent: key.parent.clone(),
        key: key.name.clone(),
    }));
    let mut found = Survey::default();
    for set in plan::sets(&names, &edges) {
        let mut look =
            Look { engine, encryption: &encryption, arguments, asked: &names, obstacles: Vec::new() };
        let mut set = look.set(connection, &set, recorded)?;
        if set.steps.is_empty() && look.obstacles.is_empty() {
            found.already += set.tables.len();
            continue;
        }
        if look.obstacles.is_empty() {
            if let Some(trial) = &mut trial {
                look.try_out(connection, trial, &mut set)?;
            }
            look.find_orphans(connection, &set)?;
        }
        match look.obstacles.is_empty() {
            true => {
                let lost = set.lost.iter().flatten();
                let notes = lost.flat_map(|(name, lost)| lost.iter().map(move |lost| (name, lost)));
                found.notes.extend(notes.map(|(name, lost)| format!("{name} will not have: {lost}")));
                found.sets.push(set);
            }
            false => found.obstacles.extend(look.obstacles),
        }
    }
    refuse_equal_names(&mut found, &edges);
    let largest = found.sets.iter().flat_map(Set::converted).max_by_key(|table| table.bytes);
    if let (Some(trial), Some(table)) = (&mut trial, largest) {
        found.rate = trial.rate(table)?;
    }
    Ok(found)
}

struct Look<'a> {
    engine: &'a str,
    encryption: &'a Encryption,
    arguments: &'a Arguments,
    asked: &'a BTreeSet<Name>,
    obstacles: Vec<(Name, String)>,
}

impl Look<'_> {
    /// The tables of a set as the server has them, and the steps.
    fn set(
        &mut self,
        connection: &mut Connection,
        names: &BTreeSet<Name>,
        recorded: &[(Name, ForeignKey)],
    ) -> Result<Set, ConvertError> {
        let mut set = Set { members: Members::new(), tables: BTreeMap::new(), steps: Vec::new(), lost: None };
        for name in names {
            let Some(table) = catalog::find(connection, name)? else {
                // What was dropped is no member; a parent that is only named is one, and stays as it is.
                let absent = Member { converted: true, ..Member::default() };
                set.members.insert(name.clone(), absent);
                continue;
            };
            let converted = table.has_engine(self.engine);
            if let Some(reason) = (!converted).then(|| table.obstacle(self.encryption, self.engine)).flatten()
            {
                self.refuse(name, reason);
                continue;
            }
            if !converted && !self.asked.contains(name) && !self.arguments.with_connected {
                let reason =
                    "foreign keys connect it with tables that are to be converted, and it was not named: \
                              --with-connected converts it, too";
                self.refuse(name, reason);
            }
            let definition = catalog::definition(connection, name)?;
            let foreign_keys = definition.foreign_keys.clone();
            let missing = recorded.iter().filter(|(child, _)| child == name).map(|(_, key)| key.clone());
            let missing: Vec<ForeignKey> =
                missing.filter(|key| foreign_keys.iter().all(|own| own.name != key.name)).collect();
            let keys: Vec<&ForeignKey> = foreign_keys.iter().chain(&missing).collect();
            let keys = definition.keys_that_would_be_renamed(&keys);
            set.members.insert(name.clone(), Member { converted, foreign_keys, missing, keys });
            set.tables.insert(name.clone(), table);
        }
        if self.obstacles.is_empty() {
            set.steps = plan::steps(&set.members);
        }
        Ok(set)
    }

    fn refuse(&mut self, name: &Name, reason: impl Into<String>) {
        self.obstacles.push((name.clone(), reason.into()));
    }

    /// Converts empty copies.
    fn try_out(
        &mut self,
        connection: &mut Connection,
        trial: &mut Trial<'_>,
        set: &mut Set,
    ) -> Result<(), ConvertError> {
        let mut lost = BTreeMap::new();
        for name in set.tables.keys() {
            match trial.convert(name, &catalog::definition(connection, name)?)? {
                Err(reason) => self.refuse(name, reason),
                Ok(of_table) if of_table.is_empty() => {}
                Ok(of_table) => drop(lost.insert(name.clone(), of_table)),
            }
        }
        set.lost = Some(lost);
        if self.obstacles.is_empty() {
            self.obstacles.extend(trial.add_keys(&set.members)?);
        }
        Ok(())
    }

    /// Rows without a parent, which InnoDB lets in while foreign keys are not checked.
    fn find_orphans(&mut self, connection: &mut Connection, set: &Set) -> Result<(), ConvertError> {
        if self.arguments.unchecked_keys {
            return Ok(());
        }
        for (child, member) in &set.members {
            for key in member.foreign_keys.iter().chain(&member.missing) {
                let reason = match set.tables.contains_key(&key.parent) {
                    false => format!("{} does not exist", key.parent),
                    true if trial::has_orphan(connection, child, key)? => {
                        format!("there are rows without a parent in {}", key.parent)
                    }
                    true => continue,
                };
                let name = &key.name;
                self.refuse(
                    child,
                    format!("its foreign key {name}: {reason}; --unchecked-keys adds it again all the same"),
                );
            }
        }
        Ok(())
    }
}

/// Both engines have the name of a foreign key once in a database, but each for itself.
fn refuse_equal_names(found: &mut Survey, edges: &[catalog::Edge]) {
    let mut refused = Vec::new();
    for (name, member) in found.sets.iter().flat_map(|set| &set.members) {
        for key in member.foreign_keys.iter().chain(&member.missing) {
            let other = edges.iter().find(|edge| {
                edge.child != *name
                    && edge.child.database == name.database
                    && edge.key.to_lowercase() == key.name.to_lowercase()
            });
            if let Some(edge) = other {
                let reason = format!("{} has a foreign key of the same name, {}", edge.child, key.name);
                refused.push((name.clone(), reason));
            }
        }
    }
    found.sets.retain(|set| refused.iter().all(|(name, _)| !set.members.contains_key(name)));
    found.obstacles.extend(refused);
}

//! In which order tables are converted: which belong together, and what is done with each set of them.
//!
//! Two tables belong together if a foreign key leads from one to the other: a constraint between tables of different
//! engines cannot be. Within a set, parents come first, and a constraint is dropped as late and added as early as that
//! allows:
//!
//! ```text
//! parent:  drop the constraints that lead to it   convert
//! child:                                          convert, with its constraints added in the same copy
//! ```
//!
//! A constraint of a table to itself, or one that closes a circle, is added as soon as both ends are converted.

use super::catalog::Edge;
use super::definition::ForeignKey;
use super::name::{quoted, Name};
use std::collections::{BTreeMap, BTreeSet};

/// A table of a set.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Member {
    /// Whether it has the engine already.
    pub converted: bool,
    pub foreign_keys: Vec<ForeignKey>,
    /// Those that an earlier run dropped and did not add again.
    pub missing: Vec<ForeignKey>,
    /// Keys, with their definitions, that the server would rename when it adds foreign keys, unless they are made anew.
    pub keys: Vec<(String, String)>,
}

/// Tables by name.
pub type Members = BTreeMap<Name, Member>;

/// One statement, or several.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    Drop {
        table: Name,
        keys: Vec<ForeignKey>,
    },
    /// With constraints to be added, and keys to be made anew.
    Convert {
        table: Name,
        keys: Vec<ForeignKey>,
        anew: Vec<(String, String)>,
    },
    Add {
        table: Name,
        keys: Vec<ForeignKey>,
    },
}

impl Step {
    pub fn table(&self) -> &Name {
        match self {
            Step::Drop { table, .. } | Step::Convert { table, .. } | Step::Add { table, .. } => table,
        }
    }

    /// The statement, without a semicolon.
    pub fn sql(&self, engine: &str) -> String {
        let adding = |keys: &[ForeignKey]| keys.iter().map(|key| format!("ADD {}", key.clause())).collect();
        let parts: Vec<String> = match self {
            Step::Drop { keys, .. } => {
                keys.iter().map(|key| format!("DROP FOREIGN KEY {}", quoted(&key.name))).collect()
            }
            Step::Convert { keys, anew, .. } => {
                let anew = anew
                    .iter()
                    .flat_map(|(name, key)| [format!("DROP KEY {}", quoted(name)), format!("ADD {key}")]);
                let added: Vec<String> = adding(keys);
                std::iter::once(format!("ENGINE={engine}")).chain(anew).chain(added).collect()
            }
            Step::Add { keys, .. } => adding(keys),
        };
        format!("ALTER TABLE {} {}", self.table().quoted(), parts.join(", "))
    }
}

/// The sets that have one of the `asked` tables, each sorted by name.
pub fn sets(asked: &BTreeSet<Name>, edges: &[Edge]) -> Vec<BTreeSet<Name>> {
    let mut beside: BTreeMap<&Name, Vec<&Name>> = BTreeMap::new();
    for Edge { child, parent, .. } in edges {
        beside.entry(child).or_default().push(parent);
        beside.entry(parent).or_default().push(child);
    }
    let mut seen = BTreeSet::new();
    let mut sets = Vec::new();
    for start in asked {
        let mut set = BTreeSet::new();
        let mut next = vec![start];
        while let Some(name) = next.pop() {
            if seen.insert(name) {
                set.insert(name.clone());
                next.extend(beside.get(name).into_iter().flatten());
            }
        }
        if !set.is_empty() {
            sets.push(set);
        }
    }
    sets
}

/// What is to be done with a set.
pub fn steps(members: &Members) -> Vec<Step> {
    let mut work = Work {
        members,
        steps: Vec::new(),
        converted: members.iter().filter(|(_, m)| m.converted).map(|(name, _)| name).collect(),
        present: of_all(members, |member| &member.foreign_keys),
        missing: of_all(members, |member| &member.missing),
    };
    work.add_what_can_be();
    for table in parents_first(members) {
        if !work.converted.contains(table) {
            work.convert(table);
        }
    }
    work.steps
}

type OfTable<'a> = (&'a Name, &'a ForeignKey);

fn of_all<'a>(members: &'a Members, keys: impl Fn(&'a Member) -> &'a Vec<ForeignKey>) -> Vec<OfTable<'a>> {
    members.iter().flat_map(|(name, member)| keys(member).iter().map(move |key| (name, key))).collect()
}

struct Work<'a> {
    members: &'a Members,
    steps: Vec<Step>,
    converted: BTreeSet<&'a Name>,
    /// Constraints that are there.
    present: Vec<OfTable<'a>>,
    /// And those that are to be added.
    missing: Vec<OfTable<'a>>,
}

impl<'a> Work<'a> {
    fn convert(&mut self, table: &'a Name) {
        let concerned = |(child, key): &OfTable<'a>| *child == table || key.parent == *table;
        let (dropped, kept): (Vec<_>, Vec<_>) = self.present.drain(..).partition(concerned);
        self.present = kept;
        for (child, keys) in by_table(&dropped) {
            self.steps.push(Step::Drop { table: child.clone(), keys });
        }
        self.missing.extend(dropped);
        // Its own constraints, if the parents are there already: not those to itself, whose parent has the other engine
        // until the copy is done.
        let ready = |(child, key): &OfTable<'a>| *child == table && self.converted.contains(&key.parent);
        let (ready, later): (Vec<_>, Vec<_>) = self.missing.drain(..).partition(ready);
        self.missing = later;
        let keys = ready.into_iter().map(|(_, key)| key.clone()).collect();
        let anew = self.members[table].keys.clone();
        self.steps.push(Step::Convert { table: table.clone(), keys, anew });
        self.converted.insert(table);
        self.add_what_can_be();
    }

    /// Adds constraints whose both ends are converted.
    fn add_what_can_be(&mut self) {
        let both = |(child, key): &OfTable<'a>| {
            self.converted.contains(*child) && self.converted.contains(&key.parent)
        };
        let (ready, later): (Vec<_>, Vec<_>) = self.missing.drain(..).partition(both);
        self.missing = later;
        for (child, keys) in by_table(&ready) {
            self.steps.push(Step::Add { table: child.clone(), keys });
        }
    }
}

fn by_table<'a>(keys: &[OfTable<'a>]) -> BTreeMap<&'a Name, Vec<ForeignKey>> {
    let mut of_tables: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (table, key) in keys {
        of_tables.entry(*table).or_default().push((*key).clone());
    }
    of_tables
}

/// All tables, parents before their children where there is no circle.
fn parents_first(members: &Members) -> Vec<&Name> {
    let (mut seen, mut order) = (BTreeSet::new(), Vec::new());
    // A stack of its own: chains of tables may be long. A table is left when all of its parents were.
    for start in members.keys() {
        let mut path = vec![(start, false)];
        while let Some((name, parents_done)) = path.pop() {
            if parents_done {
                order.push(name);
            } else if seen.insert(name) {
                path.push((name, true));
                let member = &members[name];
                let keys = member.foreign_keys.iter().chain(&member.missing);
                let parents = keys.filter_map(|key| members.get_key_value(&key.parent));
                path.extend(parents.map(|(parent, _)| (parent, false)));
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(table: &str) -> Name {
        Name::new("d", table)
    }

    fn key(child: &str, parent: &str) -> ForeignKey {
        ForeignKey {
            name: format!("{child}_{parent}"),
            columns: vec!["x".into()],
            parent: name(parent),
            parent_columns: vec!["id".into()],
            actions: String::new(),
        }
    }

    fn set(tables: &[&str], keys: &[(&str, &str)]) -> Members {
        let of =
            |table: &str| keys.iter().filter(|(child, _)| *child == table).map(|(c, p)| key(c, p)).collect();
        let member = |table| Member { foreign_keys: of(table), ..Member::default() };
        tables.iter().map(|table| (name(table), member(table))).collect()
    }

    fn told(members: &Members) -> Vec<String> {
        let told = |step: &Step| {
            let list = |keys: &[ForeignKey]| keys.iter().map(|k| format!(" {}", k.name)).collect::<String>();
            match step {
                Step::Drop { table, keys } => format!("drop {}:{}", table.table, list(keys)),
                Step::Convert { table, keys, .. } => format!("convert {}:{}", table.table, list(keys)),
                Step::Add { table, keys } => format!("add {}:{}", table.table, list(keys)),
            }
        };
        steps(members).iter().map(told).collect()
    }

    /// Carries the steps out on a model, after each of which no constraint may be between two engines, and none lost.
    fn carry_out(members: &mut Members, count: usize) {
        for step in steps(members).into_iter().take(count) {
            let table = step.table().clone();
            match step {
                Step::Drop { keys, .. } => {
                    let member = members.get_mut(&table).unwrap();
                    assert!(keys.iter().all(|key| member.foreign_keys.contains(key)));
                    member.foreign_keys.retain(|key| !keys.contains(key));
                    member.missing.extend(keys);
                }
                Step::Convert { keys, .. } => {
                    let alone = |(name, m): (&Name, &Member)| {
                        m.foreign_keys.iter().all(|key| *name != table && key.parent != table)
                    };
                    assert!(members.iter().all(alone), "{table} is in a constraint");
                    members.get_mut(&table).unwrap().converted = true;
                    add(members, &table, keys);
                }
                Step::Add { keys, .. } => add(members, &table, keys),
            }
        }
    }

    fn add(members: &mut Members, table: &Name, keys: Vec<ForeignKey>) {
        assert!(keys.iter().all(|key| members[&key.parent].converted));
        let member = members.get_mut(table).unwrap();
        assert!(member.converted);
        member.missing.retain(|key| !keys.contains(key));
        member.foreign_keys.extend(keys);
    }

    #[test]
    fn parents_come_first_and_constraints_are_added_in_the_copy() {
        let chain = set(&["a", "b", "c"], &[("a", "b"), ("b", "c")]);
        assert_eq!(
            told(&chain),
            ["drop b: b_c", "convert c:", "drop a: a_b", "convert b: b_c", "convert a: a_b"]
        );
    }

    #[test]
    fn circles_and_tables_that_are_their_own_parent() {
        assert_eq!(told(&set(&["a"], &[("a", "a")])), ["drop a: a_a", "convert a:", "add a: a_a"]);
        let circle = set(&["a", "b"], &[("a", "b"), ("b", "a")]);
        assert_eq!(
            told(&circle),
            ["drop a: a_b", "drop b: b_a", "convert b:", "convert a: a_b", "add b: b_a"]
        );
    }

    #[test]
    fn a_plan_can_be_broken_off_after_each_step_and_made_anew() {
        let tables = ["a", "b", "c", "d", "e"];
        let keys = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "c"), ("d", "a"), ("d", "e"), ("e", "b")];
        let whole = set(&tables, &keys);
        for first in 0..=steps(&whole).len() {
            for second in 0..=steps(&whole).len() {
                let mut members = whole.clone();
                carry_out(&mut members, first);
                carry_out(&mut members, second);
                carry_out(&mut members, usize::MAX);
                for (name, member) in &mut members {
                    assert!(member.converted && member.missing.is_empty(), "{name} after {first}, {second}");
                    assert_eq!(member.foreign_keys.len(), whole[name].foreign_keys.len());
                }
                assert!(steps(&members).is_empty());
            }
        }
    }

    #[test]
    fn tables_that_are_connected_belong_together() {
        let edge =
            |child: &str, parent: &str| Edge { child: name(child), parent: name(parent), key: "k".into() };
        let edges = [edge("a", "b"), edge("c", "b"), edge("d", "d"), edge("x", "y")];
        let names = |list: &[&str]| list.iter().map(|table| name(table)).collect::<BTreeSet<_>>();
        let found = sets(&names(&["c", "d", "e"]), &edges);
        assert_eq!(found, [names(&["a", "b", "c"]), names(&["d"]), names(&["e"])]);
    }

    #[test]
    fn statements() {
        let keys = vec![key("a", "b")];
        let anew = vec![("x".to_string(), "KEY `x` (`x`)".to_string())];
        let sql = |step: Step| step.sql("Teak");
        let table = name("a");
        assert_eq!(
            sql(Step::Drop { table: table.clone(), keys: keys.clone() }),
            "ALTER TABLE `d`.`a` DROP FOREIGN KEY `a_b`"
        );
        assert_eq!(
            sql(Step::Convert { table: table.clone(), keys: keys.clone(), anew }),
            "ALTER TABLE `d`.`a` ENGINE=Teak, DROP KEY `x`, ADD KEY `x` (`x`), \
             ADD CONSTRAINT `a_b` FOREIGN KEY (`x`) REFERENCES `d`.`b` (`id`)"
        );
        assert_eq!(
            sql(Step::Add { table, keys }),
            "ALTER TABLE `d`.`a` ADD CONSTRAINT `a_b` FOREIGN KEY (`x`) REFERENCES `d`.`b` (`id`)"
        );
    }
}

//! `teak replicate check`: asks the servers of a configuration whether it can be carried out, and changes nothing.
//! What is an error and what a warning is in docs/replicate.md.

use crate::chunk_reader::refusal;
use crate::configuration::{Configuration, SourcePlan, Start};
use crate::copy_plan::{self, refused_by, NO_LOADING};
use crate::counterpart::Counterpart;
use crate::dump::{family_of, newest};
use crate::exclusions::{places_in, unique_columns};
use crate::grants::Grants;
use crate::part::PartOf;
use crate::position::Position;
use crate::requirements;
use crate::routes::Name;
use crate::schema;
use crate::status::has_all;
use crate::tables::{self, Tables};
use crate::target::{lock_of, server_id, ONE_SERVER_ID};
use crate::{Asked, Beginning, Dump, DumpError};
use std::collections::BTreeMap;
use std::io::Write;
use teak_binlog::Family;
use teak_client::{Connection, Error};
use teak_sql::quoting::literal;

/// What who applies rows and definitions in a database needs.
const PRIVILEGES: [&str; 13] = [
    "SELECT",
    "INSERT",
    "UPDATE",
    "DELETE",
    "CREATE",
    "DROP",
    "ALTER",
    "INDEX",
    "REFERENCES",
    "CREATE VIEW",
    "TRIGGER",
    "CREATE ROUTINE",
    "ALTER ROUTINE",
];

/// How much something matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Weight {
    Error,
    Warning,
}

use Weight::{Error as Wrong, Warning};

/// How far a source was applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Progress {
    /// All of it: both sides should be the same.
    Same,
    /// What is not applied yet may be what makes them the same.
    Behind,
    /// Its tables are to be copied.
    ToCopy,
}

impl Progress {
    /// Of what is not the same.
    fn weight(self) -> Weight {
        match self {
            Progress::Behind => Warning,
            Progress::Same | Progress::ToCopy => Wrong,
        }
    }
}

/// What was found, each with a line of the configuration.
#[derive(Debug, Default)]
struct Findings(Vec<(usize, Weight, String)>);

impl Findings {
    fn add(&mut self, line: usize, weight: Weight, why: impl Into<String>) {
        self.0.push((line, weight, why.into()));
    }

    fn of(&self, weight: Weight) -> usize {
        self.0.iter().filter(|(_, one, _)| *one == weight).count()
    }
}

/// Why a configuration cannot be carried out.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// Each was told.
    #[error("{errors} errors, {warnings} warnings")]
    Found {
        /// How many.
        errors: usize,
        /// What is only told.
        warnings: usize,
    },
    /// The output.
    #[error("cannot write the output: {0}")]
    Output(#[from] std::io::Error),
}

/// Asks all servers, and writes a line for each thing that is wrong, or that somebody may want to know.
pub fn show(configuration: &Configuration, out: &mut dyn Write) -> Result<(), CheckError> {
    let mut findings = Findings::default();
    let mut check = Check { configuration, findings: &mut findings, target: None, owners: BTreeMap::new() };
    check.target();
    for source in &configuration.sources {
        if let Err(error) = check.source(source) {
            let name = &source.name;
            check.findings.add(source.lines.table, Wrong, format!("{name}: {error}"));
        }
    }
    findings.0.sort_by_key(|(line, ..)| *line);
    for (line, weight, why) in &findings.0 {
        let word = if *weight == Wrong { "error" } else { "warning" };
        writeln!(out, "{}:{line}: {word}: {why}", configuration.file.display())?;
    }
    match (findings.of(Wrong), findings.of(Warning)) {
        (0, warnings) => Ok(writeln!(out, "no errors, {warnings} warnings")?),
        (errors, warnings) => Err(CheckError::Found { errors, warnings }),
    }
}

struct Check<'c> {
    configuration: &'c Configuration,
    findings: &'c mut Findings,
    target: Option<Here>,
    /// Which source has a table of the target.
    owners: BTreeMap<Name, Vec<(String, Option<PartOf>)>>,
}

/// The target.
struct Here {
    connection: Connection,
    grants: Grants,
    tables: Tables,
    longest_packet: u64,
    /// `lower_case_table_names`.
    case: String,
    /// Engines with transactions.
    engines: Vec<String>,
}

impl Here {
    fn ask(mut connection: Connection) -> Result<Here, Error> {
        let grants = Grants::of(&mut connection)?;
        let tables = tables::all(&mut connection, &|_, _| true)?;
        let engines = tables::engines(&mut connection)?;
        let mut value = |name: &str| {
            Ok::<_, Error>(connection.value(format!("SELECT @@GLOBAL.{name}"))?.unwrap_or_default())
        };
        let longest_packet = value("max_allowed_packet")?.parse().unwrap_or(0);
        let case = value("lower_case_table_names")?;
        Ok(Here { connection, grants, tables, longest_packet, case, engines })
    }
}

impl Check<'_> {
    fn target(&mut self) {
        let plan = &self.configuration.target;
        let asked = plan.settings.connect().and_then(|mut connection| {
            let wrong = requirements::of_target(&mut connection, plan)?;
            wrong.into_iter().for_each(|why| self.findings.add(plan.line, Wrong, format!("target: {why}")));
            Here::ask(connection)
        });
        let here = match asked {
            Ok(here) => here,
            Err(error) => return self.findings.add(plan.line, Wrong, format!("target: {error}")),
        };
        let mut missing = Vec::new();
        if !here.grants.has("BINLOG REPLAY", None) && !here.grants.has("SUPER", None) {
            missing.push("BINLOG REPLAY ON *.*".to_string());
        }
        let tells_origin = self.configuration.sources.iter().any(|source| source.gtid_domain_id.is_some());
        if tells_origin && !here.grants.has("BINLOG ADMIN", None) && !here.grants.has("SUPER", None) {
            missing.push("BINLOG ADMIN ON *.*".to_string());
        }
        if plan.engine.is_some() && !here.grants.has("SUPER", None) {
            missing.push("SUPER ON *.* (as there is an engine)".into());
        }
        let own = here.grants.missing(&PRIVILEGES[..7], Some("teak_replicate"));
        if !own.is_empty() {
            missing.push(format!("{} ON teak_replicate.*", own.join(", ")));
        }
        for privileges in missing {
            self.findings.add(plan.line, Wrong, format!("target: the account has not {privileges}"));
        }
        if !here.grants.has("SET USER", None) && !here.grants.has("SUPER", None) {
            let why =
                "target: the account has not SET USER ON *.*: statements with definers will stop a source";
            self.findings.add(plan.line, Warning, why);
        }
        self.target = Some(here);
    }

    fn source(&mut self, plan: &SourcePlan) -> Result<(), Error> {
        let (name, lines) = (&plan.name, &plan.lines);
        let mut connection = plan.settings.connect()?;
        let family = family_of(&mut connection)?;
        for why in requirements::of_source(&mut connection, family, plan)? {
            self.findings.add(lines.table, Wrong, format!("{name}: {why}"));
        }
        let grants = Grants::of(&mut connection)?;
        self.settings(plan, &mut connection, &grants)?;
        self.patterns(plan, &mut connection, &grants)?;
        let begun = self.begun(plan)?;
        self.log(plan, family, begun.position.as_deref());
        if !begun.is_followed {
            self.server_id(plan, &mut connection, family);
        }
        let current = match &begun.position {
            Some(position) => has_all(position, &newest(&mut connection, family)?.unwrap_or_default()),
            None => true,
        };
        let progress = match (current, &begun.position, &plan.start) {
            (_, None, Start::Copy) => Progress::ToCopy,
            (true, ..) => Progress::Same,
            (false, ..) => Progress::Behind,
        };
        if progress == Progress::ToCopy {
            self.loading(plan)?;
        }
        self.tables(plan, &mut connection, progress)
    }

    /// Whether the target takes the rows of a copy.
    fn loading(&mut self, plan: &SourcePlan) -> Result<(), Error> {
        let Some(here) = &mut self.target else { return Ok(()) };
        if !copy_plan::takes_rows(&mut here.connection)? {
            let why = format!("{}: target: {NO_LOADING}", plan.name);
            self.findings.add(plan.lines.table, Wrong, why);
        }
        Ok(())
    }

    /// Variables of a source that do no harm by themselves.
    fn settings(
        &mut self,
        plan: &SourcePlan,
        connection: &mut Connection,
        grants: &Grants,
    ) -> Result<(), Error> {
        let (name, line) = (&plan.name, plan.lines.table);
        let mut value = |name: &str| {
            Ok::<_, Error>(connection.value(format!("SELECT @@GLOBAL.{name}"))?.unwrap_or_default())
        };
        let image = value("binlog_row_image")?;
        if image != "FULL" && plan.start == Start::Copy {
            let why =
                format!("{name}: binlog_row_image is {image}, and must be FULL while tables are copied");
            self.findings.add(line, Wrong, why);
        } else if image != "FULL" {
            let why =
                format!("{name}: binlog_row_image is {image}: a REPLACE leaves here what it does not name");
            self.findings.add(line, Warning, why);
        }
        let packet = value("max_allowed_packet")?.parse::<u64>().unwrap_or(0);
        let case = value("lower_case_table_names")?;
        if let Some(here) = &self.target {
            if packet > here.longest_packet {
                let why = format!(
                    "{name}: max_allowed_packet is {packet}, and {} in the target: a longer row will stop the source",
                    here.longest_packet
                );
                self.findings.add(line, Warning, why);
            }
            if (case == "0") != (here.case == "0") {
                let why = format!(
                    "{name}: lower_case_table_names is {case}, and {} in the target: names are not the same",
                    here.case
                );
                self.findings.add(line, Wrong, why);
            }
        }
        if !grants.has("BINLOG MONITOR", None) && !grants.has("REPLICATION CLIENT", None) {
            let why = format!(
                "{name}: the account has not BINLOG MONITOR ON *.*, for the message about purged logs"
            );
            self.findings.add(line, Warning, why);
        }
        Ok(())
    }

    /// Patterns and names of databases that match none.
    fn patterns(
        &mut self,
        plan: &SourcePlan,
        connection: &mut Connection,
        grants: &Grants,
    ) -> Result<(), Error> {
        let rows = connection.query("SELECT SCHEMA_NAME FROM information_schema.SCHEMATA")?;
        let there: Vec<String> =
            tables::texts(rows).flatten().filter(|name| plan.routes.follows(name.as_bytes())).collect();
        let sees_all = grants.has("SHOW DATABASES", None) || grants.has("SELECT", None);
        let that = if sees_all { "" } else { " that the account sees" };
        let name = &plan.name;
        for (pattern, &line) in plan.routes.patterns().iter().zip(&plan.lines.patterns) {
            if !there
                .iter()
                .any(|database| crate::routes::WILDCARDS.fit(pattern.as_bytes(), database.as_bytes()))
            {
                self.findings.add(line, Wrong, format!("{name}: no database{that} is called {pattern}"));
            }
        }
        if plan.routes.patterns().is_empty() && there.is_empty() {
            self.findings.add(plan.lines.table, Wrong, format!("{name}: no database{that} is followed"));
        }
        let missing = |database: &String| {
            let missing = grants.missing(&["SELECT", "SHOW VIEW", "TRIGGER"], Some(database));
            Some((database.clone(), missing.join(", "))).filter(|_| !missing.is_empty())
        };
        if let Some((database, missing)) =
            there.iter().find_map(missing).filter(|_| plan.start == Start::Copy)
        {
            let why = "what an account does not see is not copied";
            let why = format!("{name}: the account has not {missing} ON `{database}`: {why}");
            self.findings.add(plan.lines.start, Warning, why);
        }
        if !sees_all {
            let why = format!("{name}: tables that the account has no SELECT on are not looked at");
            self.findings.add(plan.lines.table, Warning, why);
        }
        Ok(())
    }

    /// What the target knows of a source.
    fn begun(&mut self, plan: &SourcePlan) -> Result<Begun, Error> {
        let Some(here) = &mut self.target else { return Ok(Begun::default()) };
        let name = &plan.name;
        let lock = here.connection.value(format!("SELECT IS_USED_LOCK({})", lock_of(name)))?;
        let has_table = here.connection.value(schema::has_table("teak_replicate", "position"))?;
        let position = match has_table {
            Some(_) => here
                .connection
                .value(format!("SELECT gtid FROM teak_replicate.position WHERE source = '{name}'"))?,
            None => None,
        };
        Ok(Begun { is_followed: lock.is_some(), position })
    }

    /// Whether the source sends its log from where it is to be followed on: asked as a replica would, under another
    /// number than the one that may be in use.
    fn log(&mut self, plan: &SourcePlan, family: Family, position: Option<&str>) {
        let (name, line) = (&plan.name, plan.lines.start);
        let text = match (position, &plan.start) {
            (Some(position), _) => position,
            (None, Start::Gtid(text)) => text,
            (None, Start::Now | Start::Copy | Start::File { .. }) => return,
        };
        let beginning = match Position::parse(text, family) {
            Ok(Position::MySql(set)) => Beginning::MySql(set.to_bytes()),
            Ok(position) => Beginning::MariaDb(position.to_string()),
            Err(problem) => return self.findings.add(line, Wrong, format!("{name}: {text}: {problem}")),
        };
        let asked = Asked { beginning, follow: false, server_id: None };
        // The first events are not of the log, and the next one is what was asked for, or an error.
        let received = Dump::begin(&plan.settings, &asked)
            .and_then(|mut dump| (0..4).try_for_each(|_| dump.receive().map(|_| ())));
        match received {
            Ok(()) => (),
            Err(DumpError::Server(error)) => {
                self.findings.add(line, Wrong, format!("{name}: its log is not sent from {text} on: {error}"))
            }
            Err(error) => self.findings.add(line, Wrong, format!("{name}: its log: {error}")),
        }
    }

    /// Whether another replica has the number.
    fn server_id(&mut self, plan: &SourcePlan, connection: &mut Connection, family: Family) {
        let (name, line) = (&plan.name, plan.lines.server_id);
        if let Some(here) = self.target.as_mut().filter(|_| plan.gtid_domain_id.is_some()) {
            if server_id(connection)
                .is_ok_and(|id| server_id(&mut here.connection).is_ok_and(|own| own == id))
            {
                self.findings.add(line, Wrong, format!("{name}: {ONE_SERVER_ID}"));
            }
        }
        let Some(id) = plan.server_id else { return };
        let query = if family == Family::MariaDb { "SHOW SLAVE HOSTS" } else { "SHOW REPLICAS" };
        match connection.query(query) {
            Ok(rows) => {
                if tables::texts(rows).any(|row| row.first().is_some_and(|one| *one == id.to_string())) {
                    let why = format!("{name}: another replica of the source has server_id {id}");
                    self.findings.add(line, Wrong, why);
                }
            }
            Err(error) => {
                let why = format!("{name}: whether server_id {id} is in use cannot be told: {error}");
                self.findings.add(line, Warning, why);
            }
        }
    }

    /// Patterns of tables that no table has, and names of such as are renamed and are not there.
    fn routes(&mut self, plan: &SourcePlan, tables: &tables::Tables) {
        let name = &plan.name;
        for (pattern, &line) in plan.routes.tables().iter().zip(&plan.lines.tables) {
            if !tables.keys().any(|(database, table)| pattern.fits(database.as_bytes(), table.as_bytes())) {
                let why = format!("{name}: no table that is followed is called as this says");
                self.findings.add(line, Wrong, why);
            }
        }
        let names: Vec<&Name> = tables.keys().collect();
        let (changes, columns) = plan.exclusions.without_tables(&names);
        let own = plan.own_columns.has_none_of(&names);
        let renamed = plan.renamed_columns.has_none_of(&names);
        let lines = &plan.lines;
        let lines = [
            (lines.exclude_changes, changes),
            (lines.exclude_columns, columns),
            (lines.own_columns, own),
            (lines.rename_columns, renamed),
        ];
        for (line, _) in lines.into_iter().filter(|(_, is_for_nobody)| *is_for_nobody) {
            let why = format!("{name}: no table that is followed is called as one of these says");
            self.findings.add(line, Wrong, why);
        }
        for there in plan.routes.renamed_tables().filter(|there| !tables.contains_key(*there)) {
            let why = format!("{name}: rename_tables: there is no table `{}`.`{}`", there.0, there.1);
            self.findings.add(plan.lines.rename_tables, Wrong, why);
        }
    }

    /// Tables of both sides. `weight`: of what differs.
    fn tables(
        &mut self,
        plan: &SourcePlan,
        connection: &mut Connection,
        progress: Progress,
    ) -> Result<(), Error> {
        let (name, line) = (&plan.name, plan.lines.table);
        let follows =
            |database: &str, table: &str| plan.routes.follows_table(database.as_bytes(), table.as_bytes());
        let theirs = tables::all(connection, &follows)?;
        self.routes(plan, &theirs);
        let mut databases: Vec<String> = Vec::new();
        for ((database, table), there) in &theirs {
            let ours = plan.routes.names_of(database, table);
            let shown = format!("{name}: `{database}`.`{table}`");
            if there.key.is_empty() && !there.is_sequence {
                let why = "has no key: each row that is changed is looked for in the whole table";
                self.findings.add(line, Warning, format!("{shown} {why}"));
            }
            let part = plan.routes.part(database, table);
            let owners = self.owners.entry(ours.clone()).or_default();
            let clash = owners.iter().find(|(_, other)| !PartOf::are_apart(other.as_ref(), part));
            let clash = clash.map(|(owner, _)| owner.clone());
            owners.push((name.clone(), part.cloned()));
            if let Some(owner) = clash {
                let why = format!(
                    "{shown} and a table of {owner} are one in the target, `{}`.`{}`",
                    ours.0, ours.1
                );
                let is_renamed =
                    plan.routes.renamed_tables().any(|name| (&name.0, &name.1) == (database, table));
                self.findings.add(if is_renamed { plan.lines.rename_tables } else { line }, Wrong, why);
            }
            let left_out = plan.exclusions.columns(database, table);
            if !left_out.is_empty() {
                let unique = unique_columns(connection, &(database.clone(), table.clone()))?;
                if let Err(why) = places_in(there, &unique, &left_out) {
                    self.findings.add(plan.lines.exclude_columns, Wrong, format!("{shown} {why}"));
                }
            }
            let names = plan.renamed_columns.of(database, table);
            if let Some(column) = names.missing(there) {
                let why = format!("{shown} has no column `{column}`, which is to have another name");
                self.findings.add(plan.lines.rename_columns, Warning, why);
            }
            let Some(here) = &mut self.target else { continue };
            let counterpart = Counterpart::of(plan, database, table);
            let is_to_be_made = !counterpart.has_more_columns();
            let mut found = match (here.tables.get(&ours), progress) {
                (None, Progress::ToCopy) if is_to_be_made => Vec::new(),
                (Some(_), Progress::ToCopy) if is_to_be_made => {
                    vec![format!("is to be copied, and `{}`.`{}` is there already", ours.0, ours.1)]
                }
                (None, Progress::ToCopy) => vec![counterpart.missing()],
                (None, _) => vec![format!("is not in the target, as `{}`.`{}`", ours.0, ours.1)],
                (Some(found), _) => counterpart.differences(there, found, &here.engines),
            };
            if progress == Progress::ToCopy {
                found.extend(refusal(there).into_iter().chain(refused_by(plan, &theirs, (database, table))));
                let is_there = !is_to_be_made && here.tables.contains_key(&ours);
                if is_there && counterpart.has_rows(&mut here.connection)? {
                    found.push(counterpart.filled());
                }
            }
            for why in found {
                self.findings.add(line, progress.weight(), format!("{shown} {why}"));
            }
            if !databases.contains(&ours.0) {
                databases.push(ours.0);
            }
        }
        self.actions(plan, connection, &databases, progress)
    }

    /// What acts by itself in the target, and what the account may not do there.
    fn actions(
        &mut self,
        plan: &SourcePlan,
        connection: &mut Connection,
        databases: &[String],
        progress: Progress,
    ) -> Result<(), Error> {
        let (name, line) = (&plan.name, plan.lines.table);
        let follows =
            |database: &str, table: &str| plan.routes.follows_table(database.as_bytes(), table.as_bytes());
        let weight = progress.weight();
        let theirs =
            tables::cascades(connection, &follows, &|database, table| plan.routes.names_of(database, table))?;
        let Some(here) = &mut self.target else { return Ok(()) };
        let is_ours = |database: &str, table: &str| {
            databases.iter().any(|one| one == database) && !plan.routes.leave_out(database, table)
        };
        let ours = tables::cascades(&mut here.connection, &is_ours, &tables::as_they_are)?;
        for key in theirs.difference(&ours).filter(|_| progress != Progress::ToCopy) {
            let why = format!(
                "{name}: what this does at the source is in no log, and the target has it not: {key}"
            );
            self.findings.add(line, weight, why);
        }
        for key in ours.difference(&theirs) {
            let why = format!("{name}: this would change rows in the target that the source leaves: {key}");
            self.findings.add(line, weight, why);
        }
        for database in databases {
            let missing = here.grants.missing(&PRIVILEGES, Some(database));
            if !missing.is_empty() {
                let why =
                    format!("{name}: the target's account has not {} ON `{database}`.*", missing.join(", "));
                self.findings.add(line, Warning, why);
            }
            let events = here.connection.query(format!(
                "SELECT EVENT_NAME FROM information_schema.EVENTS WHERE STATUS = 'ENABLED' AND EVENT_SCHEMA = {}",
                literal(database.as_bytes())
            ))?;
            for event in tables::texts(events).flatten() {
                let why = format!(
                    "{name}: the event `{database}`.`{event}` acts in the target, beside that of the source"
                );
                self.findings.add(line, Warning, why);
            }
        }
        Ok(())
    }
}

/// What the target knows of a source.
#[derive(Default)]
struct Begun {
    is_followed: bool,
    position: Option<String>,
}

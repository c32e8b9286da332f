//! The configuration file: TOML, whose keys are in docs/replicate.md. What is wrong in it is told with its line.

use crate::exclusions::{ByPattern, Exclusions, Kind};
use crate::own_columns::OwnColumns;
use crate::part::TableKeys;
use crate::renamed_columns::RenamedColumns;
use crate::routes::{Routes, TablePattern};
use crate::schedule::CommitOrder;
use crate::statement::{classify, Definition, Statement};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;
use teak_client::{password_of_file, Address, Settings, Tls, TlsPolicy};
use teak_metrics::Listen;
use teak_sql::charset::Dialect;
use toml::{Spanned, Value};

const DEFAULT_PORT: u16 = 3306;
/// A server that is away must not hold a thread for as long as the system would try.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// After so many seconds without a word of a server somebody looks whether it is there, and after how many at most.
const TIMEOUT: u64 = 30;
const LONGEST_TIMEOUT: u64 = 3600;
/// A table is named by it, with two letters more.
const LONGEST_NAME: usize = 62;
/// So many workers a source has at most.
pub const MOST_WORKERS: usize = 64;

/// What the configuration says.
#[derive(Debug)]
pub struct Configuration {
    /// The file.
    pub file: PathBuf,
    /// Where rows go.
    pub target: TargetPlan,
    /// Who is followed.
    pub sources: Vec<SourcePlan>,
    /// Where metrics can be asked for.
    pub metrics: Option<Listen>,
}

/// The server that rows go to.
#[derive(Debug, Clone)]
pub struct TargetPlan {
    /// The connection.
    pub settings: Settings,
    /// What tables are made with, whatever engine the source's statements name.
    pub engine: Option<String>,
    /// The line of its table in the file.
    pub line: usize,
}

/// A server that is followed.
#[derive(Debug, Clone)]
pub struct SourcePlan {
    /// As positions and messages call it.
    pub name: String,
    /// The connection.
    pub settings: Settings,
    /// Where to begin the first time.
    pub start: Start,
    /// As which replica to ask.
    pub server_id: Option<u32>,
    /// Which databases are followed.
    pub routes: Routes,
    /// What is left out of rows.
    pub exclusions: Exclusions,
    /// Columns that only the target has.
    pub own_columns: OwnColumns,
    /// Columns that have other names there.
    pub renamed_columns: RenamedColumns,
    /// What becomes of rows that do not fit.
    pub on_conflict: OnConflict,
    /// The domain of its transactions in the target's own log, which then has the servers that they are of as well.
    pub gtid_domain_id: Option<u32>,
    /// So many connections apply its transactions.
    pub workers: usize,
    /// In which order these commit.
    pub commit_order: CommitOrder,
    /// Where in the file it is.
    pub lines: SourceLines,
}

/// What becomes of rows that do not fit what the target has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnConflict {
    /// The source stops before their transaction.
    #[default]
    Stop,
    /// They are noted, and left out.
    Skip,
    /// The target's rows become those of the source.
    Overwrite,
}

impl OnConflict {
    /// What it has done to a row, as a message says it.
    pub fn done(self) -> &'static str {
        match self {
            OnConflict::Stop => "stops the source",
            OnConflict::Skip => "is skipped, and noted in teak_replicate.conflict",
            OnConflict::Overwrite => "is overwritten",
        }
    }
}

/// The lines of what a source's table says, from 1.
#[derive(Debug, Clone)]
pub struct SourceLines {
    /// The table.
    pub table: usize,
    /// `start`.
    pub start: usize,
    /// `server_id`, or the table.
    pub server_id: usize,
    /// Each of `databases`.
    pub patterns: Vec<usize>,
    /// Each of `tables`.
    pub tables: Vec<usize>,
    /// `rename_tables`, or the table.
    pub rename_tables: usize,
    /// `exclude_changes`, or the table.
    pub exclude_changes: usize,
    /// `exclude_columns`, or the table.
    pub exclude_columns: usize,
    /// `own_columns`, or the table.
    pub own_columns: usize,
    /// `rename_columns`, or the table.
    pub rename_columns: usize,
}

/// Where to begin if the target has no position of the source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// Where the source is.
    Now,
    /// Where the source is, with a copy of its tables.
    Copy,
    /// Behind these transactions.
    Gtid(String),
    /// At an event of a file, of a source that can tell the GTIDs before it.
    File {
        /// As the source calls it.
        file: String,
        /// Where in it.
        position: u64,
    },
}

/// A configuration that cannot be carried out: a line for each thing that is wrong, with its place.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct Wrong(Vec<String>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    target: Spanned<TargetKeys>,
    #[serde(default)]
    source: Vec<Spanned<SourceKeys>>,
    metrics: Option<MetricsKeys>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MetricsKeys {
    listen: Spanned<String>,
}

/// Keys of a server: those of the connection, and others. (`flatten` of serde would lose the lines of unknown keys.)
macro_rules! server_keys {
    (struct $name:ident { $($key:ident: $kind:ty,)* }) => {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct $name {
            socket: Option<PathBuf>,
            host: Option<String>,
            port: Option<u16>,
            user: String,
            password_file: Option<PathBuf>,
            tls: Option<bool>,
            tls_ca: Option<PathBuf>,
            tls_cert: Option<PathBuf>,
            tls_key: Option<PathBuf>,
            tls_verify_host: Option<bool>,
            timeout: Option<u64>,
            $($key: $kind,)*
        }

        impl $name {
            /// The connection, or what is wrong with its keys.
            fn settings(&self) -> Result<Settings, String> {
                let address = address(self.socket.as_deref(), self.host.as_deref(), self.port)?;
                let password = self.password_file.as_deref().map_or(Ok(String::new()), |file| {
                    password_of_file(file).map_err(|error| format!("password_file {}: {error}", file.display()))
                })?;
                let tls = tls(
                    self.tls,
                    Tls {
                        ca: self.tls_ca.clone(),
                        cert: self.tls_cert.clone(),
                        key: self.tls_key.clone(),
                        verify_host: self.tls_verify_host.unwrap_or(false),
                        ..Tls::default()
                    },
                )?;
                Ok(Settings {
                    address,
                    user: self.user.clone(),
                    password,
                    database: None,
                    character_set: "utf8mb4".into(),
                    connect_timeout: Some(CONNECT_TIMEOUT),
                    patience: Some(patience(self.timeout)?),
                    several_statements: false,
                    local_data: false,
                    tls,
                })
            }
        }
    };
}

server_keys! {
    struct TargetKeys {
        engine: Option<Spanned<String>>,
        workers: Option<Spanned<usize>>,
        commit_order: Option<bool>,
    }
}

server_keys! {
    struct SourceKeys {
        name: Spanned<String>,
        start: Spanned<Value>,
        server_id: Option<Spanned<u32>>,
        databases: Option<Vec<Spanned<String>>>,
        rename_databases: Option<Spanned<BTreeMap<String, String>>>,
        on_conflict: Option<OnConflict>,
        gtid_domain_id: Option<u32>,
        workers: Option<Spanned<usize>>,
        commit_order: Option<bool>,
        tables: Option<Vec<Spanned<String>>>,
        exclude_tables: Option<Vec<Spanned<String>>>,
        rename_tables: Option<Spanned<BTreeMap<String, TableKeys>>>,
        exclude_changes: Option<Spanned<ByPattern<Kind>>>,
        exclude_columns: Option<Spanned<ByPattern<String>>>,
        own_columns: Option<Spanned<ByPattern<String>>>,
        rename_columns: Option<Spanned<BTreeMap<String, BTreeMap<String, String>>>>,
    }
}

/// Names a line of the file in an error.
struct Lines<'a> {
    file: &'a Path,
    text: &'a str,
}

impl Lines<'_> {
    /// The line in which something begins.
    fn of(&self, at: &Range<usize>) -> usize {
        let before = self.text.as_bytes().get(..at.start).unwrap_or_default();
        1 + before.iter().filter(|&&byte| byte == b'\n').count()
    }

    fn wrong(&self, at: Range<usize>, why: impl std::fmt::Display) -> String {
        format!("{}:{}: {why}", self.file.display(), self.of(&at))
    }
}

impl Configuration {
    /// Of a file.
    pub fn read(file: &Path) -> Result<Configuration, Wrong> {
        let text = std::fs::read_to_string(file)
            .map_err(|error| Wrong(vec![format!("{}: {error}", file.display())]))?;
        Configuration::of_text(file, &text)
    }

    fn of_text(file: &Path, text: &str) -> Result<Configuration, Wrong> {
        let lines = Lines { file, text };
        let keys: File = toml::from_str(text)
            .map_err(|error| Wrong(vec![lines.wrong(error.span().unwrap_or_default(), error.message())]))?;
        let mut wrong = Vec::new();
        let at = keys.target.span();
        if keys.source.is_empty() {
            wrong.push(lines.wrong(at.clone(), "there is no [[source]]"));
        }
        let of_all =
            OfAll::read(keys.target.get_ref(), &lines).map_err(|why| wrong.push(why)).unwrap_or_default();
        let target = target(keys.target.into_inner(), &lines, at).map_err(|why| wrong.push(why)).ok();
        let mut sources: Vec<SourcePlan> = Vec::new();
        for source in keys.source {
            let (at, name) = (source.span(), source.get_ref().name.span());
            let renamed = source.get_ref().rename_tables.as_ref().map(Spanned::span);
            match self::source(source.into_inner(), &lines, at, of_all) {
                Err(why) => wrong.push(why),
                Ok(source) => {
                    if let Some(why) = sources.iter().find_map(|other| source.clash(other)) {
                        let is_of_tables = why.starts_with("rename_tables");
                        let at = renamed.filter(|_| is_of_tables).unwrap_or(name);
                        wrong.push(lines.wrong(at, why));
                    }
                    sources.push(source);
                }
            }
        }
        let listen = keys.metrics.map(|metrics| {
            let at = metrics.listen.span();
            metrics.listen.get_ref().parse().map_err(|why: String| lines.wrong(at, format!("listen: {why}")))
        });
        let metrics = listen.transpose().map_err(|why| wrong.push(why)).ok().flatten();
        match target {
            Some(target) if wrong.is_empty() => {
                Ok(Configuration { file: file.into(), target, sources, metrics })
            }
            _ => Err(Wrong(wrong)),
        }
    }
}

/// What the target's table says for all sources that do not say it.
#[derive(Debug, Clone, Copy, Default)]
struct OfAll {
    workers: Option<usize>,
    keeps_order: Option<bool>,
}

impl OfAll {
    fn read(keys: &TargetKeys, lines: &Lines<'_>) -> Result<OfAll, String> {
        Ok(OfAll { workers: workers(keys.workers.as_ref(), lines)?, keeps_order: keys.commit_order })
    }
}

fn workers(key: Option<&Spanned<usize>>, lines: &Lines<'_>) -> Result<Option<usize>, String> {
    match key {
        Some(number) if !(1..=MOST_WORKERS).contains(number.get_ref()) => {
            Err(lines.wrong(number.span(), format!("workers is a number from 1 to {MOST_WORKERS}")))
        }
        number => Ok(number.map(|number| *number.get_ref())),
    }
}

impl SourcePlan {
    /// Whether views, triggers and routines are the same in the target: what they name is called so there.
    pub fn follows_bodies(&self) -> bool {
        !self.routes.are_of_tables() && self.renamed_columns.is_empty()
    }

    /// A statement that changes definitions as the target is to have it; the error says why that cannot be told.
    /// `database`: the default one at the source.
    pub fn rewritten(
        &self,
        text: &[u8],
        definition: &Definition,
        dialect: Dialect,
        database: &[u8],
    ) -> Result<Vec<u8>, String> {
        let of_routes = |text: &[u8], definition: &Definition| {
            let rewritten = self.routes.rewritten(text, definition, dialect, database);
            rewritten.ok_or("a view or a routine that names a renamed database: that is not built yet".into())
        };
        let Some(text) = self.renamed_columns.rewritten(text, definition, dialect, database)? else {
            return of_routes(text, definition);
        };
        match classify(&text, dialect) {
            Statement::Definition(definition) => of_routes(&text, &definition),
            _ => Err("a statement that is another one with other names of columns".into()),
        }
    }

    /// Why it cannot be there beside another one.
    fn clash(&self, other: &SourcePlan) -> Option<String> {
        if other.name.eq_ignore_ascii_case(&self.name) {
            return Some(format!("there are two sources {}", self.name));
        }
        if let Some(table) = self.routes.shares(&other.routes) {
            return Some(format!("rename_tables: a table of {} would be {table} as well", other.name));
        }
        let is_same = other.settings.address == self.settings.address && other.server_id == self.server_id;
        let id = self.server_id.filter(|_| is_same)?;
        Some(format!(
            "{} asks the same server as replica {id}: it sends its log to one of them only",
            other.name
        ))
    }
}

fn patience(seconds: Option<u64>) -> Result<Duration, String> {
    match seconds.unwrap_or(TIMEOUT) {
        seconds @ 1..=LONGEST_TIMEOUT => Ok(Duration::from_secs(seconds)),
        other => Err(format!("timeout: {other} is not from 1 to {LONGEST_TIMEOUT} seconds")),
    }
}

fn target(keys: TargetKeys, lines: &Lines<'_>, at: Range<usize>) -> Result<TargetPlan, String> {
    let settings = keys.settings();
    let engine = match keys.engine {
        Some(engine) if !is_plain(engine.get_ref()) => {
            return Err(lines.wrong(engine.span(), "engine is not the name of an engine"))
        }
        engine => engine.map(Spanned::into_inner),
    };
    let line = lines.of(&at);
    let settings = settings.map_err(|why| lines.wrong(at, why))?;
    Ok(TargetPlan { settings, engine, line })
}

fn source(
    keys: SourceKeys,
    lines: &Lines<'_>,
    at: Range<usize>,
    of_all: OfAll,
) -> Result<SourcePlan, String> {
    let settings = keys.settings();
    let name_at = keys.name.span();
    let name = keys.name.into_inner();
    if !is_plain(&name) || name.len() > LONGEST_NAME {
        let why = format!("a name has letters of ASCII, digits, _ and -, {LONGEST_NAME} at most");
        return Err(lines.wrong(name_at, why));
    }
    let start = start(keys.start.get_ref()).map_err(|why| lines.wrong(keys.start.span(), why))?;
    let patterns = keys.databases.iter().flatten().map(|pattern| lines.of(&pattern.span())).collect();
    let places = SourceLines {
        table: lines.of(&at),
        start: lines.of(&keys.start.span()),
        server_id: keys.server_id.as_ref().map_or(lines.of(&at), |id| lines.of(&id.span())),
        patterns,
        tables: keys.tables.iter().flatten().map(|pattern| lines.of(&pattern.span())).collect(),
        rename_tables: keys.rename_tables.as_ref().map_or(lines.of(&at), |names| lines.of(&names.span())),
        exclude_changes: keys.exclude_changes.as_ref().map_or(lines.of(&at), |those| lines.of(&those.span())),
        exclude_columns: keys.exclude_columns.as_ref().map_or(lines.of(&at), |those| lines.of(&those.span())),
        own_columns: keys.own_columns.as_ref().map_or(lines.of(&at), |those| lines.of(&those.span())),
        rename_columns: keys.rename_columns.as_ref().map_or(lines.of(&at), |those| lines.of(&those.span())),
    };
    let settings = settings.map_err(|why| lines.wrong(at, why))?;
    let server_id = match keys.server_id {
        Some(id) if *id.get_ref() == 0 => return Err(lines.wrong(id.span(), "server_id is 0")),
        id => id.map(Spanned::into_inner),
    };
    let databases = keys.databases.map(|those| those.into_iter().map(Spanned::into_inner).collect());
    let mut routes = Routes::new(databases);
    if let Some(renamed) = &keys.rename_databases {
        for (from, to) in renamed.get_ref() {
            routes.rename(from, to).map_err(|why| lines.wrong(renamed.span(), why))?;
        }
    }
    let tables = keys.tables.map(|those| table_patterns(those, lines)).transpose()?;
    routes.choose(tables, table_patterns(keys.exclude_tables.unwrap_or_default(), lines)?);
    if let Some(renamed) = &keys.rename_tables {
        for (from, to) in renamed.get_ref() {
            let done = to.names(&name).and_then(|(to, part)| routes.rename_table(from, to, part));
            done.map_err(|why| lines.wrong(renamed.span(), why))?;
        }
    }
    let mut exclusions = Exclusions::default();
    if let Some(those) = &keys.exclude_changes {
        exclusions.exclude_changes(those.get_ref()).map_err(|why| lines.wrong(those.span(), why))?;
    }
    if let Some(those) = &keys.exclude_columns {
        exclusions.exclude_columns(those.get_ref()).map_err(|why| lines.wrong(those.span(), why))?;
    }
    let own_columns = keys
        .own_columns
        .as_ref()
        .map(|those| OwnColumns::new(those.get_ref()).map_err(|why| lines.wrong(those.span(), why)));
    let own_columns = own_columns.transpose()?.unwrap_or_default();
    let renamed_columns = keys
        .rename_columns
        .as_ref()
        .map(|those| RenamedColumns::new(those.get_ref()).map_err(|why| lines.wrong(those.span(), why)));
    let renamed_columns = renamed_columns.transpose()?.unwrap_or_default();
    let on_conflict = keys.on_conflict.unwrap_or_default();
    let workers = workers(keys.workers.as_ref(), lines)?.or(of_all.workers).unwrap_or(1);
    let commit_order = match keys.commit_order.or(of_all.keeps_order) {
        None | Some(true) => CommitOrder::Kept,
        Some(false) => CommitOrder::Free,
    };
    Ok(SourcePlan {
        name,
        settings,
        start,
        server_id,
        routes,
        exclusions,
        own_columns,
        renamed_columns,
        on_conflict,
        gtid_domain_id: keys.gtid_domain_id,
        workers,
        commit_order,
        lines: places,
    })
}

fn table_patterns(texts: Vec<Spanned<String>>, lines: &Lines<'_>) -> Result<Vec<TablePattern>, String> {
    let pattern = |text: Spanned<String>| {
        let why = || format!("{} is not database.table", text.get_ref());
        TablePattern::parse(text.get_ref()).ok_or_else(|| lines.wrong(text.span(), why()))
    };
    texts.into_iter().map(pattern).collect()
}

/// What may stand in a statement as it is.
pub fn is_plain(name: &str) -> bool {
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

fn start(value: &Value) -> Result<Start, String> {
    match value {
        Value::String(text) => match text.as_str() {
            "now" => Ok(Start::Now),
            "copy" => Ok(Start::Copy),
            gtid => {
                let family = crate::Position::family_of(gtid);
                let position =
                    crate::Position::parse(gtid, family).map_err(|error| format!("start: {error}"))?;
                Ok(Start::Gtid(position.to_string()))
            }
        },
        Value::Table(table) => {
            let file = table.get("file").and_then(Value::as_str);
            let position = table.get("position").and_then(Value::as_integer);
            match (file, position.and_then(|position| u64::try_from(position).ok()), table.len()) {
                (Some(file), Some(position), 2) => Ok(Start::File { file: file.into(), position }),
                _ => Err("start is not { file = \"NAME\", position = NUMBER }".into()),
            }
        }
        _ => Err(
            "start is neither \"now\", nor \"copy\", nor GTIDs, nor { file = \"NAME\", position = NUMBER }"
                .into(),
        ),
    }
}

fn address(socket: Option<&Path>, host: Option<&str>, port: Option<u16>) -> Result<Address, String> {
    match (socket, host) {
        (Some(_), Some(_)) => Err("there are socket and host: one of them is needed".into()),
        (None, None) => Err("socket or host is missing".into()),
        (Some(_), None) if port.is_some() => Err("a socket has no port".into()),
        (Some(socket), None) => Ok(Address::Socket(socket.into())),
        (None, Some(host)) => Ok(Address::Tcp { host: host.into(), port: port.unwrap_or(DEFAULT_PORT) }),
    }
}

/// With the policy that `asked`, the key `tls`, and the others ask for.
fn tls(asked: Option<bool>, mut tls: Tls) -> Result<Tls, String> {
    let is_asked_for = tls.cert.is_some() || tls.checks_certificate();
    tls.policy = match asked {
        Some(false) if is_asked_for => return Err("tls is false, and there are other keys of TLS".into()),
        Some(false) => TlsPolicy::Never,
        Some(true) => TlsPolicy::Required,
        None if is_asked_for => TlsPolicy::Required,
        None => TlsPolicy::IfOffered,
    };
    Ok(tls)
}

#[cfg(test)]
mod tests;

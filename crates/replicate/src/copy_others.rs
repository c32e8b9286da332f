//! What a copy brings besides tables, when all of these are whole: views, triggers and routines, as they are at a place
//! of the source's log. Statements about them that the log has before that are left out.

use crate::chunk_reader;
use crate::chunks;
use crate::configuration::SourcePlan;
use crate::failure::Failure;
use crate::sides::LogPlace;
use crate::statement::{classify, dialect, Statement};
use crate::tables;
use crate::target::Target;
use teak_client::{Connection, Error};
use teak_console::{terminal, Status};
use teak_sql::charset::Dialect;
use teak_sql::quoting::{literal, quoted_name};

/// So often definitions are read until they stand still.
const ATTEMPTS: u32 = 100;
/// What a server says of a database, a view, a routine and a trigger that is not there.
const GONE: [u16; 4] = [1049, 1146, 1305, 1360];
/// What makes something mean what it names comes before it, as far as one kind needs another.
const ALL: &str = "
    SELECT ROUTINE_TYPE, ROUTINE_SCHEMA, ROUTINE_NAME, 0 AS class, 0 AS number FROM information_schema.ROUTINES
    UNION ALL SELECT 'VIEW', TABLE_SCHEMA, TABLE_NAME, 1, 0 FROM information_schema.VIEWS
    UNION ALL SELECT 'TRIGGER', TRIGGER_SCHEMA, TRIGGER_NAME, 2, ACTION_ORDER FROM information_schema.TRIGGERS
    ORDER BY class, number, 1, 2, 3";

/// A view, a trigger or a routine of the source.
#[derive(Debug, PartialEq, Eq)]
struct Other {
    kind: String,
    database: String,
    name: String,
    /// What sets the session that it was made in.
    session: String,
    dialect: Dialect,
    /// None: the source does not show it to the account.
    text: Option<Vec<u8>>,
}

/// All of a source, and where in its log they are so.
pub struct Others {
    all: Vec<Other>,
    /// Where.
    pub place: LogPlace,
    /// The place was asked for as GTIDs.
    pub is_asked_by_gtid: bool,
}

impl Others {
    /// Reads them until they are the same before and behind a place.
    pub fn read(source: &mut Connection, plan: &SourcePlan) -> Result<Others, Failure> {
        let standing = standing(source, plan).map_err(|error| Failure::of_source(&error))?;
        let why = || Failure::Passing("source: its views, triggers or routines change all the time".into());
        let (all, place) = standing.ok_or_else(why)?;
        Ok(Others { all, place, is_asked_by_gtid: false })
    }

    /// Makes them in the target, whatever is there.
    pub fn make(&self, target: &mut Target<'_>, plan: &SourcePlan) -> Result<(), Failure> {
        let mut left: Vec<(&Other, String)> = self.all.iter().map(|other| (other, String::new())).collect();
        // One view may be made of others.
        loop {
            let before = left.len();
            let mut failed = Vec::new();
            for (other, _) in left {
                if let Some(why) = other.make(target, plan)? {
                    failed.push((other, why));
                }
            }
            left = failed;
            if left.is_empty() || left.len() == before {
                break;
            }
        }
        for (Other { kind, database, name, .. }, why) in left {
            let kind = kind.to_lowercase();
            terminal::message(&format!("{}: {kind} `{database}`.`{name}` is not copied: {why}", plan.name));
        }
        Ok(())
    }

    /// Before somebody begins to, what is there is somebody else's.
    pub fn must_be_new(&self, target: &mut Target<'_>, plan: &SourcePlan) -> Result<(), Failure> {
        for other in &self.all {
            let quoted = other.here(plan);
            // Views have the names of tables.
            let kind = if other.kind == "VIEW" { "TABLE" } else { &other.kind };
            let shown = target.definition(kind, &quoted);
            let shown = shown.map_err(|error| Failure::of_target(&error, || "what a copy makes".into()))?;
            if !shown.is_empty() {
                let (kind, quoted) =
                    (other.kind.to_lowercase(), String::from_utf8_lossy(&quoted).into_owned());
                let why = format!("target: {kind} {quoted} is there already, and a copy makes it: drop it");
                return Err(Failure::Final(why, Status::Usage));
            }
        }
        Ok(())
    }
}

impl Other {
    /// Its name in the target.
    fn here(&self, plan: &SourcePlan) -> Vec<u8> {
        let database = plan.routes.text_name_of(&self.database);
        [quoted_name(database.as_bytes()), quoted_name(self.name.as_bytes())].join(&b"."[..])
    }

    /// Makes it, whatever is there. Why it cannot be made, if so.
    fn make(&self, target: &mut Target<'_>, plan: &SourcePlan) -> Result<Option<String>, Failure> {
        let Some(text) = &self.text else {
            return Ok(Some("the source does not show it to this account".into()));
        };
        let Statement::Definition(definition) = classify(text, self.dialect) else {
            return Ok(Some("it is of a kind that is not built yet".into()));
        };
        let database = self.database.as_bytes();
        let Some(text) = plan.routes.rewritten(text, &definition, self.dialect, database) else {
            return Ok(Some("it names a renamed database".into()));
        };
        let drop = [b"DROP ", self.kind.as_bytes(), b" IF EXISTS ", &self.here(plan)].concat();
        let here = plan.routes.text_name_of(&self.database);
        let made = target.connection().execute(drop).map(|_| ());
        let made = made.and_then(|()| target.define(&self.session, here.as_bytes(), true, &text));
        let Err(error) = made else { return Ok(None) };
        match Failure::of_target(&error, String::new) {
            Failure::Final(..) if matches!(error, Error::Server { .. }) => Ok(Some(error.to_string())),
            other => Err(other),
        }
    }
}

fn standing(source: &mut Connection, plan: &SourcePlan) -> Result<Option<(Vec<Other>, LogPlace)>, Error> {
    chunks::prepare(source)?;
    let mut before = defined(source, plan)?;
    for _ in 0..ATTEMPTS {
        source.execute("START TRANSACTION WITH CONSISTENT SNAPSHOT")?;
        let place = chunk_reader::place_of_snapshot(source)?;
        source.execute("ROLLBACK")?;
        let after = defined(source, plan)?;
        match place.filter(|_| before == after) {
            Some(place) => return Ok(Some((after, place))),
            None => before = after,
        }
    }
    Ok(None)
}

fn defined(source: &mut Connection, plan: &SourcePlan) -> Result<Vec<Other>, Error> {
    let mut all = Vec::new();
    let listed = source.query(ALL)?;
    for row in tables::texts(listed).filter(|row| plan.routes.follows(row[1].as_bytes())) {
        let [kind, database, name, ..] = &row[..] else { continue };
        // A text does not name the session's own database.
        let used = source.execute([b"USE ", &quoted_name(database.as_bytes())[..]].concat());
        let show = [b"SHOW CREATE ", kind.as_bytes(), b" ", &quoted_name(name.as_bytes())].concat();
        let (mode, client, collation, text) = match used.and_then(|_| source.query(show)) {
            Err(error) if error.code().is_some_and(|code| GONE.contains(&code)) => continue,
            // Not for this account, or invalid as a whole.
            Err(Error::Server { .. }) => Default::default(),
            shown => {
                let row = shown?.into_iter().next().unwrap_or_default();
                let mut row = row.into_iter().skip(1);
                let mut next = || row.next().flatten();
                let mode = if kind == "VIEW" { None } else { next() };
                let text = next();
                (mode.unwrap_or_default(), next().unwrap_or_default(), next().unwrap_or_default(), text)
            }
        };
        let dialect = Dialect {
            backslash: !contains(&mode, b"NO_BACKSLASH_ESCAPES"),
            ansi_quotes: contains(&mode, b"ANSI_QUOTES"),
            ..dialect(0, std::str::from_utf8(&client).ok())
        };
        let session = format!(
            "SET SESSION sql_mode = {}, character_set_client = {}, collation_connection = {}",
            literal(&mode),
            literal(&client),
            literal(&collation)
        );
        let [kind, database, name] = [kind, database, name].map(String::clone);
        all.push(Other { kind, database, name, session, dialect, text });
    }
    Ok(all)
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|window| window == word)
}

//! A server that takes part in transactions over several, and what it has prepared.

use super::head::{text_of, xid_and_rest};
use super::xid::Xid;
use super::ResolveError;
use std::collections::BTreeMap;
use teak_client::{Address, Connection, Error, Settings};

/// Where a shard is, and who the head is there.
#[derive(Debug, Clone)]
pub struct Endpoint {
    address: Address,
    user: String,
    password: String,
}

/// For people.
pub fn name_of(address: &Address) -> String {
    match address {
        Address::Tcp { host, port } => format!("{host}:{port}"),
        Address::Socket(path) => path.display().to_string(),
    }
}

impl Endpoint {
    /// Of host, port, socket, user and password, as Spider's tables have them.
    pub fn of(texts: &[String]) -> Endpoint {
        let text = |at: usize| texts.get(at).cloned().unwrap_or_default();
        let address = match (text(0), text(2)) {
            (host, socket) if !socket.is_empty() && (host.is_empty() || host == "localhost") => {
                Address::Socket(socket.into())
            }
            (host, _) => {
                Address::Tcp { host, port: text(1).parse().ok().filter(|port| *port > 0).unwrap_or(3306) }
            }
        };
        Endpoint { address, user: text(3), password: text(4) }
    }

    /// What tells it from others.
    pub fn name(&self) -> String {
        name_of(&self.address)
    }
}

/// What a shard has prepared.
#[derive(Debug, Clone, Default)]
pub struct Prepared {
    /// For how many seconds; None: it does not say.
    pub age: Option<f64>,
    /// Tables that somebody waits for who would not if it were decided.
    pub waiting: Vec<String>,
    /// The connection that still has it, if there is one.
    pub connection: Option<String>,
}

/// A shard.
pub struct Shard {
    connection: Connection,
}

impl Shard {
    /// Connects as the head does; all else is as the head was reached.
    pub fn connect(place: &Endpoint, like: &Settings) -> Result<Shard, Error> {
        let mut settings = like.clone();
        settings.database = None;
        (settings.address, settings.user) = (place.address.clone(), place.user.clone());
        settings.password.clone_from(&place.password);
        Ok(Shard { connection: settings.connect()? })
    }

    fn names(&mut self) -> Result<Vec<Xid>, ResolveError> {
        let rows = self.connection.query("XA RECOVER")?;
        Ok(rows.iter().filter_map(|row| xid_and_rest(row).0).collect())
    }

    /// All transactions that are prepared here.
    pub fn prepared(&mut self) -> Result<BTreeMap<Xid, Prepared>, ResolveError> {
        let names = self.names()?.into_iter();
        let mut prepared: BTreeMap<Xid, Prepared> = names.map(|xid| (xid, Prepared::default())).collect();
        if prepared.is_empty() {
            return Ok(prepared);
        }
        // Without Teak, or the right to see it, nobody says how old they are.
        let told = self.connection.query(
            "SELECT t.XID, t.AGE_SECONDS, t.CONNECTION_ID,
                (SELECT GROUP_CONCAT(DISTINCT w.TABLE_SCHEMA, '.', w.TABLE_NAME SEPARATOR ', ')
                    FROM information_schema.TEAK_LOCK_WAITS w WHERE w.BLOCKING_TRX_ID = t.TRX_ID)
            FROM information_schema.TEAK_TRX t WHERE t.STATE = 'PREPARED'",
        );
        let mut told: BTreeMap<String, Prepared> = match told {
            Err(Error::Server { .. }) => BTreeMap::new(),
            rows => rows?.iter().map(|row| of_row(row)).collect(),
        };
        for (xid, known) in &mut prepared {
            *known = told.remove(&xid.text()).unwrap_or_default();
        }
        Ok(prepared)
    }

    /// Decides one; whether it has gone: another connection may have it still.
    pub fn end(&mut self, xid: &Xid, commits: bool) -> Result<bool, ResolveError> {
        let verb = if commits { "COMMIT" } else { "ROLLBACK" };
        match self.connection.execute(format!("XA {verb} {}", xid.literal())) {
            Ok(_) => Ok(true),
            // It is unknown, or another connection has it.
            Err(Error::Server { .. }) => Ok(!self.names()?.contains(xid)),
            Err(error) => Err(error.into()),
        }
    }
}

fn of_row(row: &[Option<Vec<u8>>]) -> (String, Prepared) {
    let text = |at: usize| text_of(row.get(at));
    let waiting = text(3).split(", ").filter(|name| !name.is_empty()).map(str::to_string).collect();
    let connection = Some(text(2)).filter(|number| !number.is_empty());
    (text(0), Prepared { age: text(1).parse().ok(), waiting, connection })
}

//! A server with Spider, and what it has noted of transactions over shards.

use super::decision::State;
use super::shard::Endpoint;
use super::xid::Xid;
use super::ResolveError;
use std::collections::BTreeMap;
use teak_client::{Connection, Settings};

/// A head.
pub struct Head {
    connection: Connection,
    /// Where it is, for people.
    pub name: String,
    /// Its `server_id`, by which it names transactions.
    pub number: u64,
}

/// What it has noted of a transaction.
#[derive(Debug, Clone)]
pub struct Noted {
    /// None: a state that is not known.
    pub state: Option<State>,
    /// As it is written.
    pub text: String,
    /// Which shards take part, as far as it had come.
    pub members: Vec<Endpoint>,
}

impl Head {
    /// Connects, and asks who it is.
    pub fn connect(settings: &Settings) -> Result<Head, ResolveError> {
        let mut settings = settings.clone();
        settings.database = None;
        let mut connection = settings.connect()?;
        let number = connection.value("SELECT @@server_id")?.and_then(|text| text.parse().ok()).unwrap_or(0);
        let has = "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'mysql'
            AND TABLE_NAME IN ('spider_xa', 'spider_xa_member')";
        let name = super::shard::name_of(&settings.address);
        match connection.value(has)?.as_deref() {
            Some("2") => Ok(Head { connection, name, number }),
            _ => Err(ResolveError::NoHead(name)),
        }
    }

    /// All that it has noted of transactions that have not ended.
    pub fn noted(&mut self) -> Result<BTreeMap<Xid, Noted>, ResolveError> {
        let mut noted = BTreeMap::new();
        let query = "SELECT format_id, gtrid_length, bqual_length, data, status FROM mysql.spider_xa";
        for row in self.connection.query(query)? {
            let (xid, rest) = xid_and_rest(&row);
            let Some(xid) = xid else { continue };
            let text = text_of(rest.first());
            noted.insert(xid, Noted { state: State::of(&text), text, members: Vec::new() });
        }
        let query = "SELECT m.format_id, m.gtrid_length, m.bqual_length, m.data, m.host, m.port, m.socket, m.username,
                m.password FROM mysql.spider_xa_member m";
        for row in self.connection.query(query)? {
            let (xid, rest) = xid_and_rest(&row);
            let known = xid.and_then(|xid| noted.get_mut(&xid));
            if let Some(known) = known {
                known
                    .members
                    .push(Endpoint::of(&rest.iter().map(|value| text_of(Some(value))).collect::<Vec<_>>()));
            }
        }
        Ok(noted)
    }

    /// The shards that it knows, by its servers.
    pub fn places(&mut self) -> Result<Vec<Endpoint>, ResolveError> {
        let query = "SELECT Host, Port, Socket, Username, Password FROM mysql.servers WHERE Wrapper IN ('mysql', 'mariadb')";
        let rows = self.connection.query(query)?;
        let texts =
            |row: Vec<Option<Vec<u8>>>| row.iter().map(|value| text_of(Some(value))).collect::<Vec<_>>();
        Ok(rows.into_iter().map(|row| Endpoint::of(&texts(row))).collect())
    }

    /// The connections that carry out a statement now.
    pub fn busy(&mut self) -> Result<Vec<u64>, ResolveError> {
        let query = "SELECT ID FROM information_schema.PROCESSLIST WHERE COMMAND <> 'Sleep'";
        let rows = self.connection.query(query)?;
        Ok(rows.iter().filter_map(|row| text_of(row.first()).parse().ok()).collect())
    }

    /// Whether it still says the same of the transaction.
    pub fn still_says(&mut self, xid: &Xid, text: &str) -> Result<bool, ResolveError> {
        let query = format!("SELECT status FROM mysql.spider_xa WHERE {}", xid.condition());
        Ok(self.connection.value(query)?.as_deref() == Some(text))
    }

    /// After a restart it has some of its own transactions as prepared ones, which it would hold on to: it is asked to
    /// roll this one back, if it can.
    pub fn roll_back_if_listed(&mut self, xid: &Xid) {
        // Whatever it answers, the shards are asked afterwards.
        let _ = self.connection.execute(format!("XA ROLLBACK {}", xid.literal()));
    }

    /// The transaction has ended everywhere.
    pub fn forget(&mut self, xid: &Xid) -> Result<(), ResolveError> {
        for table in ["spider_xa_member", "spider_xa"] {
            self.connection.execute(format!("DELETE FROM mysql.{table} WHERE {}", xid.condition()))?;
        }
        Ok(())
    }
}

type Value = Option<Vec<u8>>;

/// The name in the first four columns, and the others.
pub fn xid_and_rest(row: &[Value]) -> (Option<Xid>, &[Value]) {
    let number = |at: usize| text_of(row.get(at)).parse::<i64>().ok();
    let length = |at: usize| number(at).and_then(|number| usize::try_from(number).ok());
    let bytes = row.get(3).and_then(Option::as_deref).unwrap_or_default();
    let parts = number(0).zip(length(1)).zip(length(2));
    let xid = parts.and_then(|((format, transaction), branch)| Xid::new(format, transaction, branch, bytes));
    (xid, row.get(4..).unwrap_or_default())
}

/// As text; NULL is empty.
pub fn text_of(value: Option<&Value>) -> String {
    value
        .and_then(Option::as_deref)
        .map(|bytes| String::from_utf8_lossy(bytes).into_owned())
        .unwrap_or_default()
}

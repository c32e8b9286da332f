//! From the events of a log to steps: where transactions begin and end, and what is in them. It does nothing itself.

use crate::position::Gtid;
use crate::statement::{self, Definition, Statement, Xa};
use std::sync::Arc;
use teak_binlog::{character_set, Body, ColumnType, Event, MariaDbTransaction, Query, Rows, Table};
use teak_sql::charset::Dialect;

/// Whether an event is a statement that changes definitions.
pub fn defines(event: &Event<'_>) -> bool {
    let Body::Query(query) = &event.body else { return false };
    matches!(statement::classify(&query.statement, dialect_of(query)), Statement::Definition(_))
}

/// What an event is to who applies a log.
#[derive(Debug, PartialEq)]
pub enum Step<'e, 'a> {
    /// A transaction begins. One that has not ended was not committed by its server either.
    Begin {
        /// Its number.
        gtid: Gtid,
        /// The XA transaction that it prepares, if it does: what comes is for later.
        prepares: Option<String>,
    },
    /// The transaction that has begun prepares this one.
    Prepares(String),
    /// What was prepared is committed, or rolled back: a transaction of its own.
    Completed {
        /// Its name, as it was when it was prepared.
        xid: String,
        /// Not rolled back.
        is_commit: bool,
    },
    /// A table whose rows will come.
    Table(&'e Arc<Table>),
    /// Rows of it.
    Rows(&'e Rows<'a>),
    /// The end of a statement, in an event without rows.
    EndOfRows,
    /// SAVEPOINT, or the way back to one.
    Savepoint(&'e Query<'a>),
    /// A statement that changes definitions. `ends`: the transaction ends with it.
    Definition { query: &'e Query<'a>, definition: Definition, ends: bool },
    /// A statement that is passed over, and why.
    PassedOver { query: &'e Query<'a>, why: &'static str, ends: bool },
    /// The transaction ends: also that it prepares another one does.
    Commit,
    /// Nothing is to be done.
    Nothing,
}

/// Why an event cannot be applied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The log has a statement, and not its rows.
    #[error(
        "the log has a statement and not the rows that it changed: the source's binlog_format must be ROW, in all of \
         its sessions"
    )]
    Statement,
    /// Something that comes where it cannot.
    #[error("{0}")]
    Unexpected(String),
    /// Something that is known, and that nobody has built yet.
    #[error("{0} cannot be applied: that is not built yet")]
    NotBuilt(&'static str),
    /// The source's log is not whole.
    #[error("the source's log has an incident here: something is missing from it ({0})")]
    Incident(String),
}

/// A transaction that has begun.
#[derive(Debug)]
struct Open {
    /// One statement, without anything that ends it.
    is_alone: bool,
    /// Nothing of it has come yet.
    is_new: bool,
    /// START ALTER, or ROLLBACK ALTER: nothing happens.
    does_nothing: bool,
}

/// Follows where in a transaction the log is.
#[derive(Debug, Default)]
pub struct Steps {
    open: Option<Open>,
}

impl Steps {
    /// What the next event is.
    pub fn of<'e, 'a>(&mut self, event: &'e Event<'a>) -> Result<Step<'e, 'a>, Refusal> {
        match &event.body {
            Body::MariaDbGtid(transaction) => self.begin_mariadb(transaction),
            Body::MySqlGtid(transaction) => {
                let gtid = transaction.gtid.clone().ok_or_else(|| {
                    Refusal::Unexpected(
                        "a transaction without a GTID: the source's gtid_mode must be ON".into(),
                    )
                })?;
                self.open = Some(Open { is_alone: true, is_new: true, does_nothing: false });
                Ok(Step::Begin { gtid: Gtid::MySql(gtid), prepares: None })
            }
            Body::Query(query) => self.query(query),
            Body::Xid(_) => self.end(),
            Body::TableMap(table) => {
                self.within("a table map")?;
                refuse_columns(table)?;
                Ok(Step::Table(table))
            }
            Body::Rows(rows) | Body::RowsPart(_, Some(rows)) => {
                self.within("rows")?;
                Ok(Step::Rows(rows))
            }
            Body::EndOfRows => Ok(Step::EndOfRows),
            Body::XaPrepare(prepare) if prepare.one_phase => Err(Refusal::NotBuilt(
                "an XA transaction of MySQL that is committed without having been prepared",
            )),
            Body::XaPrepare(_) => self.end(),
            Body::BeginLoadQuery(_) | Body::AppendBlock(_) | Body::ExecuteLoadQuery(_) | Body::OldLoad(_) => {
                Err(Refusal::Statement)
            }
            Body::Incident(incident) => {
                Err(Refusal::Incident(String::from_utf8_lossy(incident.message).into_owned()))
            }
            Body::StartEncryption(_)
            | Body::FormatDescription(_)
            | Body::Rotate(_)
            | Body::Stop
            | Body::Heartbeat(_)
            | Body::Intvar(_)
            | Body::Rand(_)
            | Body::UserVar(_)
            | Body::DeleteFile(_)
            | Body::RowsQuery(_)
            | Body::RowsPart(_, None)
            | Body::MariaDbGtidList(_)
            | Body::BinlogCheckpoint(_)
            | Body::PreviousGtids(_)
            | Body::TransactionPayload(_)
            | Body::LargeTransaction(_)
            | Body::Other(_) => Ok(Step::Nothing),
        }
    }

    fn begin_mariadb<'e, 'a>(&mut self, transaction: &MariaDbTransaction) -> Result<Step<'e, 'a>, Refusal> {
        let prepares = match transaction.xid {
            Some(xid) if transaction.has(MariaDbTransaction::PREPARED_XA) => Some(xid.to_string()),
            _ => None,
        };
        let idle = MariaDbTransaction::EXTRA_START_ALTER | MariaDbTransaction::EXTRA_ROLLBACK_ALTER;
        self.open = Some(Open {
            is_alone: transaction.has(MariaDbTransaction::STANDALONE),
            // Its start is told here, and nothing may come before its end.
            is_new: prepares.is_none(),
            does_nothing: transaction.extra_flags & idle != 0,
        });
        Ok(Step::Begin { gtid: Gtid::MariaDb(transaction.gtid), prepares })
    }

    /// The same of a transaction that is passed over, whatever is in it: nothing, its end, or that it completes an XA
    /// transaction.
    pub fn of_skipped<'e, 'a>(&mut self, event: &'e Event<'a>) -> Step<'e, 'a> {
        let Some(open) = &mut self.open else { return Step::Nothing };
        let is_first = std::mem::replace(&mut open.is_new, false);
        let step = match &event.body {
            Body::Xid(_) | Body::XaPrepare(_) => Step::Commit,
            Body::Query(query) => match statement::classify(&query.statement, dialect_of(query)) {
                Statement::Begin | Statement::Xa(Xa::Start, _) if is_first => {
                    open.is_alone = false;
                    Step::Nothing
                }
                Statement::Commit | Statement::Rollback => Step::Commit,
                Statement::Xa(step @ (Xa::Commit | Xa::Rollback), xid) if open.is_alone => {
                    Step::Completed { xid, is_commit: step == Xa::Commit }
                }
                _ if open.is_alone => Step::Commit,
                _ => Step::Nothing,
            },
            // It says what the next statement is, and is none.
            Body::Intvar(_) | Body::Rand(_) | Body::UserVar(_) | Body::RowsQuery(_) => {
                open.is_new = is_first;
                Step::Nothing
            }
            _ => Step::Nothing,
        };
        if step != Step::Nothing {
            self.open = None;
        }
        step
    }

    /// The transaction that has begun.
    fn within(&mut self, what: &str) -> Result<&mut Open, Refusal> {
        let without = || Refusal::Unexpected(format!("{what} outside of a transaction"));
        let open = self.open.as_mut().ok_or_else(without)?;
        open.is_new = false;
        Ok(open)
    }

    fn end<'e, 'a>(&mut self) -> Result<Step<'e, 'a>, Refusal> {
        self.within("the end of a transaction")?;
        self.open = None;
        Ok(Step::Commit)
    }

    fn query<'e, 'a>(&mut self, query: &'e Query<'a>) -> Result<Step<'e, 'a>, Refusal> {
        let kind = statement::classify(&query.statement, dialect_of(query));
        let open = self.open.as_mut();
        let open = open.ok_or_else(|| Refusal::Unexpected("a statement outside of a transaction".into()))?;
        let is_first = std::mem::replace(&mut open.is_new, false);
        match kind {
            // Of MySQL nothing else tells that more than one statement comes.
            Statement::Begin if is_first => {
                open.is_alone = false;
                return Ok(Step::Nothing);
            }
            Statement::Begin => return Err(Refusal::Unexpected("a BEGIN within a transaction".into())),
            Statement::Commit => return self.end(),
            Statement::Savepoint => return Ok(Step::Savepoint(query)),
            Statement::Xa(step, xid) => return self.xa(step, xid, is_first),
            Statement::Rollback => return Err(Refusal::NotBuilt(
                "a transaction that was rolled back, and changed tables of an engine without transactions",
            )),
            Statement::Rows => return Err(Refusal::Statement),
            Statement::Unknown => return Err(Refusal::NotBuilt("a statement of this kind")),
            Statement::Definition(_) | Statement::PassedOver(_) => (),
        }
        let (ends, does_nothing) = (open.is_alone, open.does_nothing);
        if ends {
            self.open = None;
        }
        Ok(match kind {
            Statement::Definition(_) if does_nothing => {
                Step::PassedOver { query, why: "it is one half of an ALTER TABLE in two", ends }
            }
            Statement::Definition(definition) => Step::Definition { query, definition, ends },
            Statement::PassedOver(why) => Step::PassedOver { query, why, ends },
            _ => Step::Nothing,
        })
    }

    fn xa<'e, 'a>(&mut self, step: Xa, xid: String, is_first: bool) -> Result<Step<'e, 'a>, Refusal> {
        let open = self.within("an XA statement")?;
        match step {
            // Of MySQL nothing else tells it.
            Xa::Start if is_first => {
                open.is_alone = false;
                Ok(Step::Prepares(xid))
            }
            Xa::End if !is_first => Ok(Step::Nothing),
            Xa::Commit | Xa::Rollback if is_first && open.is_alone => {
                self.open = None;
                Ok(Step::Completed { xid, is_commit: step == Xa::Commit })
            }
            _ => Err(Refusal::Unexpected("an XA statement where none can be".into())),
        }
    }
}

/// How the strings of a statement are written.
pub fn dialect_of(query: &Query<'_>) -> Dialect {
    let client = query.session.collations.and_then(|[client, ..]| character_set(client.into()));
    statement::dialect(query.session.sql_mode.unwrap_or(0), client)
}

/// Values that cannot be told.
fn refuse_columns(table: &Table) -> Result<(), Refusal> {
    for column in &table.columns {
        return Err(Refusal::NotBuilt(match column.kind {
            ColumnType::TypedArray => "rows of a table with MySQL's index on the elements of a JSON array",
            ColumnType::OldDecimal => "rows with DECIMAL of MySQL 4",
            _ => continue,
        }));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use teak_binlog::{Flags, Header, Place, Session};

    fn event(body: Body<'_>) -> Event<'_> {
        let header =
            Header { time: 0, code: 0, server_id: 1, length: 0, end_position: 0, flags: Flags::default() };
        Event { header, place: Place::default(), checksum: None, body }
    }

    fn query(text: &str) -> Body<'_> {
        Body::Query(Query {
            thread_id: 0,
            seconds: 0,
            error_code: 0,
            session: Session::default(),
            database: b"d",
            statement: text.as_bytes().into(),
            was_compressed: false,
        })
    }

    fn gtid(flags: u8, extra_flags: u8) -> Body<'static> {
        Body::MariaDbGtid(MariaDbTransaction {
            gtid: "0-1-7".parse().unwrap(),
            flags,
            commit_id: None,
            xid: None,
            extra_flags,
            extra_engines: None,
            alter_sequence: None,
            thread_id: None,
        })
    }

    fn mysql() -> Body<'static> {
        let set: teak_binlog::GtidSet = "5ccc1033-44a8-11ea-bd59-0242ac190003:7".parse().unwrap();
        let gtid = teak_binlog::MySqlGtid { source: set.sources[0].source, tag: String::new(), number: 7 };
        Body::MySqlGtid(teak_binlog::MySqlTransaction { gtid: Some(gtid), ..Default::default() })
    }

    /// A word for each step; the last one is an error if it is refused.
    fn steps(bodies: Vec<Body<'_>>) -> Vec<&'static str> {
        let mut steps = Steps::default();
        bodies
            .into_iter()
            .map(|body| match steps.of(&event(body)) {
                Ok(Step::Begin { prepares: None, .. }) => "begin",
                Ok(Step::Begin { prepares: Some(_), .. }) => "begin to prepare",
                Ok(Step::Prepares(_)) => "prepares",
                Ok(Step::Completed { is_commit: true, .. }) => "xa commit",
                Ok(Step::Completed { is_commit: false, .. }) => "xa rollback",
                Ok(Step::Definition { ends: true, .. }) => "definition, end",
                Ok(Step::Definition { ends: false, .. }) => "definition",
                Ok(Step::PassedOver { ends: true, .. }) => "passed over, end",
                Ok(Step::PassedOver { ends: false, .. }) => "passed over",
                Ok(Step::Savepoint(_)) => "savepoint",
                Ok(Step::Commit) => "commit",
                Ok(Step::EndOfRows) => "rows",
                Ok(Step::Nothing) => "nothing",
                Ok(_) => "other",
                Err(Refusal::Statement) => "binlog_format",
                Err(Refusal::NotBuilt(_)) => "not built",
                Err(_) => "refused",
            })
            .collect()
    }

    #[test]
    fn transactions_of_mariadb_end_with_xid_commit_or_their_only_statement() {
        let alone = MariaDbTransaction::STANDALONE;
        assert_eq!(steps(vec![gtid(0, 0), Body::EndOfRows, Body::Xid(1)]), ["begin", "rows", "commit"]);
        assert_eq!(steps(vec![gtid(0, 0), query("COMMIT")]), ["begin", "commit"]);
        assert_eq!(
            steps(vec![gtid(alone, 0), query("CREATE TABLE t (a int)")]),
            ["begin", "definition, end"]
        );
        // CREATE ... SELECT
        assert_eq!(
            steps(vec![gtid(0, 0), query("CREATE TABLE t (a int)"), Body::EndOfRows, Body::Xid(1)]),
            ["begin", "definition", "rows", "commit"]
        );
        assert_eq!(
            steps(vec![gtid(0, 0), query("SAVEPOINT `a`"), query("ROLLBACK TO `a`"), query("COMMIT")]),
            ["begin", "savepoint", "savepoint", "commit"]
        );
        // The server died before the first one ended.
        assert_eq!(steps(vec![gtid(0, 0), gtid(0, 0), Body::Xid(1)]), ["begin", "begin", "commit"]);
    }

    #[test]
    fn transactions_of_mysql_end_with_xid_if_they_have_a_begin() {
        assert_eq!(steps(vec![mysql(), query("BEGIN"), Body::Xid(1)]), ["begin", "nothing", "commit"]);
        assert_eq!(steps(vec![mysql(), query("DROP TABLE t")]), ["begin", "definition, end"]);
        assert_eq!(steps(vec![mysql(), query("BEGIN"), query("BEGIN")]), ["begin", "nothing", "refused"]);
    }

    #[test]
    fn what_is_prepared_ends_with_that_and_is_completed_alone() {
        // Of MySQL its start tells it.
        let prepared =
            vec![mysql(), query("XA START X'78',X'',1"), Body::EndOfRows, query("XA END X'78',X'',1")];
        assert_eq!(steps(prepared), ["begin", "prepares", "rows", "nothing"]);
        for (statement, wanted) in
            [("XA COMMIT X'78',X'',1", "xa commit"), ("XA ROLLBACK X'78',X'',1", "xa rollback")]
        {
            let alone = MariaDbTransaction::STANDALONE | MariaDbTransaction::COMPLETED_XA;
            assert_eq!(steps(vec![gtid(alone, 0), query(statement)]), ["begin", wanted]);
            assert_eq!(steps(vec![mysql(), query(statement)]), ["begin", wanted]);
        }
    }

    #[test]
    fn a_transaction_that_is_skipped_ends_where_it_would_end_whatever_is_in_it() {
        let alone = MariaDbTransaction::STANDALONE;
        let insert = || query("INSERT INTO t VALUES (1)");
        for (bodies, wanted) in [
            (vec![gtid(0, 0), insert(), Body::EndOfRows, Body::Xid(1)], vec!["", "", "commit"]),
            (vec![gtid(0, 0), insert(), query("ROLLBACK TO `a`"), query("COMMIT")], vec!["", "", "commit"]),
            (vec![gtid(alone, 0), query("CREATE TABLE t (a int)")], vec!["commit"]),
            (vec![gtid(alone, 0), Body::RowsQuery(b"x"), insert()], vec!["", "commit"]),
            (vec![gtid(0, 0), query("CREATE TABLE t (a int)"), Body::Xid(1)], vec!["", "commit"]),
            (vec![mysql(), query("BEGIN"), insert(), query("COMMIT")], vec!["", "", "commit"]),
            (vec![mysql(), query("DROP TABLE t")], vec!["commit"]),
            (vec![gtid(alone, 0), query("XA COMMIT X'78',X'',1")], vec!["completed"]),
            (vec![mysql(), query("XA START X'78',X'',1"), query("XA END X'78',X'',1")], vec!["", ""]),
        ] {
            let mut steps = Steps::default();
            assert!(matches!(steps.of(&event(bodies[0].clone())), Ok(Step::Begin { .. })));
            let found: Vec<&str> = bodies[1..]
                .iter()
                .map(|body| match steps.of_skipped(&event(body.clone())) {
                    Step::Nothing => "",
                    Step::Commit => "commit",
                    Step::Completed { .. } => "completed",
                    _ => "other",
                })
                .collect();
            assert_eq!(found, wanted, "{bodies:?}");
        }
    }

    #[test]
    fn of_an_alter_in_two_parts_only_the_commit_is_one() {
        let alone = MariaDbTransaction::STANDALONE;
        for (extra, wanted) in [(2, "passed over, end"), (4, "definition, end"), (8, "passed over, end")] {
            assert_eq!(steps(vec![gtid(alone, extra), query("ALTER TABLE t FORCE")]), ["begin", wanted]);
        }
    }

    #[test]
    fn what_cannot_be_applied_is_refused() {
        for (bodies, wanted) in [
            (vec![gtid(0, 0), query("INSERT INTO t VALUES (1)")], "binlog_format"),
            (vec![gtid(0, 0), query("ROLLBACK")], "not built"),
            (vec![gtid(0, 0), query("XA COMMIT X'78',X'',1")], "refused"),
            (vec![gtid(0, 0), query("XA END X'78',X'',1")], "refused"),
            (vec![query("XA COMMIT X'78',X'',1")], "refused"),
            (vec![Body::MySqlGtid(Default::default())], "refused"),
            (vec![Body::Xid(1)], "refused"),
            (vec![query("CREATE TABLE t (a int)")], "refused"),
            (vec![gtid(0, 0), Body::Xid(1), query("COMMIT")], "refused"),
        ] {
            assert_eq!(steps(bodies).pop(), Some(wanted));
        }
    }
}

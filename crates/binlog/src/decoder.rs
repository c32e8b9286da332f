//! From the bytes of events, in the order of the log, to what they say. It keeps what later events need of earlier
//! ones: the format, the tables of the statement, the parts of an event.

use super::bytes::Bytes;
use super::error::{Error, Place, Problem};
use super::events::control::{Heartbeat, Incident, LargeTransaction, Rotate};
use super::events::mariadb::{self, MariaDbGtidList, MariaDbTransaction, RowsPart, StartEncryption};
use super::events::mysql::{GtidSet, MySqlTransaction};
use super::events::payload::TransactionPayload;
use super::events::query::{self, ExecuteLoadQuery, Query};
use super::events::rows::{Form, Head, Rows};
use super::events::statement::{FileBlock, Intvar, Rand, UserVar};
use super::events::xa::XaPrepare;
use super::events::{Body, Event};
use super::format::{Checksum, Format};
use super::header::{EventType, Flags, Header, HEADER_BYTES};
use super::limits::Limits;
use super::parts::Parts;
use super::table::Table;
use std::collections::HashMap;
use std::sync::Arc;

/// Where in an event its flags are.
const FLAGS_AT: usize = 17;
/// Table ids of events that have no rows and only end a statement, in MySQL and in MariaDB.
const NO_TABLE: [u64; 3] = [0xff_ffff, 0xffff_ffff, 0xffff_ffff_ffff];

/// Decodes the events of one log, in their order.
#[derive(Debug)]
pub struct Decoder {
    limits: Limits,
    file: Option<Arc<str>>,
    format: Option<Arc<Format>>,
    /// What is behind events of a server before its first format description.
    checksum: Checksum,
    /// Whether a server sends the log: it decrypts what it sends.
    is_sent: bool,
    encrypted: Option<u32>,
    tables: HashMap<u64, Arc<Table>>,
    parts: Parts,
}

impl Decoder {
    /// Of a file.
    pub fn of_file(name: impl Into<Arc<str>>, limits: Limits) -> Decoder {
        let file = Some(name.into());
        Decoder {
            limits,
            file,
            format: None,
            checksum: Checksum::None,
            is_sent: false,
            encrypted: None,
            tables: HashMap::new(),
            parts: Parts::new(limits),
        }
    }

    /// Of what a server sends, which was told to put this checksum behind each event.
    pub fn of_server(checksum: Checksum, limits: Limits) -> Decoder {
        Decoder { checksum, is_sent: true, file: None, ..Decoder::of_file("", limits) }
    }

    /// The log that events are of from now on, for errors.
    pub fn set_file(&mut self, name: impl Into<Arc<str>>) {
        self.file = Some(name.into());
    }

    /// How the log is written, once that was decoded.
    pub fn format(&self) -> Option<&Arc<Format>> {
        self.format.as_ref()
    }

    /// What one event says: `bytes` are all of it, and it begins at `position`. After an error what follows means
    /// nothing, but where an event by itself is wrong the next one can be tried.
    pub fn decode<'a>(&mut self, position: u64, bytes: &'a [u8]) -> Result<Event<'a>, Error> {
        self.decode_with(position, bytes, true)
    }

    /// The same of an event of a transaction payload, which begins at `position`.
    pub fn decode_in_payload<'a>(&mut self, position: u64, bytes: &'a [u8]) -> Result<Event<'a>, Error> {
        self.decode_with(position, bytes, false)
    }

    fn decode_with<'a>(&mut self, position: u64, bytes: &'a [u8], in_log: bool) -> Result<Event<'a>, Error> {
        let place = Place { file: self.file.clone(), position, event: None };
        let mut left = Bytes(bytes);
        let header = Header::read(&mut left).map_err(|problem| Error::new(place.clone(), problem))?;
        if let Some(key_version) = self.encrypted {
            return Err(Error::new(place, Problem::Encrypted { key_version }));
        }
        let place = Place { event: header.kind().map(EventType::name), ..place };
        let wrong = |problem| Error::new(place.clone(), problem);
        if header.length as usize != bytes.len() {
            return Err(wrong(Problem::invalid(format!(
                "an event of {} bytes in {}",
                header.length,
                bytes.len()
            ))));
        }
        let checksum = self.checksum(&header, bytes, in_log).map_err(wrong)?;
        // A format description has room for a checksum in any case, and reads past it itself.
        let is_format = header.kind() == Some(EventType::FormatDescription);
        let checksum_bytes = if checksum.is_some() && !is_format { Checksum::Crc32.bytes() } else { 0 };
        let body = bytes.get(HEADER_BYTES..bytes.len().saturating_sub(checksum_bytes)).unwrap_or_default();
        let body = self.body(&header, body, in_log, &place).map_err(wrong)?;
        Ok(Event { header, place, checksum, body })
    }

    /// The checksum behind an event, if there is one; an error if it is not that of its bytes.
    fn checksum(&self, header: &Header, bytes: &[u8], in_log: bool) -> Result<Option<u32>, Problem> {
        let kind = match (header.kind(), &self.format) {
            _ if !in_log => Checksum::None,
            (Some(EventType::FormatDescription), _) => {
                self.own_checksum(&Format::read(&bytes[HEADER_BYTES..])?)
            }
            (Some(EventType::StartV3), _) => Checksum::None,
            (_, Some(format)) => format.checksum,
            (_, None) => self.checksum,
        };
        if kind == Checksum::None {
            return Ok(None);
        }
        let split = bytes.len().saturating_sub(Checksum::Crc32.bytes());
        let (event, stored) = bytes.split_at(split);
        let stored = Bytes(stored).u32("a checksum")?;
        if event.len() < HEADER_BYTES {
            return Err(Problem::invalid("an event without room for its checksum"));
        }
        let mut hasher = crc32fast::Hasher::new();
        // That a log is in use is no part of its checksum: it is taken back when the log is closed.
        let mut flags = header.flags.0;
        if header.kind() == Some(EventType::FormatDescription) {
            flags &= !Flags::IN_USE;
        }
        hasher.update(&event[..FLAGS_AT]);
        hasher.update(&flags.to_le_bytes());
        hasher.update(&event[FLAGS_AT + 2..]);
        let computed = hasher.finalize();
        if computed != stored {
            return Err(Problem::Checksum { stored, computed });
        }
        Ok(Some(stored))
    }

    /// What is behind a format description. A server that sends one changes it, and computes the checksum anew only if
    /// the others have one.
    fn own_checksum(&self, format: &Format) -> Checksum {
        match format.has_own_checksum && !self.is_sent {
            true => Checksum::Crc32,
            false => format.checksum,
        }
    }

    fn body<'a>(
        &mut self,
        header: &Header,
        body: &'a [u8],
        in_log: bool,
        place: &Place,
    ) -> Result<Body<'a>, Problem> {
        let Some(kind) = header.kind() else {
            if let 20..=22 = header.code {
                return Err(Problem::invalid(
                    "rows of MySQL 5.1 before its release, which cannot be decoded",
                ));
            }
            return match header.flags.has(Flags::IGNORABLE) {
                true => Ok(Body::Other(body)),
                false => Err(Problem::UnknownEvent(header.code)),
            };
        };
        if let EventType::FormatDescription | EventType::StartV3 = kind {
            return self.format_description(kind, body);
        }
        let format = match (&self.format, kind) {
            (Some(format), _) => format.clone(),
            (None, EventType::Rotate) => return Ok(Body::Rotate(Rotate::read(Bytes(body), 8)?)),
            (None, EventType::Heartbeat) => return Ok(Body::Heartbeat(Heartbeat::read(Bytes(body))?)),
            (None, _) => return Err(Problem::invalid("an event before any format description")),
        };
        // Headers may grow, behind what is known of them.
        let longer = if in_log { format.header_bytes - HEADER_BYTES } else { 0 };
        let mut bytes = Bytes(body);
        bytes.take(longer, "the header of an event")?;
        if let Some(form) = Form::of(kind) {
            self.parts.expect_none()?;
            return self.rows(&format, kind, form, bytes, place);
        }
        if kind == EventType::PartialRowData {
            return self.rows_part(&format, bytes, place);
        }
        let body = read_body(&format, kind, header, bytes, &self.limits)?;
        match &body {
            Body::TableMap(table) => self.add_table(table)?,
            Body::StartEncryption(start) if !self.is_sent => self.encrypted = Some(start.key_version),
            Body::MariaDbGtid(_) | Body::MySqlGtid(_) | Body::Xid(_) | Body::XaPrepare(_) => {
                self.tables.clear()
            }
            _ => (),
        }
        if !matches!(body, Body::Heartbeat(_)) {
            self.parts.expect_none()?;
        }
        Ok(body)
    }

    fn format_description(&mut self, kind: EventType, body: &[u8]) -> Result<Body<'static>, Problem> {
        let format = match kind {
            EventType::StartV3 => Format::read_v3(body)?,
            _ => Format::read(body)?,
        };
        let format = Arc::new(format);
        self.format = Some(format.clone());
        self.tables.clear();
        self.parts = Parts::new(self.limits);
        Ok(Body::FormatDescription(format))
    }

    fn add_table(&mut self, table: &Arc<Table>) -> Result<(), Problem> {
        self.tables.insert(table.id, table.clone());
        match self.tables.len() {
            many if many > self.limits.tables => {
                let limit = self.limits.tables as u64;
                Err(Problem::TooLarge { what: "the tables of a statement", bytes: many as u64, limit })
            }
            _ => Ok(()),
        }
    }

    fn rows<'a>(
        &mut self,
        format: &Format,
        kind: EventType,
        form: Form,
        mut bytes: Bytes<'a>,
        place: &Place,
    ) -> Result<Body<'a>, Problem> {
        let head = Head::read(&mut bytes, format.fixed_bytes_of(kind)?, form.change)?;
        let (table_id, ends) = (head.table_id, head.flags & Rows::STATEMENT_END != 0);
        let table = self.tables.get(&table_id).cloned();
        if ends {
            self.tables.clear();
        }
        match table {
            Some(table) => Ok(Body::Rows(head.rows(bytes, form, table, place.clone(), self.limits)?)),
            None if ends && NO_TABLE.contains(&table_id) => Ok(Body::EndOfRows),
            None => Err(Problem::NoTable(table_id)),
        }
    }

    fn rows_part<'a>(
        &mut self,
        format: &Format,
        bytes: Bytes<'a>,
        place: &Place,
    ) -> Result<Body<'a>, Problem> {
        let part = RowsPart::read(bytes)?;
        let Some(whole) = self.parts.add(&part)? else { return Ok(Body::RowsPart(part, None)) };
        let mut bytes = Bytes(&whole);
        let header = Header::read(&mut bytes)?;
        let kind = header.kind();
        let form = kind.and_then(Form::of).zip(kind);
        let (form, kind) = form.ok_or_else(|| {
            Problem::invalid(format!("parts of an event of type {}, which has no rows", header.code))
        })?;
        // The whole may have a checksum of its own, or room for one.
        let more = (whole.len() as u64).checked_sub(header.length.into());
        match more {
            Some(0) => (),
            Some(4) => bytes.0 = &bytes.0[..bytes.len() - 4],
            _ => {
                return Err(Problem::invalid(format!(
                    "parts of {} bytes of an event of {}",
                    whole.len(),
                    header.length
                )))
            }
        }
        match self.rows(format, kind, form, bytes, place)? {
            Body::Rows(rows) => Ok(Body::RowsPart(part, Some(rows.into_owned()))),
            _ => Err(Problem::invalid("parts of an event that has no rows")),
        }
    }
}

/// What an event says whose meaning does not depend on others.
fn read_body<'a>(
    format: &Format,
    kind: EventType,
    header: &Header,
    mut bytes: Bytes<'a>,
    limits: &Limits,
) -> Result<Body<'a>, Problem> {
    use EventType as Type;
    let fixed = || format.fixed_bytes_of(kind);
    Ok(match kind {
        Type::Query => Body::Query(Query::read(bytes, fixed()?)?),
        Type::QueryCompressed => Body::Query(Query::read_compressed(bytes, fixed()?, limits)?),
        Type::Stop => Body::Stop,
        Type::Rotate => Body::Rotate(Rotate::read(bytes, fixed()?)?),
        Type::Incident => Body::Incident(Incident::read(bytes, fixed()?)?),
        Type::Heartbeat => Body::Heartbeat(Heartbeat::read(bytes)?),
        Type::HeartbeatV2 => Body::Heartbeat(Heartbeat::read_v2(bytes)?),
        Type::Intvar => Body::Intvar(Intvar::read(bytes)?),
        Type::Rand => Body::Rand(Rand::read(bytes)?),
        Type::UserVar => Body::UserVar(UserVar::read(bytes)?),
        Type::BeginLoadQuery => Body::BeginLoadQuery(FileBlock::read(bytes, fixed()?)?),
        Type::AppendBlock => Body::AppendBlock(FileBlock::read(bytes, fixed()?)?),
        Type::DeleteFile => Body::DeleteFile(FileBlock::read(bytes, fixed()?)?),
        Type::ExecuteLoadQuery => Body::ExecuteLoadQuery(ExecuteLoadQuery::read(bytes, fixed()?)?),
        Type::Load | Type::NewLoad | Type::CreateFile | Type::ExecuteLoad => Body::OldLoad(bytes.rest()),
        Type::Xid => {
            bytes.take(fixed()?, "an xid event")?;
            Body::Xid(bytes.u64("an xid event")?)
        }
        Type::XaPrepare => {
            bytes.take(fixed()?, "an xa_prepare event")?;
            Body::XaPrepare(XaPrepare::read(bytes)?)
        }
        Type::TableMap => Body::TableMap(Arc::new(Table::read(bytes, fixed()?, format.family)?)),
        Type::RowsQuery => Body::RowsQuery(query::rows_query(bytes)?),
        Type::AnnotateRows => Body::RowsQuery(bytes.rest()),
        Type::Gtid => Body::MySqlGtid(MySqlTransaction::read(bytes, false)?),
        Type::AnonymousGtid => Body::MySqlGtid(MySqlTransaction::read(bytes, true)?),
        Type::GtidTagged => Body::MySqlGtid(MySqlTransaction::read_tagged(bytes)?),
        Type::PreviousGtids => Body::PreviousGtids(GtidSet::read(bytes)?),
        Type::TransactionPayload => Body::TransactionPayload(TransactionPayload::read(bytes)?),
        Type::LargeTransactionHeader => Body::LargeTransaction(LargeTransaction::read(bytes)?),
        Type::BinlogCheckpoint => Body::BinlogCheckpoint(mariadb::checkpoint(bytes)?),
        Type::MariaDbGtid => Body::MariaDbGtid(MariaDbTransaction::read(bytes, header.server_id)?),
        Type::MariaDbGtidList => Body::MariaDbGtidList(MariaDbGtidList::read(bytes)?),
        Type::StartEncryption => Body::StartEncryption(StartEncryption::read(bytes)?),
        Type::Ignorable | Type::Slave | Type::TransactionContext | Type::ViewChange => {
            Body::Other(bytes.rest())
        }
        // Those that the decoder itself reads.
        _ => return Err(Problem::UnknownEvent(header.code)),
    })
}

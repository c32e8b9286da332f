//! Names of distributed transactions, as servers and Spider have them.

/// A name: of which kind it is, of the transaction, and of the branch.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Xid {
    format: i64,
    transaction: Vec<u8>,
    branch: Vec<u8>,
}

/// What Spider gives as the kind, and a statement that names none.
const FORMAT: i64 = 1;
/// Bytes of the column that has a name, with zeros behind it.
const DATA_BYTES: usize = 128;
/// Digits of the statement's number, behind those of the connection's (`spider_internal_xa_id_type=1`).
const STATEMENT_DIGITS: usize = 16;

impl Xid {
    /// Of what `XA RECOVER` and `mysql.spider_xa` have: one behind the other, perhaps with zeros behind both; None:
    /// they are shorter than that says.
    pub fn new(format: i64, transaction: usize, branch: usize, bytes: &[u8]) -> Option<Xid> {
        let of_branch = bytes.get(transaction..transaction.checked_add(branch)?)?;
        Some(Xid { format, transaction: bytes[..transaction].to_vec(), branch: of_branch.to_vec() })
    }

    /// For a statement.
    pub fn literal(&self) -> String {
        let (transaction, branch) =
            (teak_sql::quoting::hex(&self.transaction), teak_sql::quoting::hex(&self.branch));
        format!("X'{transaction}',X'{branch}',{}", self.format)
    }

    /// As `information_schema.TEAK_TRX` has it, and for people: texts where they are texts.
    pub fn text(&self) -> String {
        let is_plain = |byte: &u8| byte.is_ascii_graphic() && !matches!(byte, b'\'' | b'\\');
        if !self.transaction.iter().chain(&self.branch).all(is_plain) {
            return self.literal();
        }
        let [transaction, branch] =
            [&self.transaction, &self.branch].map(|part| String::from_utf8_lossy(part));
        match self.format {
            FORMAT => format!("'{transaction}','{branch}'"),
            format => format!("'{transaction}','{branch}',{format}"),
        }
    }

    /// A condition on the columns that `mysql.spider_xa` and `spider_xa_member` have of it, for their keys.
    pub fn condition(&self) -> String {
        let mut bytes = [&self.transaction[..], &self.branch[..]].concat();
        bytes.resize(bytes.len().max(DATA_BYTES), 0);
        let (length, data) = (self.transaction.len(), teak_sql::quoting::hex(&bytes));
        format!("data = X'{data}' AND format_id = {} AND gtrid_length = {length}", self.format)
    }

    /// The connection of the head with this number that made it for a transaction of its own; None: somebody else did,
    /// or may have.
    pub fn maker(&self, head: u64) -> Option<Maker> {
        let is_hex = |byte: &u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
        let is_own = self.format == FORMAT && self.branch == format!("{head:x}").as_bytes();
        if !is_own || !self.transaction.iter().all(is_hex) {
            return None;
        }
        let digits = std::str::from_utf8(&self.transaction).ok()?;
        let (connection, is_certain) = match digits.len().checked_sub(STATEMENT_DIGITS) {
            None | Some(0) => (digits, false),
            Some(length) => (&digits[..length], true),
        };
        Some(Maker { connection: u64::from_str_radix(connection, 16).ok()?, is_certain })
    }
}

/// Who made a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Maker {
    /// The connection's number.
    pub connection: u64,
    /// A client would hardly have chosen such a name.
    pub is_certain: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_servers_say() {
        let xid = Xid::new(1, 18, 1, b"3b00000000000023e31\0\0\0").unwrap();
        assert_eq!(xid.text(), "'3b00000000000023e3','1'");
        assert_eq!(xid.literal(), "X'336230303030303030303030303032336533',X'31',1");
        let zeros = "0".repeat(2 * (128 - 19));
        let data = format!(
            "data = X'33623030303030303030303030303233653331{zeros}' AND format_id = 1 AND gtrid_length = 18"
        );
        assert_eq!(xid.condition(), data);
        assert_eq!(Xid::new(7, 1, 0, b"a").unwrap().text(), "'a','',7");
        assert_eq!(Xid::new(1, 2, 1, b"a'b").unwrap().text(), "X'6127',X'62',1");
        assert_eq!(Xid::new(1, 3, 1, b"abc"), None);
        assert_eq!(Xid::new(1, usize::MAX, 1, b"abc"), None);
    }

    #[test]
    fn a_name_of_the_head_says_which_connection_made_it() {
        let maker = |transaction: &str, branch: &str, head| {
            let bytes = format!("{transaction}{branch}");
            Xid::new(1, transaction.len(), branch.len(), bytes.as_bytes()).unwrap().maker(head)
        };
        assert_eq!(maker("3b00000000000023e3", "1", 1), Some(Maker { connection: 0x3b, is_certain: true }));
        assert_eq!(maker("3b", "a", 10), Some(Maker { connection: 0x3b, is_certain: false }));
        assert_eq!(maker("3b00000000000023e3", "2", 1), None);
        assert_eq!(maker("order", "1", 1), None);
        assert_eq!(maker("", "1", 1), None);
    }
}

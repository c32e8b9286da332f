//! XA transactions.

use crate::bytes::Bytes;
use crate::error::Problem;
use std::fmt;

/// The longest of either part of a name.
const LONGEST: u64 = 64;

/// The name of an XA transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Xid {
    /// The third part, a number.
    pub format: u32,
    global_bytes: u8,
    branch_bytes: u8,
    data: [u8; 2 * LONGEST as usize],
}

impl Xid {
    /// The first part.
    pub fn global(&self) -> &[u8] {
        &self.data[..self.global_bytes.into()]
    }

    /// The second part.
    pub fn branch(&self) -> &[u8] {
        &self.data[self.global_bytes.into()..][..self.branch_bytes.into()]
    }

    fn read(bytes: &mut Bytes<'_>, format: u32, global: u64, branch: u64) -> Result<Xid, Problem> {
        if global > LONGEST || branch > LONGEST {
            return Err(Problem::invalid(format!("an XID of {global} and {branch} bytes")));
        }
        let taken = bytes.take_long(global + branch, "an XID")?;
        let mut data = [0; 2 * LONGEST as usize];
        data[..taken.len()].copy_from_slice(taken);
        Ok(Xid { format, global_bytes: global as u8, branch_bytes: branch as u8, data })
    }

    /// As in MariaDB's GTID events: lengths of one byte.
    pub(crate) fn read_short(bytes: &mut Bytes<'_>) -> Result<Xid, Problem> {
        let what = "an XID";
        let (format, global, branch) = (bytes.u32(what)?, bytes.u8(what)?, bytes.u8(what)?);
        Xid::read(bytes, format, global.into(), branch.into())
    }
}

/// As `XA COMMIT` takes it.
impl fmt::Display for Xid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in [self.global(), self.branch()] {
            write!(f, "X'")?;
            part.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
            write!(f, "',")?;
        }
        write!(f, "{}", self.format)
    }
}

/// An XA transaction is prepared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct XaPrepare {
    /// Whether it is committed at once.
    pub one_phase: bool,
    /// Its name.
    pub xid: Xid,
}

impl XaPrepare {
    pub(crate) fn read(mut bytes: Bytes<'_>) -> Result<XaPrepare, Problem> {
        let what = "an xa_prepare event";
        let (one_phase, format) = (bytes.u8(what)? != 0, bytes.u32(what)?);
        let (global, branch) = (bytes.u32(what)?, bytes.u32(what)?);
        Ok(XaPrepare { one_phase, xid: Xid::read(&mut bytes, format, global.into(), branch.into())? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_parts_of_a_name_are_bounded() {
        let mut bytes = vec![1, 9, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, b'a', b'b', b'c'];
        let prepare = XaPrepare::read(Bytes(&bytes)).unwrap();
        assert_eq!((prepare.one_phase, prepare.xid.to_string()), (true, "X'6162',X'63',9".into()));
        assert_eq!((prepare.xid.global(), prepare.xid.branch()), (&b"ab"[..], &b"c"[..]));
        assert!(XaPrepare::read(Bytes(&bytes[..15])).is_err());
        for at in 5..13 {
            let kept = std::mem::replace(&mut bytes[at], 65);
            assert!(XaPrepare::read(Bytes(&bytes)).is_err(), "{at}");
            bytes[at] = kept;
        }
    }
}

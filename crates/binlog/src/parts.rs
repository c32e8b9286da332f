//! Events with rows that MariaDB 12.3 cuts into parts: put together again.

use super::error::Problem;
use super::events::mariadb::RowsPart;
use super::limits::Limits;

/// The parts that have come.
#[derive(Debug)]
pub struct Parts {
    limits: Limits,
    bytes: Vec<u8>,
    whole: usize,
    /// How many there will be, and how many have come; 0 between two events.
    parts: u32,
    part: u32,
}

impl Parts {
    /// None yet.
    pub fn new(limits: Limits) -> Parts {
        Parts { limits, bytes: Vec::new(), whole: 0, parts: 0, part: 0 }
    }

    /// The next part; with the last one the whole event.
    pub fn add(&mut self, part: &RowsPart<'_>) -> Result<Option<Vec<u8>>, Problem> {
        let is_next = part.part == self.part + 1 && (self.part == 0 || part.parts == self.parts);
        if !is_next {
            let (came, parts) = (self.part, self.parts);
            return Err(Problem::invalid(format!(
                "part {} of {} of an event, after part {came} of {parts}",
                part.part, part.parts
            )));
        }
        if let Some(whole) = part.whole_bytes {
            self.whole = self.limits.bounded("an event in parts", whole)?;
            self.parts = part.parts;
        }
        if self.bytes.len() + part.bytes.len() > self.whole {
            return Err(Problem::invalid(format!(
                "parts of more than the {} bytes of their event",
                self.whole
            )));
        }
        self.bytes.extend_from_slice(part.bytes);
        self.part = part.part;
        if self.part < self.parts {
            return Ok(None);
        }
        (self.parts, self.part) = (0, 0);
        let bytes = std::mem::take(&mut self.bytes);
        match bytes.len() {
            length if length == self.whole => Ok(Some(bytes)),
            length => Err(Problem::invalid(format!("parts of {length} bytes of an event of {}", self.whole))),
        }
    }

    /// Fails if another event comes between parts.
    pub fn expect_none(&self) -> Result<(), Problem> {
        match self.part {
            0 => Ok(()),
            part => {
                Err(Problem::invalid(format!("another event after part {part} of {} of one", self.parts)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_make_the_whole_in_their_order_only() {
        let part = |part, whole_bytes, bytes| RowsPart { parts: 3, part, whole_bytes, bytes };
        let (first, second, third) =
            (part(1, Some(5), b"ab"), part(2, None, &b"c"[..]), part(3, None, &b"de"[..]));
        let mut parts = Parts::new(Limits::default());
        for _ in 0..2 {
            assert_eq!(parts.add(&first), Ok(None));
            assert!(parts.expect_none().is_err());
            assert_eq!(parts.add(&second), Ok(None));
            assert_eq!(parts.add(&third), Ok(Some(b"abcde".to_vec())));
            assert_eq!(parts.expect_none(), Ok(()));
        }
        for wrong in [
            &[second][..],
            &[first, first],
            &[first, third],
            &[part(1, Some(1), b"ab")],
            &[part(1, Some(1 << 40), b"")],
        ] {
            let mut parts = Parts::new(Limits::default());
            assert!(wrong.iter().map(|part| parts.add(part)).any(|added| added.is_err()), "{wrong:?}");
        }
        let mut parts = Parts::new(Limits::default());
        parts.add(&part(1, Some(6), b"ab")).unwrap();
        parts.add(&second).unwrap();
        assert!(parts.add(&third).is_err());
    }
}

//! Rows as a server has sent them, which two servers send alike if the values are: so they are compared byte by byte,
//! and go on to another server without being taken apart more than that needs.

use teak_client::Error;

/// Rows of one result.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct SentRows {
    bytes: Vec<u8>,
    /// Where in these each row ends.
    ends: Vec<usize>,
}

impl SentRows {
    /// One more.
    pub fn push(&mut self, row: &[u8]) {
        self.bytes.extend_from_slice(row);
        self.ends.push(self.bytes.len());
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// How long they are together.
    pub fn bytes(&self) -> usize {
        self.bytes.len()
    }

    /// One of them, if there are so many.
    pub fn get(&self, at: usize) -> Option<&[u8]> {
        let from = if at == 0 { 0 } else { *self.ends.get(at - 1)? };
        self.bytes.get(from..*self.ends.get(at)?)
    }

    /// All of them from one on.
    fn from(&self, first: usize) -> impl Iterator<Item = &[u8]> {
        (first..self.len()).filter_map(|at| self.get(at))
    }

    /// Begins to compare other rows with these.
    pub fn comparison(&self) -> Comparison<'_> {
        Comparison { wanted: self, alike: 0, others: SentRows::default() }
    }
}

/// Whether other rows are the same, in whatever order.
pub struct Comparison<'r> {
    wanted: &'r SentRows,
    /// So many of the first ones were.
    alike: usize,
    /// What came behind these.
    others: SentRows,
}

impl Comparison<'_> {
    /// The next one of the other rows.
    pub fn see(&mut self, row: &[u8]) -> Result<(), Error> {
        match self.others.len() == 0 && self.wanted.get(self.alike) == Some(row) {
            true => self.alike += 1,
            false => self.others.push(row),
        }
        Ok(())
    }

    /// Whether all of them were the same; if not, how many they were.
    pub fn end(self) -> Result<(), usize> {
        let mut left: Vec<&[u8]> = self.wanted.from(self.alike).collect();
        let mut found: Vec<&[u8]> = self.others.from(0).collect();
        left.sort_unstable();
        found.sort_unstable();
        match left == found {
            true => Ok(()),
            false => Err(self.alike + found.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(all: &[&str]) -> SentRows {
        let mut rows = SentRows::default();
        all.iter().for_each(|row| rows.push(row.as_bytes()));
        rows
    }

    #[test]
    fn rows_are_the_same_in_whatever_order_but_as_often() {
        let wanted = rows(&["a", "b", "", "b", "c"]);
        for (others, found) in [
            (&["a", "b", "", "b", "c"][..], Ok(())),
            (&["a", "c", "b", "b", ""], Ok(())),
            (&["a", "b", "", "b"], Err(4)),
            (&["a", "b", "", "b", "c", "c"], Err(6)),
            (&["a", "b", "", "c", "c"], Err(5)),
            (&["ab", "", "", "b", "c"], Err(5)),
            (&[], Err(0)),
        ] {
            let mut comparison = wanted.comparison();
            others.iter().for_each(|row| comparison.see(row.as_bytes()).unwrap());
            assert_eq!(comparison.end(), found, "{others:?}");
        }
    }
}

//! What is stored: the histories of pages, record after record, the same for the same seed on every machine and with
//! any number of threads that make them.
//!
//! ```text
//! record        0          1        ...   histories-1   histories    ...
//! page, rev.    0, 1       1, 1           ..., 1        0, 2
//! made by       0          1        ...   page modulo the makers
//! ```
//!
//! Unrelated texts are the first revisions of as many pages.

use super::deflate::Deflate;
use super::page::Page;
use super::words::Words;
use crate::Error;
use std::sync::mpsc::{sync_channel, SyncSender};
use twox_hash::XxHash3_64;

/// Records that a maker may be ahead.
const AHEAD: usize = 64;

/// How a text is stored.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Raw deflate, as MediaWiki does
    Gzip,
    /// The text itself
    Plain,
}

/// What the records are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corpus {
    pub seed: u64,
    /// At least 1.
    pub histories: u64,
    /// Of each page; at least 1.
    pub revisions: u64,
    pub unrelated: bool,
    pub form: Form,
}

/// One record.
pub struct Record {
    pub value: Vec<u8>,
    /// Bytes of the text before compression.
    pub text_bytes: u64,
    pub hash: u64,
}

/// What tells values apart.
pub fn hash(value: &[u8]) -> u64 {
    XxHash3_64::oneshot(value)
}

impl Corpus {
    /// How many there are.
    pub fn records(&self) -> u64 {
        self.histories * self.revisions
    }

    /// Page of a record, and its revision from 0.
    fn place(&self, record: u64) -> (u64, u64) {
        match self.unrelated {
            true => (record, 0),
            false => (record % self.histories, record / self.histories),
        }
    }

    /// The table of a record, of so many. The revisions of a page go to all tables in turn, as a wiki spreads its new
    /// texts over its clusters.
    pub fn table(&self, record: u64, tables: u64) -> u64 {
        let (page, revision) = self.place(record);
        (page + revision) % tables
    }

    /// In one line, for the comment of a table: tables with the same line have the same records.
    pub fn line(&self) -> String {
        let (histories, revisions, seed) = (self.histories, self.revisions, self.seed);
        let unrelated = if self.unrelated { "unrelated" } else { "histories" };
        format!("corpus 1, seed {seed}, {unrelated} {histories} x {revisions}, {:?}", self.form)
            .to_lowercase()
    }

    /// Gives all records to `take`, in their order, while `makers` threads make them; returns what makes those that
    /// come after them.
    pub fn generate(
        &self,
        makers: u64,
        mut take: impl FnMut(u64, Record) -> Result<(), Error>,
    ) -> Result<Later, Error> {
        let words = Words::new(self.seed);
        let makers = makers.max(1);
        let kept = std::thread::scope(|scope| -> Result<Vec<Option<Page>>, Error> {
            let (words, corpus) = (&words, *self);
            let (threads, records): (Vec<_>, Vec<_>) = (0..makers)
                .map(|maker| {
                    let (sender, receiver) = sync_channel(AHEAD);
                    (scope.spawn(move || corpus.make(words, maker, makers, &sender)), receiver)
                })
                .unzip();
            let mut taken = Ok(());
            for number in 0..self.records() {
                let maker = (self.place(number).0 % makers) as usize;
                taken = match records[maker].recv() {
                    Ok(record) => take(number, record),
                    Err(_) => Err(Error::Panic("a maker of texts")),
                };
                if taken.is_err() {
                    break;
                }
            }
            // Makers end when nobody takes what they make.
            drop(records);
            let mut kept = Vec::new();
            if !self.unrelated {
                kept.resize_with(self.histories as usize, || None);
            }
            for thread in threads {
                for (number, page) in thread.join().map_err(|_| Error::Panic("a maker of texts"))? {
                    kept[number as usize] = Some(page);
                }
            }
            taken.map(|()| kept)
        })?;
        let pages = kept.into_iter().flatten().collect();
        Ok(Later { corpus: *self, words, pages, next: self.records(), writer: Writer::new(self.form) })
    }

    /// The records of the pages of one maker; returns the pages as they are then.
    fn make(&self, words: &Words, maker: u64, makers: u64, to: &SyncSender<Record>) -> Vec<(u64, Page)> {
        let mut writer = Writer::new(self.form);
        let step = makers as usize;
        if self.unrelated {
            let numbers = (maker..self.records()).step_by(step);
            let mut records = numbers.map(|number| writer.record(&Page::new(words, self.seed, number)));
            let _ = records.try_for_each(|record| to.send(record));
            return Vec::new();
        }
        let mut pages: Vec<(u64, Page)> = Vec::new();
        for revision in 0..self.revisions {
            for (index, number) in (maker..self.histories).step_by(step).enumerate() {
                if revision == 0 {
                    pages.push((number, Page::new(words, self.seed, number)));
                } else {
                    pages[index].1.edit(words);
                }
                if to.send(writer.record(&pages[index].1)).is_err() {
                    return pages;
                }
            }
        }
        pages
    }
}

/// Puts texts into their form.
struct Writer {
    deflate: Option<Deflate>,
}

impl Writer {
    fn new(form: Form) -> Writer {
        Writer { deflate: (form == Form::Gzip).then(Deflate::new) }
    }

    fn record(&mut self, page: &Page) -> Record {
        let text = page.text().as_bytes();
        let value = match &mut self.deflate {
            Some(deflate) => deflate.compress(text),
            None => text.to_vec(),
        };
        Record { hash: hash(&value), text_bytes: text.len() as u64, value }
    }
}

/// Makes the records that come after those of the corpus, one after the other.
pub struct Later {
    corpus: Corpus,
    words: Words,
    pages: Vec<Page>,
    next: u64,
    writer: Writer,
}

impl Later {
    /// The next record, with its table of so many.
    pub fn next_of(&mut self, tables: u64) -> (u64, Record) {
        let (number, record) = self.next();
        (self.corpus.table(number, tables), record)
    }

    /// The next record and its number.
    fn next(&mut self) -> (u64, Record) {
        let number = self.next;
        self.next += 1;
        let (page, _) = self.corpus.place(number);
        let record = match self.corpus.unrelated {
            true => self.writer.record(&Page::new(&self.words, self.corpus.seed, page)),
            false => {
                let page = &mut self.pages[page as usize];
                page.edit(&self.words);
                self.writer.record(page)
            }
        };
        (number, record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Corpus = Corpus { seed: 1, histories: 7, revisions: 3, unrelated: false, form: Form::Gzip };

    fn hashes(corpus: Corpus, makers: u64) -> (Vec<u64>, Later) {
        let mut found = Vec::new();
        let later = corpus
            .generate(makers, |number, record| {
                assert_eq!(number, found.len() as u64);
                assert_eq!(record.hash, hash(&record.value));
                found.push(record.hash);
                Ok(())
            })
            .unwrap();
        (found, later)
    }

    #[test]
    fn records_depend_on_the_seed_alone() {
        for unrelated in [false, true] {
            for form in [Form::Gzip, Form::Plain] {
                let corpus = Corpus { unrelated, form, ..SMALL };
                let (one, mut later) = hashes(corpus, 1);
                assert_eq!(one.len(), 21);
                let (three, mut same) = hashes(corpus, 3);
                assert_eq!(one, three);
                for _ in 0..10 {
                    let ((number, record), (again, equal)) = (later.next(), same.next());
                    assert_eq!((number, record.hash), (again, equal.hash));
                }
                assert_ne!(one, hashes(Corpus { seed: 2, ..corpus }, 1).0);
            }
        }
    }

    #[test]
    fn what_comes_later_is_what_a_longer_corpus_has() {
        let (long, _) = hashes(Corpus { revisions: 5, ..SMALL }, 2);
        let (short, mut later) = hashes(SMALL, 2);
        let rest: Vec<u64> = (0..14).map(|_| later.next().1.hash).collect();
        assert_eq!(long, [short, rest].concat());
    }

    #[test]
    fn sizes_are_those_of_the_original() {
        let corpus = Corpus { histories: 800, revisions: 1, ..SMALL };
        let (mut text, mut stored) = (0, 0);
        corpus
            .generate(2, |_, record| {
                text += record.text_bytes;
                stored += record.value.len() as u64;
                Ok(())
            })
            .unwrap();
        let (text, stored) = (text as f64 / 800.0, stored as f64 / 800.0);
        assert!((text / 35_000.0 - 1.0).abs() < 0.1, "{text} bytes in the mean");
        assert!((stored / 10_400.0 - 1.0).abs() < 0.1, "{stored} bytes in the mean");
    }

    #[test]
    fn the_revisions_of_a_page_go_to_all_tables() {
        for page in 0..7 {
            let tables: Vec<u64> = (0..3).map(|revision| SMALL.table(page + revision * 7, 3)).collect();
            assert_eq!(tables.iter().sum::<u64>(), 3, "{tables:?}");
        }
        assert_eq!(SMALL.table(5, 1), 0);
    }

    #[test]
    fn an_error_of_the_taker_ends_the_makers() {
        let failing = SMALL.generate(3, |number, _| match number {
            4 => Err(Error::Failed("enough")),
            _ => Ok(()),
        });
        assert!(matches!(failing, Err(Error::Failed("enough"))));
    }
}

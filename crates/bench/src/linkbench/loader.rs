//! Loading the graph: threads take chunks of ids, and send nodes, links and counts in statements of many rows.
//!
//! What is loaded depends on the seed and the number of nodes only, not on the number of threads.

use super::graph::{Graph, FIRST_TYPE, NODE_TYPE, TYPES};
use super::payload::{self, Payload};
use super::session::{is_conflict, literal};
use crate::random::Random;
use crate::result::Load;
use crate::Error;
use std::fmt::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use teak_client::{Connection, Settings};

/// Ids that one thread takes at once.
const CHUNK: u64 = 2048;
/// Rows of a statement.
const ROWS: usize = 1024;
/// A statement is sent when it is longer than this, whatever its rows.
const STATEMENT_BYTES: usize = 1 << 20;
/// LinkBench's ten loaders have a motif each; here the chunk's number decides which is used.
const MOTIFS: u64 = 10;
/// Streams of random numbers for motifs; chunks have those below.
const MOTIF_STREAMS: u64 = 1 << 31;
/// The newest link that is loaded, in milliseconds: the beginning of 2015. The oldest is 50 days older.
const NEWEST: u64 = 1_420_070_400_000;

/// What the threads share.
struct Work<'a> {
    graph: &'a Graph,
    seed: u64,
    next_chunk: AtomicU64,
    nodes: AtomicU64,
    links: AtomicU64,
    counts: AtomicU64,
    failed: AtomicBool,
}

/// Fills the empty tables. `progress` gets the share that is loaded and the links so far, about once a second.
pub fn load(
    settings: &Settings,
    graph: &Graph,
    seed: u64,
    loaders: u64,
    progress: impl Fn(f64, u64),
) -> Result<Load, Error> {
    let zero = || AtomicU64::new(0);
    let work = Work {
        graph,
        seed,
        next_chunk: zero(),
        nodes: zero(),
        links: zero(),
        counts: zero(),
        failed: AtomicBool::new(false),
    };
    let began = Instant::now();
    std::thread::scope(|scope| -> Result<(), Error> {
        let threads: Vec<_> = (0..loaders).map(|_| scope.spawn(|| work.run(settings))).collect();
        let mut shown = Instant::now();
        while threads.iter().any(|thread| !thread.is_finished()) {
            std::thread::sleep(Duration::from_millis(20));
            if shown.elapsed() >= Duration::from_secs(1) {
                shown = Instant::now();
                let nodes = work.nodes.load(Ordering::SeqCst) as f64;
                progress(nodes / graph.nodes() as f64, work.links.load(Ordering::SeqCst));
            }
        }
        for thread in threads {
            thread.join().map_err(|_| Error::Panic("a loader"))??;
        }
        Ok(())
    })?;
    Ok(Load {
        seconds: began.elapsed().as_secs_f64(),
        loaders,
        nodes: work.nodes.into_inner(),
        links: work.links.into_inner(),
        counts: work.counts.into_inner(),
    })
}

impl Work<'_> {
    fn run(&self, settings: &Settings) -> Result<(), Error> {
        let result = self.load_chunks(settings);
        if result.is_err() {
            self.failed.store(true, Ordering::SeqCst);
        }
        result
    }

    fn load_chunks(&self, settings: &Settings) -> Result<(), Error> {
        let mut connection = settings.connect()?;
        let motifs = |shape, part| -> Vec<Payload> {
            (0..MOTIFS).map(|set| Payload::new(shape, self.seed, MOTIF_STREAMS + set * 2 + part)).collect()
        };
        let (link_data, node_data) = (motifs(payload::LINK, 0), motifs(payload::NODE, 1));
        while !self.failed.load(Ordering::SeqCst) {
            let chunk = self.next_chunk.fetch_add(1, Ordering::SeqCst);
            let first = 1 + chunk * CHUNK;
            if first > self.graph.nodes() {
                break;
            }
            let ids = first..=(first + CHUNK - 1).min(self.graph.nodes());
            let mut random = Random::new(self.seed, chunk);
            let set = (chunk % MOTIFS) as usize;
            self.load_nodes(&mut connection, ids.clone(), &node_data[set], &mut random)?;
            self.load_links(&mut connection, ids, &link_data[set], &mut random)?;
        }
        Ok(())
    }

    fn load_nodes(
        &self,
        connection: &mut Connection,
        ids: std::ops::RangeInclusive<u64>,
        contents: &Payload,
        random: &mut Random,
    ) -> Result<(), Error> {
        let mut nodes = Insert::new("INSERT INTO nodetable (id, type, version, time, data) VALUES ", "");
        for id in ids {
            let data = literal(&contents.make(random));
            let _ = write!(nodes.row(), "({id},{NODE_TYPE},1,{},{data})", NEWEST / 1000);
            nodes.send_if_full(connection, &self.nodes)?;
        }
        nodes.send(connection, &self.nodes)
    }

    fn load_links(
        &self,
        connection: &mut Connection,
        ids: std::ops::RangeInclusive<u64>,
        contents: &Payload,
        random: &mut Random,
    ) -> Result<(), Error> {
        let mut links = Insert::new(
            "INSERT INTO linktable (id1, id2, link_type, visibility, data, time, version) VALUES ",
            " ON DUPLICATE KEY UPDATE visibility = VALUES(visibility)",
        );
        let mut counts = Insert::new(
            "INSERT INTO counttable (id, link_type, count, time, version) VALUES ",
            " ON DUPLICATE KEY UPDATE count = VALUES(count), time = VALUES(time), version = VALUES(version)",
        );
        for id1 in ids {
            for kind in 0..TYPES {
                let (link_type, count) = (FIRST_TYPE + kind, self.graph.links(id1, kind));
                let mut newest = 0;
                for id2 in id1..id1 + count {
                    let time = NEWEST - random.below(1 << 32);
                    newest = newest.max(time);
                    let data = literal(&contents.make(random));
                    let _ = write!(links.row(), "({id1},{id2},{link_type},1,{data},{time},0)");
                    links.send_if_full(connection, &self.links)?;
                }
                if count > 0 {
                    let _ = write!(counts.row(), "({id1},{link_type},{count},{newest},0)");
                    counts.send_if_full(connection, &self.counts)?;
                }
            }
        }
        links.send(connection, &self.links)?;
        counts.send(connection, &self.counts)
    }
}

/// A statement that grows row by row.
struct Insert {
    statement: String,
    head: usize,
    tail: &'static str,
    rows: usize,
}

impl Insert {
    fn new(head: &'static str, tail: &'static str) -> Insert {
        Insert { statement: head.into(), head: head.len(), tail, rows: 0 }
    }

    /// Where the next row is written.
    fn row(&mut self) -> &mut String {
        if self.rows > 0 {
            self.statement.push(',');
        }
        self.rows += 1;
        &mut self.statement
    }

    fn send_if_full(&mut self, connection: &mut Connection, sent: &AtomicU64) -> Result<(), Error> {
        if self.rows >= ROWS || self.statement.len() > STATEMENT_BYTES {
            self.send(connection, sent)?;
        }
        Ok(())
    }

    fn send(&mut self, connection: &mut Connection, sent: &AtomicU64) -> Result<(), Error> {
        if self.rows == 0 {
            return Ok(());
        }
        self.statement.push_str(self.tail);
        // Loaders lock gaps of each other in some engines; the statement is a transaction and can be repeated.
        while let Err(error) = connection.execute(&self.statement) {
            if !is_conflict(&error) {
                return Err(error.into());
            }
        }
        sent.fetch_add(self.rows as u64, Ordering::SeqCst);
        self.statement.truncate(self.head);
        self.rows = 0;
        Ok(())
    }
}

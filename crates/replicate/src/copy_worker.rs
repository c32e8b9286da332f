//! A thread that copies: it reads a range of a table from the source and adds it to the target, over a connection to
//! each, step by step as its [`Worker`] is told.
//!
//! ```text
//! Read ──> Begun (place) ──> Read ··· Write ──> Written ··· Commit ──> Committed
//!                                       └─ ahead ──> NotYet
//! ```

use crate::chunk_reader::{Chunk, ChunkReader, NotRead, Planned, Request};
use crate::chunk_writer::ChunkWriter;
use crate::configuration::{SourcePlan, TargetPlan};
use crate::copying::Part;
use crate::failure::Failure;
use crate::links::Links;
use crate::prepared::Snapshot;
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::Arc;

/// So many workers a source has at most.
pub const MOST: usize = 4;

/// And all sources together, if these are not more: each has a range in memory.
const OF_ALL: usize = 8;

/// How many each of so many sources has.
pub fn of_each(sources: usize) -> usize {
    OF_ALL.checked_div(sources).unwrap_or(MOST).clamp(1, MOST)
}

/// What a worker is told to do.
pub enum Order {
    /// To read these rows, and to keep them.
    Read(Request),
    /// To add them to the target, and to compare them there.
    Write {
        /// Before the log was applied up to them: the table may not yet be what they are of.
        ahead: bool,
    },
    /// To take that back, and to keep the rows. There is no answer.
    TakeBack,
    /// To commit that, with how much of the table is there then, if the position is still this one.
    Commit {
        /// None: all.
        part: Option<Part>,
        /// As the target has it.
        position: String,
        /// How often somebody had wanted something.
        asked: u64,
    },
    /// To forget the rows, whatever was done with them. There is no answer.
    Withdraw,
    /// To build the keys of a table.
    BuildKeys(Planned),
}

/// What has become of it.
pub enum Answer {
    /// It is connected, and what former copies began has ended.
    Connected,
    /// The snapshot is there.
    Begun(Snapshot),
    /// Rows are there, up to what is told; None: all.
    Read(Option<Part>),
    /// The table is not there any more.
    Gone,
    /// They are in the target's transaction.
    Written,
    /// They cannot be before their turn.
    NotYet,
    /// It is committed.
    Committed,
    /// Keys are built.
    Built,
    /// Nothing more comes.
    Failed(Failure),
}

/// A thread that copies; when this is dropped, it ends with its connections, whatever it does.
pub struct Worker {
    orders: Sender<Order>,
    links: Arc<Links>,
}

impl Worker {
    /// The `number`th of so many. What it answers goes to `answers`, with its number.
    pub fn start(
        (number, of): (usize, usize),
        target: &TargetPlan,
        source: &SourcePlan,
        answers: Sender<(usize, Answer)>,
    ) -> Result<Worker, Failure> {
        let (orders, told) = channel();
        let (source, target) = (source.clone(), target.settings.clone());
        let name = format!("{} copy {number}", source.name);
        let links = Arc::new(Links::default());
        let its_own = Arc::clone(&links);
        let work = move || {
            let connect = || {
                // Each lock is one worker's, however many there were before.
                let locks = (0..MOST).filter(|lock| lock % of == number);
                let mut reader = ChunkReader::connect(&source, &its_own)?;
                let server_id = reader.server_id()?;
                Ok((reader, ChunkWriter::connect(&target, &source, server_id, locks, &its_own)?))
            };
            // Where nobody listens any more, there is nothing to tell.
            let _ = match connect() {
                Ok((reader, writer)) => {
                    let answer = |answer| answers.send((number, answer)).map_err(|_| Ended);
                    work(reader, writer, &told, &answer)
                }
                Err(failure) => answers.send((number, Answer::Failed(failure))).map_err(|_| Ended),
            };
        };
        let thread = std::thread::Builder::new().name(name).spawn(work);
        thread.map_err(|error| Failure::Passing(format!("no thread for a copy: {error}")))?;
        Ok(Worker { orders, links })
    }

    /// It has nothing to do, and ends in order.
    pub fn end(self) {
        self.links.leave();
    }

    /// Tells it what to do, behind what it was told before.
    pub fn tell(&self, order: Order) -> Result<(), Failure> {
        self.orders.send(order).map_err(|_| Failure::Passing("a thread that copies has ended".into()))
    }
}

impl Drop for Worker {
    /// What it is at would have to end by itself, which a server that is away may not let it: meanwhile its connection
    /// to the other one would hold locks that the next copy waits for.
    fn drop(&mut self) {
        self.links.close();
    }
}

/// Nobody listens.
struct Ended;

/// Does what it is told until nobody tells anything, or something fails.
fn work(
    mut reader: ChunkReader,
    mut writer: ChunkWriter,
    orders: &Receiver<Order>,
    answer: &dyn Fn(Answer) -> Result<(), Ended>,
) -> Result<(), Ended> {
    answer(Answer::Connected)?;
    let mut chunk: Option<Chunk> = None;
    for order in orders {
        let done = match order {
            Order::Read(request) => {
                match read(&mut reader, request, &|begun| answer(Answer::Begun(begun)))? {
                    Ok(read) => {
                        let upto = read.upto;
                        chunk = Some(read);
                        Ok(Answer::Read(upto))
                    }
                    Err(NotRead::Gone) => Ok(Answer::Gone),
                    Err(NotRead::Failed(failure)) => Err(failure),
                }
            }
            Order::Write { ahead } => match chunk.as_ref().map(|chunk| writer.write(chunk)) {
                None => Err(Failure::Passing("no rows are there to be written".into())),
                Some(Err(Failure::Final(..))) if ahead => writer.withdraw().map(|()| Answer::NotYet),
                Some(done) => done.map(|()| Answer::Written),
            },
            Order::TakeBack => match writer.withdraw() {
                Ok(()) => continue,
                Err(failure) => Err(failure),
            },
            Order::Commit { part, position, asked } => match chunk.take() {
                None => Err(Failure::Passing("no rows are there to be committed".into())),
                Some(chunk) => {
                    let table = &chunk.request.table;
                    writer.commit(table, part, &position, asked).map(|()| Answer::Committed)
                }
            },
            Order::Withdraw => {
                chunk = None;
                match writer.withdraw() {
                    Ok(()) => continue,
                    Err(failure) => Err(failure),
                }
            }
            Order::BuildKeys(table) => writer.build_keys(&table).map(|()| Answer::Built),
        };
        match done {
            Ok(done) => answer(done)?,
            Err(failure) => return answer(Answer::Failed(failure)),
        }
    }
    Ok(())
}

fn read(
    reader: &mut ChunkReader,
    request: Request,
    begun: &dyn Fn(Snapshot) -> Result<(), Ended>,
) -> Result<Result<Chunk, NotRead>, Ended> {
    let chunk = match reader.begin(&request) {
        Ok(snapshot) => {
            begun(snapshot)?;
            reader.read(request)
        }
        Err(why) => Err(why),
    };
    // No snapshot outlives the reading of its range.
    Ok(match (chunk, reader.end()) {
        (Ok(_), Err(failure)) => Err(failure.into()),
        (chunk, _) => chunk,
    })
}

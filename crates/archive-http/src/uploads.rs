//! `/api/uploads`: bytes that come in several requests, as tus (1.0) has them. Each is a put whose thread waits for
//! more, so nothing of it lies anywhere but in the archive; it ends with the server, and `gc` gives back its part.

use crate::asked::Asked;
use crate::checks::{Checked, Checks};
use crate::objects::{metadata_of, store, tell_stored, PARAMETERS};
use crate::problem::Problem;
use crate::reply::Reply;
use crate::serve::Site;
use hyper::header::{HeaderName, LOCATION};
use hyper::StatusCode;
use serde_json::json;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::io::{Error, Read};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use teak_archive::Stored;

const OFFSET: HeaderName = HeaderName::from_static("upload-offset");
const LENGTH: HeaderName = HeaderName::from_static("upload-length");
/// At a time; each has some megabytes.
const MOST: usize = 16;
/// After so long one that was left makes room for another.
const LEFT: Duration = Duration::from_secs(3600);
/// Of a part, in bytes, and parts that wait for the archive.
const PART: usize = 64 << 10;
const WAITING: usize = 4;

type Put = JoinHandle<Result<Stored, Problem>>;

struct Upload {
    length: u64,
    offset: AtomicU64,
    state: Mutex<State>,
    used: Mutex<Instant>,
}

enum State {
    Open(SyncSender<Vec<u8>>, Put),
    Stored(Stored),
    Ended,
}

/// All that have begun.
#[derive(Default)]
pub(crate) struct Uploads(Mutex<HashMap<String, Arc<Upload>>>);

fn locked<T>(what: &Mutex<T>) -> MutexGuard<'_, T> {
    what.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Uploads {
    fn find(&self, asked: &Asked) -> Result<Arc<Upload>, Problem> {
        let upload = locked(&self.0).get(&asked.segments[0]).cloned();
        let upload = upload.ok_or_else(|| Problem::new(StatusCode::NOT_FOUND, "there is no such upload"))?;
        *locked(&upload.used) = Instant::now();
        Ok(upload)
    }

    fn add(&self, upload: Upload) -> Result<String, Problem> {
        let mut all = locked(&self.0);
        if all.len() >= MOST {
            let is_over = |upload: &Upload| match upload.state.try_lock().as_deref() {
                Ok(State::Open(_, put)) => put.is_finished() || locked(&upload.used).elapsed() > LEFT,
                Ok(_) => true,
                Err(_) => false,
            };
            let over = all.iter().find(|(_, upload)| is_over(upload)).map(|(id, _)| id.clone());
            let over = over.ok_or_else(|| Problem::busy(format!("{MOST} uploads have not ended")))?;
            all.remove(&over);
        }
        // Not a number that another server gave: who goes on with that one's upload is to be told.
        let id = format!("{:016x}", RandomState::new().hash_one(all.len()));
        all.insert(id.clone(), Arc::new(upload));
        Ok(id)
    }

    /// Ends all that have not ended.
    pub(crate) fn end(&self) {
        for (_, upload) in locked(&self.0).drain() {
            end(&upload);
        }
    }
}

/// Its thread is told that no more comes, and waited for.
fn end(upload: &Upload) {
    if let State::Open(sender, put) = std::mem::replace(&mut *locked(&upload.state), State::Ended) {
        drop(sender);
        let _ = put.join();
    }
}

/// Bytes of several requests, one after the other.
struct Parts {
    from: Receiver<Vec<u8>>,
    part: std::io::Cursor<Vec<u8>>,
    left: u64,
}

impl Read for Parts {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, Error> {
        while self.left > 0 {
            let count = self.part.read(into)?;
            self.left -= count as u64;
            if count > 0 || into.is_empty() {
                return Ok(count);
            }
            let next = self.from.recv().map_err(|_| Error::other("the upload was ended"))?;
            self.part = std::io::Cursor::new(next);
        }
        Ok(0)
    }
}

fn number(asked: &Asked, header: HeaderName) -> Result<u64, Problem> {
    let number = asked.header(&header).and_then(|digits| digits.parse().ok());
    number.ok_or_else(|| Problem::of_field(header.as_str(), "a number of bytes is expected"))
}

/// POST /api/uploads
pub(crate) fn begin(site: &Site, asked: &mut Asked, reply: &mut Reply) -> Result<(), Problem> {
    asked.only(&PARAMETERS)?;
    let length = number(asked, LENGTH)?;
    let metadata = metadata_of(asked, &site.archive)?;
    let checks = Checks::of(asked)?;
    let (sender, from) = sync_channel(WAITING);
    let archive = Arc::clone(&site.archive);
    let parts = Parts { from, part: Default::default(), left: length };
    let work = move || store(&archive, &mut Checked::new(parts, checks), &metadata);
    let put = std::thread::Builder::new().name("upload".into()).spawn(work);
    let put = put.map_err(|error| Problem::busy(format!("no thread: {error}")))?;
    let state = Mutex::new(State::Open(sender, put));
    let upload = Upload { length, offset: AtomicU64::new(0), state, used: Mutex::new(Instant::now()) };
    let id = site.uploads.add(upload)?;
    reply.status(StatusCode::CREATED);
    reply.header(LOCATION, &format!("/api/uploads/{id}"));
    reply.json(&json!({ "upload": id, "offset": 0, "length": length }));
    Ok(())
}

/// PATCH /api/uploads/{upload}
pub(crate) fn go_on(site: &Site, asked: &mut Asked, reply: &mut Reply) -> Result<(), Problem> {
    asked.only(&[])?;
    let upload = site.uploads.find(asked)?;
    let mut state = match upload.state.try_lock() {
        Ok(state) => state,
        Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
        Err(TryLockError::WouldBlock) => {
            return Err(Problem::new(StatusCode::CONFLICT, "another request sends to this upload"));
        }
    };
    let offset = upload.offset.load(Ordering::SeqCst);
    if number(asked, OFFSET)? != offset {
        let text = format!("the upload has {offset} bytes");
        return Err(Problem::new(StatusCode::CONFLICT, text).with_header(OFFSET, &offset.to_string()));
    }
    let has_ended = match &*state {
        State::Open(sender, _) => send(asked, &upload, sender)?,
        _ => false,
    };
    let offset = upload.offset.load(Ordering::SeqCst);
    reply.header(OFFSET, &offset.to_string());
    if matches!(*state, State::Open(..)) && (has_ended || offset == upload.length) {
        if let State::Open(sender, put) = std::mem::replace(&mut *state, State::Ended) {
            drop(sender);
            let failed = |_| Problem::inside("the thread of an upload failed");
            *state = State::Stored(put.join().map_err(failed).and_then(|put| put)?);
        }
    }
    match &*state {
        State::Open(..) => {
            reply.status(StatusCode::NO_CONTENT);
            Ok(())
        }
        State::Stored(stored) => {
            tell_stored(stored, reply);
            Ok(())
        }
        State::Ended => Err(Problem::new(StatusCode::CONFLICT, "the upload has failed: begin another")),
    }
}

/// Sends what comes, as far as it comes; whether the put has ended, and wants no more.
fn send(asked: &mut Asked, upload: &Upload, sender: &SyncSender<Vec<u8>>) -> Result<bool, Problem> {
    loop {
        let mut part = Vec::with_capacity(PART);
        let read = (&mut asked.body).take(PART as u64).read_to_end(&mut part);
        let count = part.len() as u64;
        if upload.offset.load(Ordering::SeqCst) + count > upload.length {
            let text = format!("the upload has {} bytes, and more came", upload.length);
            return Err(Problem::new(StatusCode::CONFLICT, text));
        }
        if count > 0 {
            if sender.send(part).is_err() {
                return Ok(true);
            }
            upload.offset.fetch_add(count, Ordering::SeqCst);
        }
        match read {
            Ok(0) => return Ok(false),
            Ok(_) => {}
            Err(_) => return Err(asked.body.cut.unwrap_or(crate::incoming::Cut::Broken).problem()),
        }
    }
}

/// GET /api/uploads/{upload}
pub(crate) fn state(site: &Site, asked: &mut Asked, reply: &mut Reply) -> Result<(), Problem> {
    asked.only(&[])?;
    let upload = site.uploads.find(asked)?;
    let offset = upload.offset.load(Ordering::SeqCst);
    reply.header(OFFSET, &offset.to_string());
    reply.header(LENGTH, &upload.length.to_string());
    let stored = match upload.state.try_lock().as_deref() {
        Ok(State::Stored(stored)) => json!(stored.oid.to_string()),
        _ => json!(null),
    };
    let id = &asked.segments[0];
    reply.json(&json!({ "upload": id, "offset": offset, "length": upload.length, "oid": stored }));
    Ok(())
}

/// DELETE /api/uploads/{upload}
pub(crate) fn forget(site: &Site, asked: &mut Asked, reply: &mut Reply) -> Result<(), Problem> {
    asked.only(&[])?;
    end(&*site.uploads.find(asked)?);
    locked(&site.uploads.0).remove(&asked.segments[0]);
    reply.status(StatusCode::NO_CONTENT);
    Ok(())
}

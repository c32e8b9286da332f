//! Listening, connections, and ending in order. One thread has all sockets; it never waits for the archive.

use crate::announcement::Announcement;
use crate::dav::Dav;
use crate::door::{Door, Login};
use crate::exchange::respond;
use crate::jobs::Jobs;
use crate::patient::Patient;
use crate::problem::Problem;
use crate::uploads::Uploads;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use std::convert::Infallible;
use std::io::Error;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use teak_archive::Archive;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{watch, OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

/// Of a request without its body, in bytes.
const MOST_HEAD: usize = 32 << 10;
/// Header fields of a request.
const MOST_HEADERS: usize = 100;
/// What a connection has in memory of what it reads and writes.
const BUFFER: usize = 64 << 10;
/// Bodies that are streamed into the archive at a time; each takes some megabytes.
const STREAMS: usize = 16;
/// How often it is asked whether to end.
const TICK: Duration = Duration::from_millis(100);
/// After an accept that failed, as for want of descriptors.
const PAUSE: Duration = Duration::from_millis(500);

/// Is told what went wrong inside, a line each.
pub type Log = Arc<dyn Fn(&str) + Send + Sync>;

/// How an archive is served.
#[derive(Clone)]
pub struct Settings {
    /// Where it listens. Port 0: the system chooses one.
    pub listen: SocketAddr,
    /// Who may ask; `None`: whoever can reach it.
    pub login: Option<Login>,
    /// Whether it may listen without a login where other machines reach it, and answer to any name.
    pub open_to_all: bool,
    /// Connections at a time; more wait in the system's queue.
    pub most_connections: usize,
    /// How long a request may take to come, and how long a peer may take for its next 16 KiB.
    pub patience: Duration,
    /// How long, at the end, what is under way is waited for.
    pub ending: Duration,
    /// Where the archive is, for a file that says where this server is; `None`: there is none.
    pub directory: Option<PathBuf>,
    /// Is told what went wrong inside.
    pub log: Log,
}

impl Settings {
    /// At an address, with nothing but programs of this machine to answer, and no log.
    pub fn new(listen: SocketAddr) -> Settings {
        Settings {
            listen,
            login: None,
            open_to_all: false,
            most_connections: 256,
            patience: Duration::from_secs(30),
            ending: Duration::from_secs(60),
            directory: None,
            log: Arc::new(|_| {}),
        }
    }
}

/// Why nothing was served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// Anybody could read and change the archive.
    #[error("{0} can be reached by other machines: a user and a password are needed")]
    Open(SocketAddr),
    /// The address cannot be listened at.
    #[error("cannot listen at {address}: {cause}")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// What the system says.
        cause: Error,
    },
    /// A file of the archive's directory, or a thread.
    #[error("cannot serve: {0}")]
    System(#[from] Error),
    /// It could not be closed.
    #[error("{0}")]
    Archive(#[from] teak_archive::Error),
}

/// What all requests have in common.
pub(crate) struct Site {
    pub(crate) archive: Arc<Archive>,
    pub(crate) jobs: Jobs,
    pub(crate) uploads: Uploads,
    pub(crate) dav: Dav,
    pub(crate) door: Door,
    pub(crate) patience: Duration,
    pub(crate) streams: Semaphore,
    ending: AtomicBool,
    /// One at a time changes the schema, or a view.
    schema: Mutex<()>,
    log: Log,
}

impl Site {
    pub(crate) fn schema_care(&self) -> MutexGuard<'_, ()> {
        self.schema.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the time for what is under way is over.
    pub(crate) fn is_ending(&self) -> bool {
        self.ending.load(Ordering::SeqCst)
    }

    pub(crate) fn log(&self, problem: &Problem) {
        if let Some(detail) = &problem.detail {
            (self.log)(detail);
        }
    }
}

/// A socket that listens, and answers once it serves.
pub struct Server {
    listener: StdListener,
    address: SocketAddr,
    settings: Settings,
}

impl Server {
    /// Listens; who asks now waits.
    pub fn bind(settings: Settings) -> Result<Server, ServeError> {
        let address = settings.listen;
        if settings.login.is_none() && !address.ip().is_loopback() && !settings.open_to_all {
            return Err(ServeError::Open(address));
        }
        let failed = |cause| ServeError::Listen { address, cause };
        let listener = StdListener::bind(address).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Server { listener, address, settings })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves an archive until `stop`, which is asked several times a second, says so. What is under way is finished
    /// then, and the archive closed.
    pub fn serve(self, archive: Archive, stop: &mut dyn FnMut() -> bool) -> Result<(), ServeError> {
        let archive = Arc::new(archive);
        let settings = &self.settings;
        let announcement = settings
            .directory
            .as_ref()
            .map(|directory| Announcement::new(directory, self.address))
            .transpose()?;
        let local_only = settings.login.is_none() && !settings.open_to_all;
        let site = Arc::new(Site {
            archive: Arc::clone(&archive),
            jobs: Jobs::default(),
            uploads: Uploads::default(),
            dav: Dav::default(),
            door: Door { login: settings.login.clone(), local_only },
            patience: settings.patience,
            streams: Semaphore::new(STREAMS),
            ending: AtomicBool::new(false),
            schema: Mutex::new(()),
            log: settings.log.clone(),
        });
        // A connection has one request at a time that is answered, so nobody waits for a thread.
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_io()
            .enable_time()
            .max_blocking_threads(settings.most_connections + 1)
            .thread_name("answer")
            .build()?;
        let served = runtime.block_on(connections(&site, self.listener, settings, stop));
        site.ending.store(true, Ordering::SeqCst);
        site.jobs.end();
        site.uploads.end();
        // Waits for the threads: their connections are gone, so they end at their next byte.
        drop(runtime);
        drop(site);
        drop(announcement);
        if let Some(archive) = Arc::into_inner(archive) {
            archive.close()?;
        }
        Ok(served?)
    }
}

/// Accepts until it is to stop, and waits for what is under way.
async fn connections(
    site: &Arc<Site>,
    listener: StdListener,
    settings: &Settings,
    stop: &mut dyn FnMut() -> bool,
) -> Result<(), Error> {
    let listener = TcpListener::from_std(listener)?;
    let places = Arc::new(Semaphore::new(settings.most_connections));
    let (ending, ended) = watch::channel(false);
    let mut tasks = JoinSet::new();
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let accepted = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (place, listener.accept().await)
        };
        tokio::select! {
            biased;
            _ = ticks.tick() => if stop() { break },
            accepted = accepted => match accepted {
                (Ok(place), Ok((stream, _))) => {
                    tasks.spawn(converse(Arc::clone(site), stream, ended.clone(), place));
                }
                _ => tokio::time::sleep(PAUSE).await,
            },
        }
        while tasks.try_join_next().is_some() {}
    }
    drop(listener);
    // Each connection has a receiver; that there may be none is no error.
    let _ = ending.send(true);
    let all = async { while tasks.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(settings.ending, all).await;
    tasks.shutdown().await;
    Ok(())
}

/// One connection, until its peer or the server ends it.
async fn converse(
    site: Arc<Site>,
    stream: TcpStream,
    mut ended: watch::Receiver<bool>,
    place: OwnedSemaphorePermit,
) {
    let patience = site.patience;
    // Answers are written as a whole; nothing is won by waiting for more.
    let _ = stream.set_nodelay(true);
    let has_asked = AtomicBool::new(false);
    let service = service_fn(|request| {
        has_asked.store(true, Ordering::SeqCst);
        let response = respond(Arc::clone(&site), request);
        async move { Ok::<_, Infallible>(response.await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(patience)
        .max_headers(MOST_HEADERS)
        .max_header_size(MOST_HEAD)
        .max_buf_size(BUFFER)
        // Who has said all may end his side, and is answered.
        .half_close(true)
        .serve_connection(TokioIo::new(Patient::new(stream, patience)), service);
    let mut connection = pin!(connection);
    // What goes wrong between the two is nothing to tell: they are gone.
    tokio::select! {
        _ = &mut connection => {}
        _ = ended.changed() => {
            if has_asked.load(Ordering::SeqCst) {
                connection.as_mut().graceful_shutdown();
                let _ = connection.await;
            }
        }
    }
    drop(place);
}

//! A thread that asks the server, so that keys never wait for it.

use crate::sample::Sample;
use crate::session::Session;
use crate::wanted::Wanted;
use std::sync::mpsc::{channel, Receiver, Sender, TryRecvError};

/// What is asked of the server.
pub enum Request {
    /// What is so now.
    Sample(Wanted),
    /// The plan of what a session does.
    Explain(u64),
    /// A statement that ends somebody.
    End(String),
}

/// What came of it.
pub enum Reply {
    /// All that could be had.
    Sample(Box<Sample>),
    /// A plan of this session, or why there is none.
    Plan(u64, Result<Vec<String>, String>),
    /// Whether this statement was carried out, or why not.
    Ended(String, Result<(), String>),
}

/// The thread; it ends with this.
pub struct Live {
    requests: Sender<Request>,
    replies: Receiver<Reply>,
    /// Whether a sample was asked for and has not come.
    pub is_asking: bool,
}

impl Live {
    /// Begins with a session, which may be connected.
    pub fn start(mut session: Session) -> std::io::Result<Live> {
        let (requests, received) = channel();
        let (reply, replies) = channel();
        let work = move || {
            for request in received {
                let answer = match request {
                    Request::Sample(wanted) => Reply::Sample(Box::new(session.sample(&wanted))),
                    Request::Explain(connection) => Reply::Plan(connection, session.explain(connection)),
                    Request::End(statement) => {
                        let ended = session.end(&statement);
                        Reply::Ended(statement, ended)
                    }
                };
                if reply.send(answer).is_err() {
                    break;
                }
            }
        };
        std::thread::Builder::new().name("session".into()).spawn(work)?;
        Ok(Live { requests, replies, is_asking: false })
    }

    /// Asks for something. False: the thread has ended, which only a defect of this program does.
    pub fn ask(&mut self, request: Request) -> bool {
        self.is_asking |= matches!(request, Request::Sample(_));
        self.requests.send(request).is_ok()
    }

    /// What has come, if anything has. `Err`: the thread has ended.
    pub fn take(&mut self) -> Result<Option<Reply>, ()> {
        match self.replies.try_recv() {
            Ok(reply) => {
                self.is_asking &= !matches!(reply, Reply::Sample(_));
                Ok(Some(reply))
            }
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(()),
        }
    }
}

/// The last sample, and the one that rates are counted from.
#[derive(Default)]
pub struct Samples {
    now: Sample,
    before: Option<Sample>,
}

impl Samples {
    /// A new one. Rates are of half an interval at least, where somebody has asked in between.
    pub fn push(&mut self, sample: Sample, interval_milliseconds: u64) {
        let last = std::mem::replace(&mut self.now, sample);
        let is_near = self.now.at.saturating_sub(last.at) < interval_milliseconds / 2;
        if last.at > 0 && !(is_near && self.before.is_some()) {
            self.before = Some(last);
        }
    }

    /// Both.
    pub fn moment(&self) -> crate::moment::Moment<'_> {
        crate::moment::Moment::new(&self.now, self.before.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Answer, Part};

    fn sample(at: u64) -> Sample {
        let row = |name: &str, value: u64| vec![Some(name.to_string()), Some(value.to_string())];
        let mut sample = Sample { at, ..Sample::default() };
        let rows = vec![row("UPTIME", at / 1000), row("QUERIES", at)];
        sample.parts.insert(Part::Status, Answer { columns: Vec::new(), rows, is_cut: false });
        sample
    }

    #[test]
    fn rates_are_not_of_moments() {
        let mut samples = Samples::default();
        samples.push(sample(5000), 1000);
        assert_eq!(samples.moment().seconds(), None);
        samples.push(sample(5000 + 700), 1000);
        samples.push(sample(5710), 1000);
        samples.push(sample(6000), 1000);
        assert_eq!(
            (samples.moment().seconds(), samples.moment().rate(&["queries"])),
            (Some(1.0), Some(1000.0))
        );
        samples.push(sample(7000), 1000);
        assert_eq!(samples.moment().seconds(), Some(1.0));
        // Another start of the server.
        samples.push(Sample { at: 8000, ..sample(1000) }, 1000);
        assert_eq!((samples.moment().seconds(), samples.moment().rate(&["queries"])), (None, None));
    }
}

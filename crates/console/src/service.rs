//! What systemd is told by `Type=notify`: that the program has begun, how it is, that the end was asked for, and that
//! it is alive. Nothing, where nobody has asked for it.

use crate::signals;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::{Duration, Instant};

/// How a program is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// Whether it does what it is there for.
    pub is_ready: bool,
    /// A line for people.
    pub status: String,
}

/// Who started the program, and wants to be told.
pub struct Service {
    socket: UnixDatagram,
    address: SocketAddr,
    /// How often it is to be told that the program is alive.
    watchdog: Option<Duration>,
    told_alive: Option<Instant>,
    is_ready: bool,
    is_stopping: bool,
    status: String,
}

impl Service {
    /// Of the environment.
    pub fn of_environment() -> Option<Service> {
        let variable = |name: &str| std::env::var(name).ok();
        let is_ours = variable("WATCHDOG_PID").is_none_or(|pid| pid == std::process::id().to_string());
        let watchdog = variable("WATCHDOG_USEC").filter(|_| is_ours);
        Service::new(&variable("NOTIFY_SOCKET")?, watchdog.as_deref())
    }

    /// Of what it has: a path, or a name that begins with `@`; microseconds.
    fn new(socket: &str, watchdog: Option<&str>) -> Option<Service> {
        let address = match socket.strip_prefix('@') {
            Some(name) => SocketAddr::from_abstract_name(name),
            None => SocketAddr::from_pathname(socket),
        };
        let watchdog = watchdog.and_then(|text| text.parse().ok()).filter(|&micros: &u64| micros > 0);
        Some(Service {
            socket: UnixDatagram::unbound().ok()?,
            address: address.ok()?,
            // Twice in that time, as systemd advises.
            watchdog: watchdog.map(|micros| Duration::from_micros(micros / 2)),
            told_alive: None,
            is_ready: false,
            is_stopping: false,
            status: String::new(),
        })
    }

    /// Tells what is new `now`; to be called several times a second.
    ///
    /// That the program is alive says that it can tell this, and no more: one that waits for a statement of hours is
    /// alive as well.
    pub fn tell(&mut self, Told { is_ready, status }: Told, now: Instant) {
        let mut news = Vec::new();
        if signals::interrupted() && !std::mem::replace(&mut self.is_stopping, true) {
            news.push("STOPPING=1".to_string());
        }
        if is_ready && !std::mem::replace(&mut self.is_ready, true) {
            news.push("READY=1".into());
        }
        if status != self.status {
            news.push(format!("STATUS={status}"));
            self.status = status;
        }
        if let Some(often) = self.watchdog {
            if self.told_alive.is_none_or(|told| now.duration_since(told) >= often) {
                news.push("WATCHDOG=1".into());
                self.told_alive = Some(now);
            }
        }
        if !news.is_empty() {
            // Who does not listen any more is not waited for.
            let _ = self.socket.send_to_addr(news.join("\n").as_bytes(), &self.address);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_new_is_told_once_to_whoever_has_asked() {
        let name = format!("teak-service-test-{}", std::process::id());
        let socket = UnixDatagram::bind_addr(&SocketAddr::from_abstract_name(&name).unwrap()).unwrap();
        socket.set_nonblocking(true).unwrap();
        let told = || {
            let mut bytes = [0; 1000];
            let length = socket.recv(&mut bytes).unwrap_or(0);
            String::from_utf8(bytes[..length].to_vec()).unwrap()
        };
        let (now, is) = (Instant::now(), |status: &str, is_ready| Told { is_ready, status: status.into() });
        let mut service = Service::new(&format!("@{name}"), None).unwrap();
        service.tell(is("beginning", false), now);
        assert_eq!(told(), "STATUS=beginning");
        service.tell(is("at work", true), now);
        assert_eq!(told(), "READY=1\nSTATUS=at work");
        service.tell(is("at work", false), now);
        service.tell(is("at work", true), now);
        assert_eq!(told(), "");
        let mut service = Service::new(&format!("@{name}"), Some("20000")).unwrap();
        service.tell(is("at work", true), now);
        assert!(told().ends_with("\nWATCHDOG=1"));
        service.tell(is("at work", true), now);
        assert_eq!(told(), "");
        service.tell(is("at work", true), now + Duration::from_millis(11));
        assert_eq!(told(), "WATCHDOG=1");
        assert!(Service::new("", None).is_none_or(|service| service.watchdog.is_none()));
    }
}

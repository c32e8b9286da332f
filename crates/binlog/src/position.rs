//! Where in which file what a server sends comes from.

use super::header::{EventType, Flags, Header};
use std::sync::Arc;

/// A place in a server's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPosition {
    /// The file, as the server calls it.
    pub file: Arc<str>,
    /// Where its next event begins.
    pub position: u64,
}

/// Follows the position in a log that a server sends: the file's name comes in rotate events, the position is the sum
/// of what was sent, since headers do not always tell it (MariaDB from 11.4 on). The sum is right only if all is sent
/// that the file has: MariaDB sends annotate events only to who asks for them. Where a header does tell the position,
/// that counts.
#[derive(Debug, Clone, Default)]
pub struct Positions {
    current: Option<LogPosition>,
}

impl Positions {
    /// From a position on that the server was asked for.
    pub fn at(file: Arc<str>, position: u64) -> Positions {
        Positions { current: Some(LogPosition { file, position }) }
    }

    /// Where the next event begins; nothing before the first rotate event.
    pub fn current(&self) -> Option<&LogPosition> {
        self.current.as_ref()
    }

    /// A rotate event was sent: one of a file, or one that the server made up to tell the name.
    pub fn rotate(&mut self, file: &str, position: u64) {
        self.current = Some(LogPosition { file: file.into(), position });
    }

    /// Where an event begins, and where the next one does: the same for one that the server made up. Nothing before the
    /// first rotate event.
    pub fn of(&self, header: &Header) -> Option<(u64, u64)> {
        let at = self.current.as_ref()?.position;
        let made_up = match header.kind() {
            Some(EventType::Heartbeat | EventType::HeartbeatV2) => true,
            // Of the beginning of a file that is read from further on.
            Some(EventType::FormatDescription) => header.end_position == 0,
            _ => header.flags.has(Flags::ARTIFICIAL),
        };
        if made_up {
            return Some((at, at));
        }
        let (length, summed) = (u64::from(header.length), at.saturating_add(header.length.into()));
        Some(match header.end_position {
            0 => (at, summed),
            end => {
                let end = nearest(summed, end);
                (end.saturating_sub(length), end)
            }
        })
    }

    /// An event was sent that is no rotate event.
    pub fn pass(&mut self, header: &Header) {
        let next = self.of(header);
        if let (Some((_, next)), Some(current)) = (next, &mut self.current) {
            current.position = next;
        }
    }
}

/// The position with these lower 32 bits that is nearest to `about`.
fn nearest(about: u64, low: u32) -> u64 {
    let turn = 1 << 32;
    let same = about & !(turn - 1) | u64::from(low);
    [same.checked_sub(turn), Some(same), same.checked_add(turn)]
        .into_iter()
        .flatten()
        .min_by_key(|position| position.abs_diff(about))
        .unwrap_or(about)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn header(code: u8, length: u32, end_position: u32, flags: u16) -> Header {
        Header { time: 0, code, server_id: 1, length, end_position, flags: Flags(flags) }
    }

    #[test]
    fn positions_are_sums_where_headers_have_none_and_cross_4_gib() {
        let mut positions = Positions::default();
        positions.pass(&header(2, 100, 0, 0));
        assert_eq!(positions.current(), None);
        positions.rotate("b.000001", 4);
        for (event, at) in [
            (header(15, 250, 254, 0), 254),
            (header(162, 42, 296, 0), 296),
            (header(19, 50, 0, 0), 346),
            (header(27, 40, 346, 0), 346),
            (header(163, 40, 346, Flags::ARTIFICIAL), 346),
            // The server left an event out.
            (header(16, 31, 500, 0), 500),
            (header(15, 250, 0, 0), 500),
        ] {
            positions.pass(&event);
            assert_eq!(positions.current().unwrap().position, at);
        }
        // Others were left out before it.
        assert_eq!(positions.of(&header(162, 42, 1042, 0)), Some((1000, 1042)));
        assert_eq!(positions.of(&header(27, 42, 1042, 0)), Some((500, 500)));
        let mut positions = Positions::at("b.000002".into(), (1 << 32) - 10);
        positions.pass(&header(2, 30, 20, 0));
        assert_eq!(positions.current().unwrap().position, (1 << 32) + 20);
        positions.pass(&header(2, 30, 0, 0));
        assert_eq!(positions.current().unwrap().position, (1 << 32) + 50);
    }
}

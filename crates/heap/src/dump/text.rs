//! The text that `jeprof` and `google-pprof` read:
//!
//! ```text
//! heap profile: <objects>: <bytes> [<objects>: <bytes>] @ heap_v2/<period>
//!   <objects>: <bytes> [<objects>: <bytes>] @ 0x<address> 0x<address> ...      innermost first
//!
//! MAPPED_LIBRARIES:
//! /proc/self/maps
//! ```
//!
//! Objects are those that were sampled: the programs scale them by the period, or not if there is `heapprofile` in its
//! place. What stands in brackets, all that was ever allocated, is not counted: it is what lives.

use std::fmt::Write;

use crate::sites::Site;

/// The text of what was found.
pub fn encode(sites: &[Site], period: Option<u64>) -> String {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let (objects, bytes) = sites.iter().fold((0, 0), |(objects, bytes), site| {
        (objects + site.live.objects as u64, bytes + site.live.bytes as u64)
    });
    let kind = match period {
        Some(period) if period > 1 => format!("heap_v2/{period}"),
        _ => "heapprofile".to_string(),
    };
    let mut text = format!("heap profile: {objects}: {bytes} [{objects}: {bytes}] @ {kind}\n");
    for site in sites.iter().filter(|site| !site.stack.is_empty()) {
        let (objects, bytes) = (site.live.objects as u64, site.live.bytes as u64);
        // Writing to a String does not fail.
        let _ = write!(text, "{objects}: {bytes} [{objects}: {bytes}] @");
        for (number, address) in site.stack.iter().enumerate() {
            // The programs take one off return addresses, but for the first.
            let _ = write!(text, " {:#x}", if number == 0 { address - 1 } else { *address });
        }
        text.push('\n');
    }
    text.push_str("\nMAPPED_LIBRARIES:\n");
    text.push_str(&maps);
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sites::Amount;

    #[test]
    fn a_site_is_a_line() {
        let live = Amount { objects: 2.0, bytes: 30.0 };
        let site = Site { stack: vec![0x1001, 0x2002], live, ..Site::default() };
        let text = encode(std::slice::from_ref(&site), Some(4096));
        assert!(text.starts_with(
            "heap profile: 2: 30 [2: 30] @ heap_v2/4096\n2: 30 [2: 30] @ 0x1000 0x2002\n\nMAPPED_"
        ));
        assert!(encode(&[site], None).starts_with("heap profile: 2: 30 [2: 30] @ heapprofile\n"));
    }
}

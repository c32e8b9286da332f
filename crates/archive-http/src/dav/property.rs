//! Properties: live ones, which the archive tells, and dead ones, which are kept as they were given.

use super::facts::Facts;
use super::locks::Lock;
use super::place::Place;
use super::xml::{escaped, parse, Element, Name, DAV};
use std::fmt::Write;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use teak_archive::Value;

/// Live ones.
const LIVE: [&str; 8] = [
    "resourcetype",
    "creationdate",
    "getlastmodified",
    "getcontentlength",
    "getcontenttype",
    "getetag",
    "supportedlock",
    "lockdiscovery",
];

/// Whether nobody can set it.
pub(super) fn is_live(name: &Name) -> bool {
    name.space == DAV && LIVE.contains(&&*name.local)
}

/// Which properties are asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Chosen {
    /// All, and these.
    All(Vec<Name>),
    /// The names of all.
    Names,
    These(Vec<Name>),
}

/// A part of an answer: what is at a place, and its properties.
pub(super) fn response(place: &Place, facts: &Facts, wanted: &Chosen, locks: &[Lock]) -> String {
    let mut out = String::with_capacity(1000);
    let _ = write!(out, "<D:response><D:href>{}</D:href>", place.href(facts.is_directory));
    let (mut found, mut missing) = (String::new(), String::new());
    let dead = || facts.properties.iter().filter_map(|text| parse(text.as_bytes()).ok());
    match wanted {
        Chosen::Names => {
            for local in LIVE {
                if let Some(value) = live(local, place, facts, locks) {
                    drop(value);
                    let _ = write!(found, "<D:{local}/>");
                }
            }
            dead().for_each(|element| found.push_str(&empty(&element.name)));
        }
        Chosen::All(_) => {
            for local in LIVE {
                if let Some(value) = live(local, place, facts, locks) {
                    let _ = write!(found, "<D:{local}>{value}</D:{local}>");
                }
            }
            dead().for_each(|element| found.push_str(&element.write()));
        }
        Chosen::These(_) => {}
    }
    if let Chosen::These(names) | Chosen::All(names) = wanted {
        let are_all = matches!(wanted, Chosen::All(_));
        let dead: Vec<Element> = if names.iter().all(is_live) { Vec::new() } else { dead().collect() };
        for name in names {
            let local = &name.local;
            if is_live(name) {
                match live(local, place, facts, locks) {
                    Some(value) if !are_all => drop(write!(found, "<D:{local}>{value}</D:{local}>")),
                    Some(_) => {}
                    None => missing.push_str(&empty(name)),
                }
            } else {
                match dead.iter().find(|element| element.name == *name) {
                    Some(element) if !are_all => found.push_str(&element.write()),
                    Some(_) => {}
                    None => missing.push_str(&empty(name)),
                }
            }
        }
    }
    // A response has one of them at least.
    if !found.is_empty() || missing.is_empty() {
        write_propstat(&mut out, &found, "200 OK");
    }
    if !missing.is_empty() {
        write_propstat(&mut out, &missing, "404 Not Found");
    }
    out.push_str("</D:response>\n");
    out
}

pub(super) fn write_propstat(out: &mut String, properties: &str, status: &str) {
    let _ = write!(
        out,
        "<D:propstat><D:prop>{properties}</D:prop><D:status>HTTP/1.1 {status}</D:status></D:propstat>"
    );
}

/// A property without its value.
pub(super) fn empty(name: &Name) -> String {
    format!("<{} xmlns=\"{}\"/>", name.local, escaped(&name.space))
}

/// The value of a live one, as XML with the prefix `D`.
fn live(local: &str, place: &Place, facts: &Facts, locks: &[Lock]) -> Option<String> {
    let of_file = || (!facts.is_directory).then_some(());
    Some(match local {
        "resourcetype" if facts.is_directory => "<D:collection/>".to_string(),
        "resourcetype" => String::new(),
        "creationdate" => Value::Timestamp(facts.created?).to_string(),
        "getlastmodified" => http_date(facts.modified?)?,
        "getcontentlength" => of_file().map(|()| facts.size.to_string())?,
        "getcontenttype" => {
            of_file()?;
            escaped(facts.content_type.as_deref().unwrap_or("application/octet-stream"))
        }
        "getetag" => escaped(facts.tag.as_deref()?),
        "supportedlock" => ["exclusive", "shared"]
            .map(|scope| {
                format!(
                    "<D:lockentry><D:lockscope><D:{scope}/></D:lockscope><D:locktype><D:write/></D:locktype>\
                     </D:lockentry>"
                )
            })
            .concat(),
        "lockdiscovery" => locks.iter().filter(|lock| lock.covers(place)).map(active).collect(),
        _ => return None,
    })
}

/// A lock as XML.
pub(super) fn active(lock: &Lock) -> String {
    let scope = if lock.is_exclusive { "exclusive" } else { "shared" };
    let depth = if lock.is_deep { "infinity" } else { "0" };
    format!(
        "<D:activelock><D:locktype><D:write/></D:locktype><D:lockscope><D:{scope}/></D:lockscope>\
         <D:depth>{depth}</D:depth>{}<D:timeout>Second-{}</D:timeout><D:locktoken><D:href>{}</D:href>\
         </D:locktoken><D:lockroot><D:href>{}</D:href></D:lockroot></D:activelock>",
        lock.owner,
        lock.seconds,
        lock.token,
        lock.place.href(false)
    )
}

/// A moment, in microseconds since 1970, as HTTP has it, which knows none before.
pub(crate) fn http_date(micros: i64) -> Option<String> {
    let since = Duration::from_micros(u64::try_from(micros).ok()?);
    let latest = UNIX_EPOCH + Duration::from_secs(253_402_300_799);
    let moment = UNIX_EPOCH.checked_add(since).filter(|moment| *moment <= latest)?;
    Some(httpdate::fmt_http_date(moment))
}

/// The moment of such a date.
pub(super) fn read_http_date(text: &str) -> Option<i64> {
    let moment: SystemTime = httpdate::parse_http_date(text.trim()).ok()?;
    i64::try_from(moment.duration_since(UNIX_EPOCH).ok()?.as_micros()).ok()
}

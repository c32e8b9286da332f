//! Requests of clients that cannot be run here, one after the other by one connection, as `tests/clients` has put them
//! together.

use crate::client::{Answer, Served};

/// A request of a file: method, path, status, all behind the first line.
struct Step<'f> {
    method: &'f str,
    path: &'f str,
    status: u16,
    headers: &'f str,
    body: &'f str,
}

fn steps(file: &str) -> Vec<Step<'_>> {
    let read = |block| -> Option<Step<'_>> {
        let (line, rest) = str::split_once(block, '\n')?;
        let (request, status) = line.split_once(" -> ")?;
        let (method, path) = request.split_once(' ')?;
        let (headers, body) = rest.split_once("\n\n").unwrap_or((rest.trim_end(), ""));
        Some(Step { method, path, status: status.parse().ok()?, headers, body })
    };
    file.split("\n> ").skip(1).map(|block| read(block).unwrap_or_else(|| panic!("{block}"))).collect()
}

/// Sends all of them; the last answer.
fn replay(served: &Served, file: &str) -> Answer {
    let (mut conversation, mut token, mut last) = (served.connect(), String::new(), None);
    let host = served.address.to_string();
    for Step { method, path, status, headers, body } in steps(file) {
        let is_chunked = headers.contains("chunked");
        let body = if is_chunked { body.replace('\n', "\r\n") } else { body.trim_end().to_string() };
        let length = body.len().to_string();
        let headers =
            headers.replace("{token}", &token).replace("{host}", &host).replace("{length}", &length);
        let headers: String = headers.trim().lines().map(|line| format!("{line}\r\n")).collect();
        let request = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n{headers}\r\n{body}");
        conversation.send(request.as_bytes()).unwrap();
        let answer = conversation.answer(method).unwrap();
        assert_eq!(answer.status, status, "{request}\n{answer:?}");
        if let (Some(given), "LOCK") = (answer.headers.get("lock-token"), method) {
            token = given.trim_matches(['<', '>']).to_string();
        }
        last = Some(answer);
    }
    last.unwrap()
}

/// What all records have of some fields.
fn records(served: &Served) -> serde_json::Value {
    served.get("/api/query?fields=system.path,system.size,file.modified").json()["records"].clone()
}

#[test]
fn finder_copies_a_file_and_leaves_nothing_beside_it() {
    let served = Served::new();
    replay(&served, include_str!("../clients/finder"));
    assert_eq!(records(&served), serde_json::json!([{"system.path": "report 2.txt", "system.size": 11}]));
    served.end();
}

#[test]
fn explorer_copies_a_file_with_its_times() {
    let served = Served::new();
    let answer = replay(&served, include_str!("../clients/explorer"));
    assert_eq!(
        (&answer.body[..], &*answer.headers["last-modified"]),
        (&b"hello world"[..], "Fri, 13 Feb 2009 23:31:30 GMT")
    );
    let modified = "2009-02-13T23:31:30Z";
    let record = serde_json::json!({"system.path": "Reports/report 2.txt", "system.size": 11, "file.modified": modified});
    assert_eq!(records(&served), serde_json::json!([record]));
    served.end();
}

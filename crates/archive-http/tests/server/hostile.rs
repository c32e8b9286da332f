//! Requests that nobody should send.

use crate::client::{bytes, options, request, seed, Served};
use std::io::Read;
use std::net::Shutdown;
use std::sync::Arc;
use std::time::Duration;
use teak_archive::{Archive, Chunking, Metadata, Rules};
use teak_archive_http::{Login, ServeError, Server, Settings};
use teak_core::file::SimulatedFileSystem;

/// Sends it, and nothing else; what is answered until the end.
fn answered(served: &Served, sent: &[u8]) -> Vec<u8> {
    let mut conversation = served.connect();
    // The answer may come, and the connection end, before all is sent.
    let _ = conversation.send(sent);
    let _ = conversation.0.get_ref().shutdown(Shutdown::Write);
    let mut answer = Vec::new();
    let _ = conversation.0.read_to_end(&mut answer);
    answer
}

fn status(answer: &[u8]) -> u16 {
    let text = String::from_utf8_lossy(&answer[..answer.len().min(12)]).into_owned();
    text.strip_prefix("HTTP/1.1 ").and_then(|digits| digits.parse().ok()).unwrap_or_default()
}

#[test]
fn a_request_that_is_cut_anywhere_stores_nothing_and_holds_nobody_up() {
    let served = Served::new();
    let whole = request(
        served.address,
        "POST",
        "/api/objects?meta=file.name=x",
        "Content-Type: text/plain\n",
        b"hello, world",
    );
    for at in 0..whole.len() {
        let answer = answered(&served, &whole[..at]);
        assert!(matches!(status(&answer), 0 | 400), "{at}: {}", String::from_utf8_lossy(&answer));
    }
    assert_eq!(served.get("/api/query").json()["records"].as_array().unwrap().len(), 0);
    assert_eq!(status(&answered(&served, &whole)), 201);
    served.end();
}

#[test]
fn changed_requests_are_answered_or_ended_and_never_a_panic() {
    let served = Served::new();
    let oid = served.put(b"x", "");
    let requests = [
        request(
            served.address,
            "PATCH",
            &format!("/api/objects/{oid}/meta"),
            "If-Match: \"1\"\n",
            b"{\"file.name\": \"x\"}",
        ),
        request(
            served.address,
            "GET",
            &format!("/api/objects/{oid}"),
            "Range: bytes=0-0\nIf-None-Match: \"x\"\n",
            b"",
        ),
        request(served.address, "GET", "/api/query?q=file.name+=+x&limit=3&order=file.name:desc", "", b""),
    ];
    let random = bytes(seed(9), 6000);
    for (turn, choice) in random.chunks_exact(8).enumerate() {
        let mut changed = requests[turn % requests.len()].clone();
        let at = usize::from(u16::from_le_bytes([choice[0], choice[1]])) % changed.len();
        match choice[2] % 3 {
            0 => changed[at] = choice[3],
            1 => drop(changed.remove(at)),
            _ => changed.insert(at, choice[3]),
        }
        let answer = answered(&served, &changed);
        assert!(status(&answer) < 500, "{changed:?}: {}", String::from_utf8_lossy(&answer));
    }
    assert_eq!(served.get("/healthz").status, 200);
    assert!(served.log.lock().unwrap().is_empty());
}

#[test]
fn what_is_too_large_is_refused() {
    let served = Served::new();
    let host = served.address;
    let long = "x".repeat(40_000);
    assert_eq!(
        status(&answered(&served, &request(host, "GET", "/healthz", &format!("A: {long}\n"), b""))),
        431
    );
    assert!(matches!(
        status(&answered(&served, &request(host, "GET", &format!("/{long}"), "", b""))),
        414 | 431
    ));
    let many: String = (0..200).map(|number| format!("A{number}: x\n")).collect();
    assert_eq!(status(&answered(&served, &request(host, "GET", "/healthz", &many, b""))), 431);
    let large = vec![b' '; 300_000];
    assert_eq!(served.ask("PUT", "/api/schema", "", &large).refusal().0, 413);
    let mut chunked =
        format!("PUT /api/schema HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n")
            .into_bytes();
    for part in large.chunks(10_000) {
        chunked.extend(format!("{:x}\r\n", part.len()).bytes());
        chunked.extend(part);
        chunked.extend(b"\r\n");
    }
    assert_eq!(status(&answered(&served, &chunked)), 413);
    let deep = "[".repeat(200_000);
    assert_eq!(served.ask("PUT", "/api/schema", "", deep.as_bytes()).refusal().0, 400);
    let nested = format!("/api/query?q={}", "(".repeat(20_000));
    assert_eq!(served.get(&nested).refusal().0, 400);
}

#[test]
fn one_length_and_one_host_and_no_other_grammar() {
    let served = Served::new();
    let host = served.address;
    let head =
        |lines: &str| format!("{}\r\n\r\n", lines.replace('\n', "\r\n").replace("HOST", &host.to_string()));
    for (lines, body) in [
        ("POST /api/objects HTTP/1.1\nHost: HOST\nContent-Length: 5\nContent-Length: 6", "hello"),
        ("POST /api/objects HTTP/1.1\nHost: HOST\nContent-Length: -5", "hello"),
        ("POST /api/objects HTTP/1.1\nHost: HOST\nContent-Length: 5, 6", "hello"),
        ("POST /api/objects HTTP/1.1\nHost: HOST\nTransfer-Encoding: gzip", "hello"),
        ("POST /api/objects HTTP/1.1\nHost: HOST\nTransfer-Encoding: chunked", "zz\r\n"),
        ("POST /api/objects HTTP/1.1\nHost: HOST\nTransfer-Encoding: chunked", "ffffffffffffffffff\r\n"),
        ("POST /api/objects HTTP/1.1\nHost: HOST\nHost: HOST", ""),
        ("POST /api/objects HTTP/1.1", ""),
        ("POST  /api/objects HTTP/1.1\nHost: HOST", ""),
        ("POST /api/objects HTTP/9.1\nHost: HOST", ""),
        ("PRI * HTTP/2.0", "SM\r\n\r\n"),
        ("\u{16}\u{3}\u{1}\u{2}", ""),
    ] {
        let answer = answered(&served, (head(lines) + body).as_bytes());
        assert!(matches!(status(&answer), 0 | 400), "{lines}: {}", String::from_utf8_lossy(&answer));
    }
    assert_eq!(served.get("/api/query").json()["records"].as_array().unwrap().len(), 0);
    for (method, target, expected) in [
        ("TRACE", "/healthz", 405),
        ("CONNECT", "example.com:80", 404),
        ("OPTIONS", "*", 404),
        ("GET", "/../../etc/passwd", 404),
        ("GET", "/api/objects/..%2F..%2Fetc%2Fpasswd", 400),
        ("GET", "/api/objects/%00", 400),
        ("GET", "/api/views/..%2f..%2fetc/dir?path=../../passwd", 404),
        ("BREW", "/api/objects", 405),
    ] {
        let answer = answered(&served, &request(host, method, target, "", b""));
        assert_eq!(status(&answer), expected, "{method} {target}");
    }
}

#[test]
fn requests_in_one_go_are_answered_one_after_the_other() {
    let served = Served::new();
    let oids: Vec<String> = (0..30).map(|number| served.put(format!("{number}").as_bytes(), "")).collect();
    let mut conversation = served.connect();
    let get = |oid: &String| request(served.address, "GET", &format!("/api/objects/{oid}"), "", b"");
    conversation.send(&oids.iter().flat_map(get).collect::<Vec<u8>>()).unwrap();
    for number in 0..oids.len() {
        assert_eq!(conversation.answer("GET").unwrap().body, number.to_string().as_bytes());
    }
}

#[test]
fn who_says_nothing_keeps_nobody_from_asking() {
    let served = Served::new();
    let silent: Vec<_> = (0..100).map(|_| served.connect()).collect();
    let oid = served.put(b"x", "");
    assert_eq!(served.get(&format!("/api/objects/{oid}")).body, b"x");
    drop(silent);
}

#[test]
fn who_is_too_slow_is_not_waited_for() {
    let fs = SimulatedFileSystem::new(1);
    let archive =
        Archive::init_on(Arc::new(fs.clone()), options(), Chunking::default(), &Rules::default()).unwrap();
    let oid = archive.put(&mut &*bytes(8, 24 << 20), &Metadata::default()).unwrap().oid;
    let served = Served::of(archive, fs, |settings| {
        settings.patience = Duration::from_millis(300);
        settings.most_connections = 1;
    });
    // There is one place: whoever comes next is heard when the one before is gone.
    let mut silent = served.connect();
    let mut beginning = served.connect();
    beginning.send(b"GET /healthz HTT").unwrap();
    let mut putting = served.connect();
    putting.send(&request(served.address, "POST", "/api/objects", "", &[0; 100])[..150]).unwrap();
    let mut taking = served.connect();
    taking.send(&request(served.address, "GET", &format!("/api/objects/{oid}"), "", b"")).unwrap();
    let mut last = served.connect();
    last.send(&request(served.address, "GET", "/healthz", "", b"")).unwrap();
    assert!(silent.has_ended());
    assert_eq!(putting.answer("POST").unwrap().refusal().0, 408);
    // Nothing of it was read until then.
    assert_eq!(last.answer("GET").unwrap().status, 200);
    assert!(taking.answer("GET").is_err());
    drop(beginning);
}

#[test]
fn who_has_no_password_is_told_nothing() {
    let served = Served::with(|settings| settings.login = Some(Login::new("me", "secret")));
    for (target, headers) in [
        ("/api/query", ""),
        ("/nothing", ""),
        ("/api/query", "Authorization: Basic bWU6\n"),
        ("/api/query", "Authorization: Basic bWU6c2VjcmV0\nAuthorization: Basic bWU6\nOrigin: http://x\n"),
    ] {
        let refused = served.ask("GET", target, headers, b"");
        assert!(matches!(refused.refusal().0, 401 | 403), "{refused:?}");
        assert!(!String::from_utf8_lossy(&refused.body).contains("secret"));
    }
    let refused = served.get("/api/schema");
    assert!(refused.headers["www-authenticate"].starts_with("Basic realm="));
    assert_eq!(served.get("/healthz").status, 200);
    assert_eq!(served.ask("GET", "/api/query", "Authorization: Basic bWU6c2VjcmV0\n", b"").status, 200);
    assert!(served.log.lock().unwrap().is_empty());
    for (open_to_all, status) in [(false, 403), (true, 200)] {
        let served = Served::with(|settings| settings.open_to_all = open_to_all);
        let mut conversation = served.connect();
        conversation.send(b"GET /api/query HTTP/1.1\r\nHost: elsewhere.example\r\n\r\n").unwrap();
        assert_eq!(conversation.answer("GET").unwrap().status, status);
    }
    let settings = Settings::new("0.0.0.0:0".parse().unwrap());
    assert!(matches!(Server::bind(settings.clone()), Err(ServeError::Open(_))));
    assert!(Server::bind(Settings { login: Some(Login::new("a", "b")), ..settings.clone() }).is_ok());
    assert!(Server::bind(Settings { open_to_all: true, ..settings }).is_ok());
}

//! WebDAV: what clients do, what none should, and what protections keep.

use crate::client::{bytes, Answer, Served};
use teak_archive::{Archive, Name};

const LOCK: &str = "<?xml version=\"1.0\"?><D:lockinfo xmlns:D=\"DAV:\"><D:lockscope><D:exclusive/></D:lockscope><D:locktype><D:write/></D:locktype><D:owner><D:href>me</D:href></D:owner></D:lockinfo>";

fn served() -> Served {
    let served = Served::new();
    let schema = r#"{"namespaces": {"m": {"artist": "string(20)", "track": "long", "title": "string(40)"}}}"#;
    assert_eq!(served.ask("PUT", "/api/schema", "", schema.as_bytes()).status, 200);
    let view = r#"{"pattern": "/{artist}/{track:02}-{title}", "condition": "track > 0"}"#;
    assert_eq!(served.ask("PUT", "/api/views/music", "", view.as_bytes()).status, 201);
    served
}

trait Dav {
    fn dav(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> Answer;
    fn status(&self, method: &str, path: &str, headers: &str) -> u16;
    fn write(&self, path: &str, body: &[u8]) -> u16;
    fn names(&self, path: &str) -> Vec<String>;
    fn oid(&self, path: &str) -> String;
}

impl Dav for Served {
    fn dav(&self, method: &str, path: &str, headers: &str, body: &[u8]) -> Answer {
        self.ask(method, &format!("/dav{path}"), headers, body)
    }

    fn status(&self, method: &str, path: &str, headers: &str) -> u16 {
        self.dav(method, path, headers, b"").status
    }

    fn write(&self, path: &str, body: &[u8]) -> u16 {
        self.dav("PUT", path, if body.is_empty() { "Content-Length: 0\n" } else { "" }, body).status
    }

    /// Addresses of what is in a directory.
    fn names(&self, path: &str) -> Vec<String> {
        let answer = self.dav("PROPFIND", path, "Depth: 1\n", b"");
        assert_eq!(answer.status, 207, "{path}: {answer:?}");
        let text = String::from_utf8(answer.body).unwrap();
        let hrefs = text.split("<D:response><D:href>").skip(2).map(|rest| rest.split('<').next().unwrap());
        hrefs.map(|href| href.trim_start_matches("/dav").to_string()).collect()
    }

    fn oid(&self, path: &str) -> String {
        let found = self.get(&format!("/api/query?q=system.path%20=%20'{path}'")).json();
        found["records"][0]["system.oid"].as_str().unwrap().to_string()
    }
}

#[test]
fn files_come_go_and_move_as_in_any_tree() {
    let served = served();
    let large = bytes(1, 700_000);
    assert_eq!(served.write("/files/a/b", b"1"), 409);
    assert_eq!(served.status("MKCOL", "/files/a", ""), 201);
    assert_eq!(served.status("MKCOL", "/files/a/", ""), 405);
    assert_eq!((served.write("/files/a/b%20%C3%A9", &large), served.write("/files/a/x", b"1")), (201, 201));
    let answer = served.dav("GET", "/files/a/b%20%C3%A9", "Range: bytes=5-9\n", b"");
    assert_eq!((answer.status, &answer.body[..]), (206, &large[5..10]));
    let tag = &answer.headers["etag"];
    assert!(tag.starts_with("\"b3:") && answer.headers.contains_key("last-modified"));
    assert_eq!(served.status("GET", "/files/a/b%20%C3%A9", &format!("If-None-Match: {tag}\n")), 304);
    assert_eq!(served.names("/files"), ["/files/a/"]);
    assert_eq!(served.names("/files/a/"), ["/files/a/b%20%C3%A9", "/files/a/x"]);
    assert_eq!(served.names("/"), ["/files/", "/views/"]);
    assert_eq!(served.names("/views"), ["/views/music/"]);
    for (headers, status) in [
        (format!("If-None-Match: {tag}\n"), 412),
        ("If-None-Match: *\n".into(), 412),
        ("If-Match: \"b3:0\"\n".into(), 412),
        ("Content-MD5: AAAAAAAAAAAAAAAAAAAAAA==\n".into(), 400),
        ("Content-Range: bytes 0-1/9\n".into(), 400),
        ("If: ([\"b3:0\"])\n".into(), 412),
        ("If: (\n".into(), 400),
        (format!("If-Match: {tag}\nIf: ([{tag}])\n"), 204),
    ] {
        assert_eq!(served.dav("PUT", "/files/a/b%20%C3%A9", &headers, b"other").status, status, "{headers}");
    }
    assert_eq!(served.dav("PUT", "/files/a/new", "If-Match: *\n", b"x").status, 412);
    let to = |path: &str| format!("Destination: /dav{path}\n");
    for (method, from, headers, status) in [
        ("COPY", "/files/a", to("/files/c"), 201),
        ("COPY", "/files/a", to("/files/c") + "Overwrite: F\n", 412),
        ("COPY", "/files/a", to("/files/c"), 204),
        ("COPY", "/files/a", to("/files/d") + "Depth: 0\n", 201),
        ("COPY", "/files/a", to("/files/a/b"), 403),
        ("COPY", "/files/a", to("/files/no/b"), 409),
        ("COPY", "/files/a", "Destination: http://elsewhere/dav/files/x\n".into(), 502),
        ("COPY", "/files/a", String::new(), 400),
        ("COPY", "/files/no", to("/files/e"), 404),
        ("COPY", "/files/a/x", to("/views/music/Bach/01-x"), 201),
        ("MOVE", "/files/a/x", to("/views/music/Bach/02-x"), 403),
        ("MOVE", "/files/a", to("/files/a"), 403),
        ("MOVE", "/files/a", to("/files/e") + "Depth: 0\n", 400),
        ("MOVE", "/files/a", to("/files/e"), 201),
        ("MOVE", "/files", to("/views/music/x"), 403),
        ("DELETE", "/files", String::new(), 403),
        ("DELETE", "/files/d", "Depth: 0\n".into(), 400),
        ("DELETE", "/files/d", String::new(), 204),
        ("DELETE", "/files/d", String::new(), 404),
        ("MKCOL", "/views/other", String::new(), 403),
    ] {
        assert_eq!(served.status(method, from, &headers), status, "{method} {from} {headers}");
    }
    assert_eq!(served.names("/files"), ["/files/c/", "/files/e/"]);
    let deep = served.dav("PROPFIND", "/files", "Depth: infinity\n", b"");
    assert_eq!(String::from_utf8(deep.body).unwrap().matches("<D:response>").count(), 7);
    assert_eq!(served.dav("GET", "/files/c/b%20%C3%A9", "", b"").body, b"other");
    assert!(String::from_utf8(served.get("/dav/files/c/").body)
        .unwrap()
        .contains("<a href=\"/dav/files/c/x\">x</a>"));
    served.end();
}

#[test]
fn paths_of_a_view_are_fields_and_the_reason_is_told_if_they_do_not_fit() {
    let served = served();
    assert_eq!(
        (served.write("/views/music/Bach/03-Air", b"air"), served.write("/views/music/Bach/03-Air", b"2")),
        (201, 204)
    );
    assert_eq!(served.status("MKCOL", "/views/music/Verdi", ""), 201);
    assert_eq!(served.status("MKCOL", "/views/music/Verdi/x", ""), 409);
    assert_eq!(served.names("/views/music/"), ["/views/music/Bach/", "/views/music/Verdi/"]);
    let headers = "Destination: /dav/views/music/Verdi/04-Aria%2525\n";
    assert_eq!(served.status("MOVE", "/views/music/Bach/03-Air", headers), 201);
    let found = served.get("/api/query?q=artist%20=%20'Verdi'&fields=track,title").json();
    assert_eq!(found["records"], serde_json::json!([{"m.track": 4, "m.title": "Aria%"}]));
    assert_eq!(served.status("COPY", "/views/music/Verdi", "Destination: /dav/views/music/Boito\n"), 201);
    assert_eq!(served.dav("GET", "/views/music/Boito/04-Aria%2525", "", b"").body, b"2");
    for (path, reason) in [
        ("Bach/x-Air", "'x' is no long"),
        ("Bach/3-Air", "would be Bach/03-Air"),
        ("Bach/00-Air", "does not satisfy the view"),
        ("Bach/Air", "is not as"),
        ("Air", "in this view files are below 1 directories"),
        ("a%20name%20that%20is%20too%20long/03-x", "too long"),
    ] {
        let refused = served.dav("PUT", &format!("/views/music/{path}"), "", b"x").refusal();
        assert!(refused.0 == 409 && refused.1.contains(reason), "{path}: {refused:?}");
    }
    assert_eq!(served.status("GET", "/views/none/", ""), 404);
    assert_eq!(served.status("DELETE", "/views/music/Verdi", ""), 204);
    assert_eq!(served.names("/views/music/"), ["/views/music/Boito/"]);
    served.end();
}

fn token(answer: &Answer) -> String {
    answer.headers["lock-token"].trim_matches(['<', '>']).to_string()
}

/// As Finder saves a file: it is there, empty, before it is locked and has its bytes.
#[test]
fn what_macos_does_goes_well_and_leaves_nothing_beside_the_file() {
    let served = served();
    assert_eq!(served.status("PROPFIND", "/files/a.txt", "Depth: 0\n"), 404);
    assert_eq!(served.write("/files/a.txt", b""), 201);
    let lock = served.dav("LOCK", "/files/a.txt", "Depth: 0\nTimeout: Second-600\n", LOCK.as_bytes());
    assert_eq!(lock.status, 200);
    let with = format!("If: (<{}>)\n", token(&lock));
    assert_eq!(served.dav("PUT", "/files/a.txt", "", b"other").status, 423);
    assert_eq!(served.dav("PUT", "/files/a.txt", &with, b"text").status, 204);
    assert_eq!(served.dav("GET", "/files/a.txt", "", b"").body, b"text");
    for beside in ["/files/._a.txt", "/files/.DS_Store"] {
        assert_eq!(served.status("PROPFIND", beside, "Depth: 0\n"), 404);
        assert_eq!((served.write(beside, b""), served.write(beside, b"finder")), (201, 204));
        let lock = served.dav("LOCK", beside, "", LOCK.as_bytes());
        let headers = format!("Lock-Token: <{}>\n", token(&lock));
        assert_eq!(served.status("UNLOCK", beside, &headers), 204);
        assert_eq!(served.dav("GET", beside, "", b"").body, b"finder");
        assert_eq!(served.status("PROPFIND", beside, "Depth: 0\n"), 207);
    }
    assert_eq!(served.status("MOVE", "/files/._a.txt", "Destination: /dav/files/._b.txt\n"), 201);
    assert_eq!(served.status("MOVE", "/files/a.txt", "Destination: /dav/files/._a.txt\n"), 423);
    assert_eq!(served.status("UNLOCK", "/files/a.txt", &format!("Lock-Token: <{}>\n", token(&lock))), 204);
    assert_eq!(served.status("MOVE", "/files/a.txt", "Destination: /dav/files/._a.txt\n"), 403);
    assert_eq!(served.names("/files"), ["/files/a.txt"]);
    assert_eq!(served.get("/api/query").json()["records"].as_array().unwrap().len(), 1);
    assert_eq!(served.status("DELETE", "/files/._b.txt", ""), 204);
    assert_eq!(served.status("DELETE", "/files/._b.txt", ""), 404);
    served.end();
}

/// As Explorer does: a LOCK without a depth makes the file, and its times are properties.
#[test]
fn what_windows_does_goes_well() {
    let served = served();
    let options = served.ask("OPTIONS", "/", "", b"");
    assert_eq!(
        (options.status, &*options.headers["dav"], &*options.headers["ms-author-via"]),
        (200, "1, 2", "DAV")
    );
    let lock = served.dav("LOCK", "/files/New.txt", "Timeout: Second-3600\n", LOCK.as_bytes());
    assert_eq!(lock.status, 201);
    let with = format!("If: (<{}>)\n", token(&lock));
    assert_eq!(served.dav("PUT", "/files/New.txt", &with, b"text").status, 204);
    let times = "<?xml version=\"1.0\" encoding=\"utf-8\" ?><D:propertyupdate xmlns:D=\"DAV:\" xmlns:Z=\"urn:schemas-microsoft-com:\"><D:set><D:prop><Z:Win32CreationTime>Fri, 13 Feb 2009 23:31:30 GMT</Z:Win32CreationTime><Z:Win32LastModifiedTime>Fri, 13 Feb 2009 23:31:30 GMT</Z:Win32LastModifiedTime><Z:Win32FileAttributes>00000020</Z:Win32FileAttributes></D:prop></D:set></D:propertyupdate>";
    assert_eq!(served.dav("PROPPATCH", "/files/New.txt", "", times.as_bytes()).status, 423);
    let answer = served.dav("PROPPATCH", "/files/New.txt", &with, times.as_bytes());
    assert!(answer.status == 207 && String::from_utf8(answer.body).unwrap().contains("HTTP/1.1 200 OK"));
    let all = String::from_utf8(served.dav("PROPFIND", "/files/New.txt", "Depth: 0\n", b"").body).unwrap();
    for part in [
        "<D:getlastmodified>Fri, 13 Feb 2009 23:31:30 GMT</D:getlastmodified>",
        "<Win32FileAttributes xmlns=\"urn:schemas-microsoft-com:\">00000020</Win32FileAttributes>",
        "<D:getcontentlength>4</D:getcontentlength>",
        "<D:depth>infinity</D:depth><owner xmlns=\"DAV:\"><href>me</href></owner>",
    ] {
        assert!(all.contains(part), "{part}: {all}");
    }
    assert_eq!(served.dav("GET", "/files/New.txt", "", b"").body, b"text");
    assert_eq!(served.dav("LOCK", "/files/New.txt", &with, b"").status, 200);
    assert_eq!(served.dav("LOCK", "/files/New.txt", "", b"").status, 412);
    let token = format!("Lock-Token: <{}>\n", token(&lock));
    assert_eq!(
        (
            served.status("UNLOCK", "/files/New.txt", &token),
            served.status("UNLOCK", "/files/New.txt", &token)
        ),
        (204, 409)
    );
    served.end();
}

#[test]
fn locks_of_directories_keep_out_who_changes_what_is_in_them() {
    let served = served();
    served.status("MKCOL", "/files/d", "");
    served.write("/files/d/x", b"1");
    served.write("/files/y", b"1");
    let lock = served.dav("LOCK", "/files/d", "Depth: infinity\n", LOCK.as_bytes());
    let with = format!("If: </dav/files/d> (<{}>)\n", token(&lock));
    let over = "Destination: /dav/files/d/x\n";
    for (method, path, headers) in [
        ("PUT", "/files/d/x", "Content-Length: 0\n"),
        ("PUT", "/files/d/new", "Content-Length: 0\n"),
        ("MKCOL", "/files/d/new", ""),
        ("DELETE", "/files/d/x", ""),
        ("MOVE", "/files/d/x", "Destination: /dav/files/z\n"),
        ("MOVE", "/files/y", over),
        ("COPY", "/files/y", over),
        ("DELETE", "/files/d", ""),
    ] {
        assert_eq!(served.status(method, path, headers), 423, "{method} {path}");
    }
    assert_eq!(served.status("COPY", "/files/d/x", "Destination: /dav/files/z\n"), 201);
    assert_eq!(served.status("GET", "/files/d/x", ""), 200);
    assert_eq!(served.status("COPY", "/files/y", &format!("{over}{with}")), 204);
    assert_eq!(served.status("DELETE", "/files/d", &with), 204);
    assert_eq!(served.status("MKCOL", "/files/d", ""), 201);
    assert_eq!(served.write("/files/d/x", b"1"), 201);
    served.end();
}

#[test]
fn xml_that_wants_more_than_it_says_is_refused() {
    let served = served();
    served.write("/files/x", b"1");
    let bomb = "<!DOCTYPE a [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;\">]><D:propertyupdate xmlns:D=\"DAV:\"><D:set><D:prop><x>&b;</x></D:prop></D:set></D:propertyupdate>";
    let outside = "<!DOCTYPE a [<!ENTITY a SYSTEM \"file:///etc/passwd\">]><D:propfind xmlns:D=\"DAV:\"><D:allprop>&a;</D:allprop></D:propfind>";
    let deep = format!(
        "<D:propfind xmlns:D=\"DAV:\"><D:prop>{}{}</D:prop></D:propfind>",
        "<a>".repeat(10_000),
        "</a>".repeat(10_000)
    );
    for (method, body) in [
        ("PROPPATCH", bomb),
        ("PROPFIND", outside),
        ("PROPFIND", &deep),
        ("PROPFIND", "<a/>"),
        ("LOCK", "<"),
        ("PROPPATCH", ""),
    ] {
        assert_eq!(served.dav(method, "/files/x", "Depth: 0\n", body.as_bytes()).status, 400, "{body:.60}");
    }
    let mut conversation = served.connect();
    let head = format!(
        "PROPPATCH /dav/files/x HTTP/1.1\r\nHost: {}\r\nContent-Length: 100000000\r\n\r\n",
        served.address
    );
    conversation.send(head.as_bytes()).unwrap();
    let _ = conversation.send(&vec![b' '; 1 << 20]);
    assert_eq!(conversation.answer("PROPPATCH").unwrap().status, 413);
    let many = (0..6).map(|number| format!("<p{number} xmlns=\"x\">{}</p{number}>", "v".repeat(60_000)));
    let statuses = many.map(|property| {
        let body = format!("<D:propertyupdate xmlns:D=\"DAV:\"><D:set><D:prop>{property}</D:prop></D:set></D:propertyupdate>");
        served.dav("PROPPATCH", "/files/x", "", body.as_bytes()).status
    });
    assert_eq!(statuses.collect::<Vec<_>>(), [207, 207, 207, 207, 507, 507]);
    for path in ["/files/../x", "/files/%2e%2e/x", "/files/a%2Fb", "/files/a%00b", "/files/%ff", "/files/."] {
        assert_eq!((served.write(path, b"x"), served.status("PROPFIND", path, "")), (400, 400), "{path}");
    }
    assert_eq!(served.write(&format!("/files/{}", "d/".repeat(5_000)), b"x"), 409);
    assert_eq!(served.write(&format!("/files/{}", "n".repeat(300)), b"x"), 409);
    assert!(served.log.lock().unwrap().is_empty());
    served.end();
}

/// What would take `d/f` away, or change it: method, path, headers.
const DOORS: [(&str, &str, &str); 10] = [
    ("DELETE", "/files/d/f", ""),
    ("DELETE", "/files/d", ""),
    ("PUT", "/files/d/f", "Content-Length: 0\n"),
    ("MOVE", "/files/d/f", "Destination: /dav/files/d/g\n"),
    ("MOVE", "/files/d", "Destination: /dav/files/e\n"),
    ("MOVE", "/files/other", "Destination: /dav/files/d/f\n"),
    ("MOVE", "/files/other", "Destination: /dav/files/d\n"),
    ("COPY", "/files/other", "Destination: /dav/files/d/f\n"),
    ("COPY", "/files/other", "Destination: /dav/files/d\n"),
    ("MOVE", "/views/paths/d/f", "Destination: /dav/views/paths/z/f\n"),
];

#[test]
fn no_door_passes_a_protection_and_nothing_beside_it_goes() {
    for protection in ["holds/case", "retention"] {
        let served = served();
        let view = r#"{"pattern": "/{artist}/{title}"}"#;
        assert_eq!(served.ask("PUT", "/api/views/paths", "", view.as_bytes()).status, 201);
        served.put(b"evidence", "?meta=system.path=d/f&meta=artist=d&meta=title=f");
        served.put(b"beside", "?meta=system.path=d/beside&meta=artist=d&meta=title=beside");
        served.put(b"other", "?meta=system.path=other");
        let oid = served.oid("d/f");
        let body = if protection == "retention" { &b"{\"until\": \"2999-01-01\"}"[..] } else { b"" };
        assert_eq!(served.ask("PUT", &format!("/api/objects/{oid}/{protection}"), "", body).status, 204);
        let of_view = [
            ("DELETE", "/views/paths/d/f", ""),
            ("DELETE", "/views/paths/d", ""),
            ("PUT", "/views/paths/d/f", "Content-Length: 0\n"),
            ("MOVE", "/views/paths/d", "Destination: /dav/views/paths/e\n"),
        ];
        for (method, path, headers) in DOORS.iter().chain(&of_view) {
            assert_eq!(served.status(method, path, headers), 423, "{protection}: {method} {path} {headers}");
        }
        let patch = "<D:propertyupdate xmlns:D=\"DAV:\"><D:set><D:prop><x xmlns=\"x\">1</x></D:prop></D:set></D:propertyupdate>";
        let answer = served.dav("PROPPATCH", "/files/d/f", "", patch.as_bytes());
        assert!(String::from_utf8(answer.body).unwrap().contains("HTTP/1.1 423 Locked"));
        assert_eq!(served.dav("GET", "/files/d/f", "", b"").body, b"evidence");
        assert_eq!(served.names("/files"), ["/files/d/", "/files/other"]);
        assert_eq!(served.names("/files/d"), ["/files/d/beside", "/files/d/f"]);
        let archive: Archive = served.end();
        let Name::Record(oid) = oid.parse().unwrap() else { panic!() };
        assert_eq!(archive.record(oid).unwrap().version, 1);
    }
}

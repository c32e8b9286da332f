//! What the API does.

use crate::client::{bytes, request, Served};
use serde_json::json;

const SCHEMA: &[u8] =
    br#"{"namespaces": {"music": {"artist": "string(20)", "track": "long", "tags": "list of string(9)"}},
    "indexes": [["music.artist", "music.track"]]}"#;

fn served() -> Served {
    let served = Served::new();
    assert_eq!(served.ask("PUT", "/api/schema", "", SCHEMA).status, 200);
    served
}

#[test]
fn what_is_put_comes_back_with_its_names_and_metadata() {
    let served = served();
    let headers = "Content-Type: audio/ogg\nTeak-Metadata: {\"track\": 3, \"tags\": [\"x\", \"y\"]}\n";
    let target = "/api/objects?meta=artist=Bach&meta=file.name=a%20%22b%C3%A9.ogg";
    let put = served.ask("POST", target, headers, b"hello");
    assert_eq!(put.status, 201, "{put:?}");
    let told = put.json();
    let (oid, data) = (told["oid"].as_str().unwrap(), told["data"].as_str().unwrap());
    assert_eq!(
        (&put.headers["location"], &put.headers["etag"]),
        (&format!("/api/objects/{oid}"), &format!("\"{data}\""))
    );
    assert_eq!((told["size"].clone(), told["was_there"].clone()), (json!(5), json!(false)));
    for name in [oid, data] {
        let got = served.get(&format!("/api/objects/{name}"));
        assert_eq!(
            (got.status, &got.body[..], &got.headers["etag"]),
            (200, &b"hello"[..], &format!("\"{data}\""))
        );
        let head = served.ask("HEAD", &format!("/api/objects/{name}"), "", b"");
        assert_eq!((head.status, &*head.headers["content-length"]), (200, "5"));
    }
    let got = served.get(&put.headers["location"]);
    assert_eq!(got.headers["content-type"], "audio/ogg");
    assert_eq!(got.headers["content-disposition"], "inline; filename*=UTF-8''a%20%22b%C3%A9.ogg");
    assert!(got.headers["content-security-policy"].contains("sandbox"));
    let meta = served.get(&format!("/api/objects/{oid}/meta"));
    assert_eq!(meta.headers["etag"], "\"1\"");
    let meta = meta.json();
    assert_eq!(
        (&meta["music.track"], &meta["music.tags"], &meta["versions"]),
        (&json!(3), &json!(["x", "y"]), &json!([1]))
    );
    assert_eq!(meta["data"]["records"], json!([oid]));
    assert_eq!(served.get(&format!("/api/objects/{data}/meta")).json()["system.size"], json!(5));
    let again = served
        .ask("POST", "/api/objects", "Content-Type: application/x-www-form-urlencoded\n", b"hello")
        .json();
    assert_eq!((&again["data"], &again["was_there"]), (&json!(data), &json!(true)));
    let meta = served.get(&format!("/api/objects/{}/meta", again["oid"].as_str().unwrap())).json();
    assert!(meta.get("system.content_type").is_none(), "what curl says when it is told nothing: {meta}");
}

#[test]
fn large_ones_are_streamed_both_ways_also_without_a_length() {
    let served = Served::new();
    let whole = bytes(1, 3_000_000);
    let oid = served.put(&whole, "");
    assert!(served.get(&format!("/api/objects/{oid}")).body == whole);
    let mut conversation = served.connect();
    let head = format!(
        "POST /api/objects HTTP/1.1\r\nHost: {}\r\nTransfer-Encoding: chunked\r\n\r\n",
        served.address
    );
    conversation.send(head.as_bytes()).unwrap();
    for part in whole.chunks(70_001) {
        conversation.send(format!("{:x}\r\n", part.len()).as_bytes()).unwrap();
        conversation.send(part).unwrap();
        conversation.send(b"\r\n").unwrap();
    }
    conversation.send(b"0\r\n\r\n").unwrap();
    let put = conversation.answer("POST").unwrap();
    assert_eq!((put.status, &put.json()["was_there"]), (201, &json!(true)));
    // The connection goes on.
    conversation.send(&request(served.address, "GET", &put.headers["location"], "", b"")).unwrap();
    assert!(conversation.answer("GET").unwrap().body == whole);
    served.end();
}

#[test]
fn parts_and_conditions() {
    let served = Served::new();
    let whole = bytes(2, 200_000);
    let target = format!("/api/objects/{}", served.put(&whole, ""));
    let tag = served.ask("HEAD", &target, "", b"").headers["etag"].clone();
    for (range, from, to) in
        [("5-9", 5, 10), ("199990-", 199_990, 200_000), ("-7", 199_993, 200_000), ("0-999999", 0, 200_000)]
    {
        let got = served.ask("GET", &target, &format!("Range: bytes={range}\nIf-Range: {tag}\n"), b"");
        assert_eq!((got.status, got.body == whole[from..to]), (206, true), "{range}");
        assert_eq!(got.headers["content-range"], format!("bytes {from}-{}/200000", to - 1));
    }
    let behind = served.ask("GET", &target, "Range: bytes=200000-\n", b"");
    assert_eq!((behind.refusal().0, &*behind.headers["content-range"]), (416, "bytes */200000"));
    assert_eq!(
        served.ask("GET", &target, "Range: bytes=0-0\nIf-Range: \"other\"\n", b"").body.len(),
        200_000
    );
    let same = served.ask("GET", &target, &format!("If-None-Match: {tag}\n"), b"");
    assert_eq!((same.status, same.body.len(), &same.headers["etag"]), (304, 0, &tag));
    assert_eq!(served.ask("GET", &target, "If-Match: \"other\"\n", b"").refusal().0, 412);
    assert_eq!(served.ask("DELETE", &target, "If-Match: \"other\"\n", b"").refusal().0, 412);
    assert_eq!(served.ask("DELETE", &target, &format!("If-Match: {tag}\n"), b"").status, 204);
    assert_eq!(served.get(&target).refusal().0, 404);
}

#[test]
fn bytes_that_are_not_those_that_were_meant_are_not_kept() {
    let served = Served::new();
    let large = bytes(3, 700_000);
    let name = teak_archive::Digest::of(b"hello").to_string();
    for (target, header, body, field) in [
        (
            "?data=b3:0000000000000000000000000000000000000000000000000000000000000000",
            "",
            &b"hello"[..],
            "data",
        ),
        ("", "Content-MD5: AAAAAAAAAAAAAAAAAAAAAA==\n", b"hello", "Content-MD5"),
        ("", "Content-MD5: XUFAKrxLKna5cZ2REBfFkg==\n", &large, "Content-MD5"),
        ("", "Content-MD5: XUFA\n", b"hello", "Content-MD5"),
        ("", "Digest: sha-256=AAAA\n", b"hello", "Digest"),
        ("", "Digest: crc32c=AAAA\n", b"hello", "Digest"),
        ("", "Content-Digest: sha-256=AAAA\n", b"hello", "Content-Digest"),
        ("", "Repr-Digest: sha-512=:AAAA:\n", b"hello", "Repr-Digest"),
        ("?data=hello", "", b"hello", "data"),
    ] {
        let refused = served.ask("POST", &format!("/api/objects{target}"), header, body);
        assert_eq!((refused.refusal().0, refused.field()), (400, field.to_string()), "{refused:?}");
    }
    assert_eq!(served.get("/api/query").json()["records"], json!([]));
    let all = "Content-MD5: XUFAKrxLKna5cZ2REBfFkg==\nDigest: SHA-256=LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=,\
        md5=XUFAKrxLKna5cZ2REBfFkg==\nContent-Digest: sha-256=:LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=:\n";
    let put = served.ask("POST", &format!("/api/objects?data={name}"), all, b"hello");
    assert_eq!((put.status, &put.json()["was_there"]), (201, &json!(false)), "{put:?}");
    let archive = served.end();
    archive.collect(Some(0), &|| false).unwrap();
    assert_eq!(
        archive.engine().snapshot().rows(archive.engine().open_table("chunks").unwrap().tree(0)).count(),
        1
    );
}

#[test]
fn metadata_changes_from_the_version_that_was_seen() {
    let served = served();
    let target = format!("/api/objects/{}/meta", served.put(b"x", "?meta=artist=Bach&meta=tags=a"));
    let change = |header: &str, body: &str| served.ask("PATCH", &target, header, body.as_bytes());
    let changed = change("If-Match: \"1\"\n", r#"{"track": 4, "artist": null, "tags": ["b", "c"]}"#);
    assert_eq!(
        (changed.status, changed.json(), &*changed.headers["etag"]),
        (200, json!({ "version": 2 }), "\"2\"")
    );
    assert_eq!(change("If-Match: \"1\"\n", "{}").refusal().0, 412);
    assert_eq!(change("If-Match: \"1\", \"2\"\n", r#"{"tags": []}"#).json()["version"], 3);
    let old = served.get(&format!("{target}?version=1")).json();
    assert_eq!((&old["music.artist"], &old["versions"]), (&json!("Bach"), &json!([1, 2, 3])));
    assert_eq!(served.get(&format!("{target}?version=7")).refusal().0, 404);
    for (body, status, field) in [
        (r#"{"track": "four"}"#, 422, "music.track"),
        (r#"{"trakc": 4}"#, 422, "trakc"),
        (r#"{"artist": "much longer than 20 characters"}"#, 422, "music.artist"),
        (r#"{"system.size": 4}"#, 422, "system.size"),
        (r#"{"track": {"a": 1}}"#, 400, "track"),
        (r#"{"tags": [["a"]]}"#, 400, "tags"),
        ("[]", 400, ""),
        ("{", 400, ""),
    ] {
        let refused = change("", body);
        assert_eq!((refused.refusal().0, &*refused.field()), (status, field), "{body}");
    }
    let refused = served.ask("POST", "/api/objects?meta=track=four", "", b"x");
    assert_eq!((refused.refusal().0, &*refused.field()), (422, "music.track"));
}

#[test]
fn queries_have_pages() {
    let served = served();
    let mut oids: Vec<String> = Vec::new();
    for track in 1..=7 {
        oids.push(
            served.put(format!("{track}").as_bytes(), &format!("?meta=artist=Bach&meta=track={track}")),
        );
    }
    let (mut found, mut cursor) = (Vec::new(), String::new());
    loop {
        let page = served
            .get(&format!("/api/query?q=artist%20=+Bach&limit=3&fields=track&order=track:desc{cursor}"))
            .json();
        found.extend(page["records"].as_array().unwrap().iter().map(|record| record["music.track"].clone()));
        let Some(next) = page["cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    assert_eq!(json!(found), json!([7, 6, 5, 4, 3, 2, 1]));
    assert_eq!(
        served.get("/api/query?q=artist+%3D+Bach&explain=true").json()["plan"][0],
        "index (music.artist =, music.track), 1 range"
    );
    for (target, field) in [
        ("q=artist+%3D%3D", ""),
        ("q=nobody+=+1", "nobody"),
        ("fields=nobody", "nobody"),
        ("limit=0", "limit"),
        ("limit=x", "limit"),
        ("limit=99999", "limit"),
        ("cursor=00", ""),
        ("query=x", "query"),
        ("q=%ff", ""),
        ("q=a&q=b", "q"),
    ] {
        let refused = served.get(&format!("/api/query?{target}"));
        assert_eq!((refused.refusal().0, &*refused.field()), (400, field), "{target}");
    }
}

#[test]
fn views_have_directories_and_files() {
    let served = served();
    let put =
        |track| served.put(format!("{track}").as_bytes(), &format!("?meta=artist=Bach&meta=track={track}"));
    let oids: Vec<String> = (1..=7).map(put).collect();
    let view = br#"{"pattern": "/{artist}/{track:02}", "condition": "track > 2"}"#;
    assert_eq!(served.ask("PUT", "/api/views/by%2Fartist", "", view).status, 201);
    assert_eq!(served.ask("PUT", "/api/views/by%2Fartist", "", view).refusal().0, 409);
    assert_eq!(served.get("/api/views").json()["views"][0]["name"], "by/artist");
    assert_eq!(
        served.get("/api/views/by%2Fartist/dir").json()["items"],
        json!([{ "name": "Bach", "type": "directory" }])
    );
    let page = served.get("/api/views/by%2Fartist/dir?path=/Bach&limit=2").json();
    let file =
        |at: usize| json!({ "name": format!("0{}", at + 1), "type": "file", "oid": oids[at], "size": 1 });
    assert_eq!(page["items"], json!([file(2), file(3)]));
    let page = served
        .get(&format!("/api/views/by%2Fartist/dir?path=Bach&cursor={}", page["cursor"].as_str().unwrap()))
        .json();
    assert_eq!((&page["items"], &page["cursor"]), (&json!([file(4), file(5), file(6)]), &json!(null)));
    for (target, status) in [
        ("nothing/dir", 404),
        ("by%2Fartist/dir?path=/Nobody", 404),
        ("by%2Fartist/dir?path=/../x", 400),
        ("by%2Fartist/dir?cursor=xyz", 400),
        ("..%2F..%2Fetc/dir", 404),
    ] {
        assert_eq!(served.get(&format!("/api/views/{target}")).refusal().0, status, "{target}");
    }
    let file = |path: &str, range: &str| {
        served.ask("GET", &format!("/api/views/by%2Fartist/file?path={path}"), range, b"")
    };
    assert_eq!((file("Bach/03", "").body, file("/Bach/99", "").refusal().0), (b"3".to_vec(), 404));
    assert_eq!(file("Bach/03", "Range: bytes=0-0\n").status, 206);
    let oid = served.put(b"new", "?view=by/artist&path=/Mahler/04&meta=tags=x");
    let meta = served.get(&format!("/api/objects/{oid}/meta")).json();
    assert_eq!((&meta["music.artist"], &meta["music.track"]), (&json!("Mahler"), &json!(4)));
    for (parameters, status) in [
        ("view=by/artist", 400),
        ("view=by/artist&path=/Mahler", 409),
        ("view=by/artist&path=/Mahler/four", 422),
        ("view=by/artist&path=/Mahler/04&meta=track=5", 422),
        ("view=nobody&path=/x", 404),
    ] {
        assert_eq!(
            served.ask("POST", &format!("/api/objects?{parameters}"), "", b"x").refusal().0,
            status,
            "{parameters}"
        );
    }
    assert_eq!(served.ask("DELETE", "/api/views/by%2Fartist", "", b"").status, 204);
    assert_eq!(served.ask("DELETE", "/api/views/by%2Fartist", "", b"").refusal().0, 404);
}

#[test]
fn schemas_are_set_as_a_whole_and_refused_with_a_reason() {
    let served = served();
    let shown = served.get("/api/schema");
    assert_eq!(shown.json()["namespaces"]["music"]["track"]["type"], "long");
    let tag = &shown.headers["etag"];
    served.put(b"x", "?meta=artist=Bach");
    let shorter = br#"{"namespaces": {"music": {"artist": "string(3)"}}}"#;
    assert_eq!(served.ask("PUT", "/api/schema", "", shorter).refusal().0, 422);
    assert_eq!(served.ask("PUT", "/api/schema", "", b"{\"fields\": 1}").refusal().0, 400);
    let wider = br#"{"namespaces": {"music": {"artist": "string(30)"}}}"#;
    assert_eq!(served.ask("PUT", "/api/schema", "If-Match: \"77\"\n", wider).refusal().0, 412);
    assert_eq!(served.ask("PUT", "/api/schema", &format!("If-Match: {tag}\n"), wider).status, 200);
    assert_eq!(served.ask("PUT", "/api/schema", &format!("If-Match: {tag}\n"), wider).refusal().0, 412);
}

#[test]
fn rules_are_set_and_what_was_done_is_told() {
    let served = Served::new();
    assert_eq!(served.get("/api/audit").json()["entries"], json!([]));
    let rules = br#"{"grace_seconds": 60, "keep_versions": 2}"#;
    assert_eq!(served.ask("PUT", "/api/rules", "", rules).json(), served.get("/api/rules").json());
    assert_eq!(served.get("/api/rules").json()["keep_versions"], 2);
    assert_eq!(served.ask("PUT", "/api/rules", "", b"{\"grace_seconds\": 1}").refusal().0, 400);
    let oid = served.put(b"x", "");
    assert_eq!(served.ask("DELETE", &format!("/api/objects/{oid}"), "", b"").status, 204);
    let told = served.get("/api/audit").json();
    let actions: Vec<_> = told["entries"].as_array().unwrap().iter().map(|entry| &entry["action"]).collect();
    assert_eq!((json!(actions), &told["entries"][1]["object"]), (json!(["rules", "remove"]), &json!(oid)));
    assert_eq!(served.get("/api/audit?since=2100-01-01").json()["entries"], json!([]));
    assert_eq!(served.get("/api/audit?since=soon").field(), "since");
}

#[test]
fn what_is_protected_stays() {
    let served = served();
    let oid = served.put(b"x", "?meta=artist=Bach");
    let data =
        served.get(&format!("/api/objects/{oid}/meta")).json()["system.data"].as_str().unwrap().to_string();
    let (record, of_data) = (format!("/api/objects/{oid}"), format!("/api/objects/{data}"));
    let refused = |what: &str| {
        assert_eq!(served.ask("DELETE", &record, "", b"").refusal().0, 423, "{what}");
        assert_eq!(served.ask("POST", "/api/jobs", "", br#"{"kind": "gc", "grace": 0}"#).status, 202);
        assert_eq!(served.get(&record).body, b"x");
        while served.get("/api/jobs").json()["jobs"]
            .as_array()
            .unwrap()
            .iter()
            .any(|job| job["state"] == "running")
        {}
    };
    assert_eq!(served.ask("PUT", &format!("{record}/holds/case%2017%2F2"), "", b"").status, 204);
    refused("a hold");
    assert_eq!(served.ask("PATCH", &format!("{record}/meta"), "", b"{\"artist\": \"x\"}").refusal().0, 423);
    assert_eq!(served.ask("PUT", "/api/schema", "", b"{}").refusal().0, 423, "it would lose a field");
    assert_eq!(served.get(&format!("{record}/meta")).json()["holds"], json!(["case 17/2"]));
    assert_eq!(served.ask("DELETE", &format!("{record}/holds/other"), "", b"").refusal().0, 404);
    assert_eq!(served.ask("DELETE", &format!("{record}/holds/case%2017%2F2"), "", b"").status, 204);
    assert_eq!(served.ask("PUT", &format!("{of_data}/holds/a"), "", b"").status, 204);
    refused("a hold of the data");
    assert_eq!(served.ask("DELETE", &format!("{of_data}/holds/a"), "", b"").status, 204);
    let retain = |until: &str| {
        served.ask(
            "PUT",
            &format!("{record}/retention"),
            "",
            format!("{{\"until\": \"{until}\"}}").as_bytes(),
        )
    };
    assert_eq!(retain("2100-01-01").status, 204);
    assert_eq!(retain("2099-01-01").refusal().0, 409);
    assert_eq!(retain("soon").field(), "until");
    refused("retention");
    assert_eq!(served.ask("DELETE", &of_data, "", b"").refusal().0, 400, "data goes with its records");
}

#[test]
fn gc_and_scrub_are_jobs_whose_state_is_told() {
    let served = Served::new();
    let oid = served.put(&bytes(4, 20_000), "");
    served.put(b"stays", "");
    assert_eq!(served.ask("DELETE", &format!("/api/objects/{oid}"), "", b"").status, 204);
    let ended = |task: &str| {
        let begun = served.ask("POST", "/api/jobs", "", task.as_bytes());
        assert_eq!(begun.status, 202, "{begun:?}");
        loop {
            let job = served.get(&begun.headers["location"]);
            assert_eq!(job.status, 200);
            let job = job.json();
            if !job["ended"].is_null() {
                return job;
            }
        }
    };
    let gc = ended(r#"{"kind": "gc", "grace": 0}"#);
    assert_eq!(
        (&gc["state"], &gc["result"]["data"], &gc["result"]["bytes"]),
        (&json!("done"), &json!(1), &json!(20_000))
    );
    let scrub = ended(r#"{"kind": "scrub", "rate": 1000000000}"#);
    assert_eq!(
        (&scrub["state"], &scrub["result"]["chunks"], &scrub["result"]["damaged"]),
        (&json!("done"), &json!(1), &json!(0))
    );
    // One that has to wait for its rate is stopped.
    served.put(&bytes(5, 10_000), "");
    let slow = served.ask("POST", "/api/jobs", "", br#"{"kind": "scrub", "rate": 1}"#);
    let job = slow.headers["location"].clone();
    assert_eq!(served.ask("DELETE", &job, "", b"").status, 202);
    while served.get(&job).json()["state"] == "running" {}
    for (task, status) in [
        ("{}", 400),
        (r#"{"kind": "rm"}"#, 400),
        (r#"{"kind": "gc", "rate": 1}"#, 400),
        (r#"{"kind": "gc", "grace": -1}"#, 400),
        (r#"{"kind": "scrub", "rate": 0}"#, 400),
    ] {
        assert_eq!(served.ask("POST", "/api/jobs", "", task.as_bytes()).refusal().0, status, "{task}");
    }
    assert_eq!(served.get("/api/jobs/99").refusal().0, 404);
    assert_eq!(served.get("/api/jobs").json()["jobs"].as_array().unwrap().len(), 3);
}

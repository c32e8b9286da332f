//! Uploads in several requests.

use crate::client::{bytes, request, Served};
use serde_json::json;
use std::net::Shutdown;

#[test]
fn an_upload_goes_on_after_a_break() {
    let served = Served::new();
    let whole = bytes(7, 1_000_000);
    let target = format!("/api/uploads?meta=file.name=x&data={}", teak_archive::Digest::of(&whole));
    let begun = served.ask("POST", &target, "Upload-Length: 1000000\n", b"");
    assert_eq!((begun.status, &begun.json()["offset"]), (201, &json!(0)));
    let upload = &begun.headers["location"];
    let all = request(served.address, "PATCH", upload, "Upload-Offset: 0\n", &whole);
    let mut cut = served.connect();
    cut.send(&all[..all.len() - 600_000]).unwrap();
    cut.0.get_ref().shutdown(Shutdown::Write).unwrap();
    assert_eq!(cut.answer("PATCH").unwrap().refusal().0, 400);
    assert_eq!(served.get(upload).json()["offset"], 400_000);
    let wrong = served.ask("PATCH", upload, "Upload-Offset: 0\n", &whole);
    assert_eq!((wrong.refusal().0, &*wrong.headers["upload-offset"]), (409, "400000"));
    let part = served.ask("PATCH", upload, "Upload-Offset: 400000\n", &whole[400_000..500_000]);
    assert_eq!((part.status, &*part.headers["upload-offset"]), (204, "500000"));
    let last = served.ask("PATCH", upload, "Upload-Offset: 500000\n", &whole[500_000..]);
    assert_eq!((last.status, &last.json()["size"]), (201, &json!(1_000_000)));
    assert!(served.get(&last.headers["location"]).body == whole);
    // Who has lost the answer finds it.
    assert_eq!(served.get(upload).json()["oid"], last.json()["oid"]);
    let again = served.ask("PATCH", upload, "Upload-Offset: 1000000\n", b"");
    assert_eq!((again.status, again.json()), (201, last.json()));
    served.end();
}

#[test]
fn uploads_that_are_wrong_or_left_leave_nothing() {
    let served = Served::new();
    let begin = |length: &str, data: &str| {
        served.ask("POST", &format!("/api/uploads{data}"), &format!("Upload-Length: {length}\n"), b"")
    };
    assert_eq!(begin("x", "").field(), "upload-length");
    let unknown = begin("5", "?meta=nobody=x").headers["location"].clone();
    let refused = served.ask("PATCH", &unknown, "Upload-Offset: 0\n", b"hello");
    assert_eq!((refused.refusal().0, &*refused.field()), (422, "nobody"));
    let more = begin("5", "").headers["location"].clone();
    assert_eq!(served.ask("PATCH", &more, "Upload-Offset: 0\n", b"hello!").refusal().0, 409);
    assert_eq!(served.ask("PATCH", &more, "", b"hello").field(), "upload-offset");
    assert_eq!(served.ask("PATCH", &more, "Upload-Offset: 0\n", b"hello").status, 201);
    let other = begin("700000", "?data=b3:0000000000000000000000000000000000000000000000000000000000000000");
    let refused = served.ask("PATCH", &other.headers["location"], "Upload-Offset: 0\n", &bytes(1, 700_000));
    assert_eq!((refused.refusal().0, &*refused.field()), (400, "data"));
    let after = served.ask("PATCH", &other.headers["location"], "Upload-Offset: 700000\n", b"");
    assert_eq!(after.refusal().0, 409);
    let left = begin("700000", "").headers["location"].clone();
    assert_eq!(served.ask("PATCH", &left, "Upload-Offset: 0\n", &bytes(2, 600_000)).status, 204);
    let ended = begin("700000", "").headers["location"].clone();
    assert_eq!(served.ask("PATCH", &ended, "Upload-Offset: 0\n", &bytes(3, 600_000)).status, 204);
    assert_eq!(served.ask("DELETE", &ended, "", b"").status, 204);
    assert_eq!(served.get(&ended).refusal().0, 404);
    while begin("9", "").status == 201 {}
    assert_eq!(begin("9", "").refusal().0, 503);
    let archive = served.end();
    archive.collect(Some(0), &|| false).unwrap();
    let (chunks, others) =
        (archive.engine().open_table("chunks").unwrap(), archive.engine().open_table("archive").unwrap());
    let snapshot = archive.engine().snapshot();
    assert_eq!(snapshot.rows(chunks.tree(0)).count(), 1);
    assert_eq!(snapshot.rows(others.tree(3)).count(), 0);
}

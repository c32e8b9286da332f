//! How requests and the server end before their end, in order or not.

use crate::client::{bytes, options, request, Served};
use std::io::{ErrorKind, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use teak_archive::{Archive, Chunking, Metadata, Name, Rules};
use teak_core::file::{Fault, SimulatedFileSystem};

#[test]
fn what_is_under_way_is_finished_and_then_the_server_ends() {
    let served = Served::new();
    let whole = bytes(1, 1_000_000);
    let mut silent = served.connect();
    let mut idle = served.connect();
    idle.send(&request(served.address, "GET", "/healthz", "", b"")).unwrap();
    assert_eq!(idle.answer("GET").unwrap().status, 200);
    let mut putting = served.connect();
    let all = request(served.address, "POST", "/api/objects", "Expect: 100-continue\n", &whole);
    putting.send(&all[..all.len() - 500_000]).unwrap();
    // It has been heard, so it is under way.
    let mut begun = String::new();
    while begun != "\r\n" {
        begun.clear();
        std::io::BufRead::read_line(&mut putting.0, &mut begun).unwrap();
    }
    served.tell_to_stop();
    assert!(idle.has_ended() && silent.has_ended());
    while TcpStream::connect(served.address).is_ok() {}
    putting.send(&all[all.len() - 500_000..]).unwrap();
    let put = putting.answer("POST").unwrap();
    assert_eq!(put.status, 201);
    assert!(putting.has_ended());
    let archive = served.end();
    let mut got = Vec::new();
    archive.get(put.json()["data"].as_str().unwrap().parse().unwrap(), None, &mut got).unwrap();
    assert!(got == whole);
}

#[test]
fn an_answer_that_is_under_way_is_finished() {
    let served = Served::new();
    let whole = bytes(9, 8_000_000);
    let oid = served.put(&whole, "");
    let mut getting = served.connect();
    getting.send(&request(served.address, "GET", &format!("/api/objects/{oid}"), "", b"")).unwrap();
    std::io::BufRead::fill_buf(&mut getting.0).unwrap();
    served.tell_to_stop();
    while TcpStream::connect(served.address).is_ok() {}
    assert!(getting.answer("GET").unwrap().body == whole);
    assert!(getting.has_ended());
    served.end();
}

#[test]
fn uploads_that_are_broken_off_leave_nothing() {
    let served = Served::new();
    let whole = bytes(2, 2_000_000);
    for sent in [1, 100_000, 300_000, 1_999_999] {
        let all = request(served.address, "POST", "/api/objects", "", &whole);
        let mut putting = served.connect();
        putting.send(&all[..all.len() - whole.len() + sent]).unwrap();
        putting.0.get_ref().shutdown(Shutdown::Write).unwrap();
        let answer = putting.answer("POST");
        let log = served.log.lock().unwrap();
        assert!(answer.as_ref().map_or(true, |answer| answer.status == 400), "{answer:?} {log:?}");
        drop(log);
        // Without a length, and without its end.
        let mut putting = served.connect();
        let head = format!(
            "POST /api/objects HTTP/1.1\r\nHost: {}\r\nTransfer-Encoding: chunked\r\n\r\n",
            served.address
        );
        putting.send(head.as_bytes()).unwrap();
        putting.send(format!("{sent:x}\r\n").as_bytes()).unwrap();
        putting.send(&whole[..sent]).unwrap();
        drop(putting);
    }
    let archive = served.end();
    archive.collect(Some(0), &|| false).unwrap();
    let (chunks, others) =
        (archive.engine().open_table("chunks").unwrap(), archive.engine().open_table("archive").unwrap());
    let snapshot = archive.engine().snapshot();
    for (tree, name) in [
        (chunks.tree(0), "chunks"),
        (others.tree(2), "lists"),
        (others.tree(3), "pending"),
        (others.tree(4), "records"),
    ] {
        assert_eq!(snapshot.rows(tree).count(), 0, "{name}");
    }
}

/// An archive with an object of which a chunk in the middle is damaged, and one that is whole.
fn damaged() -> (Archive, SimulatedFileSystem, [Name; 2]) {
    let fs = SimulatedFileSystem::new(1);
    let chunking = Chunking::new(64, 256, 1024).unwrap();
    let archive = Archive::init_on(Arc::new(fs.clone()), options(), chunking, &Rules::default()).unwrap();
    let put =
        |seed| Name::Record(archive.put(&mut &*bytes(seed, 400_000), &Metadata::default()).unwrap().oid);
    let names = [put(3), put(4)];
    let chunks = archive.engine().open_table("chunks").unwrap();
    let (key, mut row) = archive.engine().snapshot().rows(chunks.tree(0)).nth(500).unwrap().unwrap();
    *row.last_mut().unwrap() ^= 1;
    let mut change = archive.engine().begin();
    change.put(chunks.tree(0), key, row).unwrap();
    change.commit().unwrap();
    (archive, fs, names)
}

#[test]
fn damage_ends_the_answer_before_its_end_and_hurts_nothing_else() {
    let (archive, fs, [bad, good]) = damaged();
    let served = Served::of(archive, fs, |_| {});
    let mut getting = served.connect();
    getting.send(&request(served.address, "GET", &format!("/api/objects/{bad}"), "", b"")).unwrap();
    let broken = getting.answer("GET").unwrap_err();
    assert!(matches!(broken.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset), "{broken}");
    let line = served.log.lock().unwrap().pop().unwrap();
    assert!(line.contains("is damaged") && line.contains("b3:"), "{line}");
    assert!(served.get(&format!("/api/objects/{good}")).body == bytes(4, 400_000));
    let job = served.ask("POST", "/api/jobs", "", br#"{"kind": "scrub"}"#).headers["location"].clone();
    let scrub = loop {
        let job = served.get(&job);
        assert_eq!(job.status, 200);
        let job = job.json();
        if !job["ended"].is_null() {
            break job;
        }
    };
    assert_eq!(scrub["result"]["damage"][0]["records"][0], bad.to_string(), "{scrub}");
    // Where nothing was answered before, there is a status.
    let offset = (0..400_000u64).step_by(1000).find_map(|from| {
        let part =
            served.ask("GET", &format!("/api/objects/{bad}"), &format!("Range: bytes={from}-{from}\n"), b"");
        (part.status != 206).then_some(part)
    });
    let (status, text) = offset.unwrap().refusal();
    assert!(status == 500 && text.contains("is damaged"), "{status} {text}");
}

#[test]
fn a_full_disk_is_told_and_what_is_there_is_read() {
    let served = Served::new();
    let whole = bytes(5, 30_000);
    let oid = served.put(&whole, "");
    served.fs.fail_from(3, Fault::Enospc);
    let puts = (0..9).map(|seed| served.ask("POST", "/api/objects", "", &bytes(100 + seed, 50_000)));
    let refused: Vec<(u16, String)> =
        puts.skip_while(|put| put.status == 201).map(|put| put.refusal()).collect();
    assert!(!refused.is_empty() && refused.iter().all(|(status, _)| *status == 507), "{refused:?}");
    assert!(served.get(&format!("/api/objects/{oid}")).body == whole);
    assert!(!served.log.lock().unwrap().is_empty());
    served.fs.heal();
}

#[test]
fn who_goes_in_the_middle_of_an_answer_is_forgotten() {
    let served = Served::with(|settings| settings.most_connections = 2);
    let oid = served.put(&bytes(6, 3_000_000), "");
    for _ in 0..20 {
        let mut getting = served.connect();
        getting.send(&request(served.address, "GET", &format!("/api/objects/{oid}"), "", b"")).unwrap();
        std::io::Read::read_exact(&mut getting.0, &mut [0; 1000]).unwrap();
        getting.0.get_mut().flush().unwrap();
    }
    assert_eq!(served.get("/healthz").status, 200);
}

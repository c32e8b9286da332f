//! What is written comes back, whatever happens to the file.

use super::{End, Recorder, Recording, RecordingError};
use crate::sample::{Answer, Part, Sample};
use std::fs::File;
use std::io::{Cursor, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

struct Directory(PathBuf);

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn directory(name: &str) -> Directory {
    let path = std::env::temp_dir().join(format!("teak-top-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).unwrap();
    Directory(path)
}

fn sample(number: u64) -> Sample {
    let mut sample = Sample { at: number, ..Sample::default() };
    let rows = vec![vec![Some(format!("{number}\u{1b}\u{0}ü")), None]; 3];
    sample
        .parts
        .insert(Part::Sessions, Answer { columns: vec!["ID".into(), "DB".into()], rows, is_cut: true });
    sample.missing.insert(Part::Waits, "gone".into());
    sample
}

fn recorded(path: &Path, numbers: std::ops::Range<u64>) -> bool {
    let (mut recorder, was_torn) = Recorder::open(path, u64::MAX).unwrap();
    for number in numbers {
        recorder.add(&sample(number)).unwrap();
    }
    was_torn
}

#[test]
fn what_is_written_comes_back_and_goes_on() {
    let dir = directory("whole");
    let path = dir.0.join("r");
    assert!(!recorded(&path, 1..3) && !recorded(&path, 3..5));
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let mut recording = Recording::open(File::open(&path).unwrap()).unwrap();
    assert_eq!((recording.len(), recording.end()), (4, End::Whole));
    for number in [3, 0, 2, 1] {
        assert_eq!(recording.sample(number).unwrap(), sample(number as u64 + 1));
    }
    assert!(matches!(recording.sample(4), Err(RecordingError::Empty)));
}

#[test]
fn a_file_cut_at_any_byte_has_the_samples_before_and_goes_on_behind_them() {
    let dir = directory("cut");
    let path = dir.0.join("r");
    recorded(&path, 1..4);
    let bytes = std::fs::read(&path).unwrap();
    let mut ends = Vec::new();
    for numbers in 2..5 {
        let first = dir.0.join(format!("first-{numbers}"));
        recorded(&first, 1..numbers);
        ends.push(std::fs::metadata(&first).unwrap().len());
    }
    let begin = "teak top recording 1\n".len();
    for cut in begin..bytes.len() {
        let recording = Recording::open(Cursor::new(&bytes[..cut])).unwrap();
        let whole = ends.iter().filter(|end| **end <= cut as u64).count();
        assert_eq!(recording.len(), whole, "cut to {cut}");
        let at = if whole == 0 { begin as u64 } else { ends[whole - 1] };
        let wanted = if at == cut as u64 { End::Whole } else { End::Torn { at } };
        assert_eq!(recording.end(), wanted, "cut to {cut}");
        std::fs::write(&path, &bytes[..cut]).unwrap();
        assert_eq!(recorded(&path, 9..10), wanted != End::Whole, "cut to {cut}");
        let mut recording = Recording::open(File::open(&path).unwrap()).unwrap();
        assert_eq!((recording.len(), recording.end()), (whole + 1, End::Whole), "cut to {cut}");
        assert_eq!(recording.sample(whole).unwrap(), sample(9));
    }
    for cut in 0..begin {
        assert!(matches!(Recording::open(Cursor::new(&bytes[..cut])), Err(RecordingError::NotARecording)));
    }
}

#[test]
fn a_changed_byte_is_told_or_changes_no_other_sample() {
    let dir = directory("changed");
    let path = dir.0.join("r");
    recorded(&path, 1..3);
    let bytes = std::fs::read(&path).unwrap();
    for at in 0..bytes.len() {
        for change in [1, 0x80, 0xff] {
            let mut changed = bytes.clone();
            changed[at] ^= change;
            let Ok(mut recording) = Recording::open(Cursor::new(&changed)) else { continue };
            let read: Vec<_> = (0..recording.len()).map(|number| recording.sample(number).ok()).collect();
            let wanted = [Some(sample(1)), Some(sample(2))];
            assert!(
                read.iter().zip(&wanted).all(|(read, wanted)| read.is_none() || read == wanted),
                "byte {at}"
            );
            let is_told =
                recording.end() != End::Whole || read.len() != 2 || read.iter().any(Option::is_none);
            // Some bytes of a frame's head say nothing.
            assert!(is_told || read == wanted, "byte {at} changed by {change:x}");
        }
    }
}

#[test]
fn other_files_and_other_versions_stay_as_they_are() {
    let dir = directory("others");
    let path = dir.0.join("r");
    let long = [b"teak top recording 1\n".as_slice(), &u32::MAX.to_le_bytes(), b"x"].concat();
    for (bytes, told) in [
        (b"#!/bin/sh\n".as_slice(), "no recording"),
        (b"teak top recording 2\nxyz", "format 2"),
        (b"teak top recording x\n", "no recording"),
        (b"teak top recording 11111111111111111111111111111111", "no recording"),
        (&long, "damaged"),
    ] {
        std::fs::write(&path, bytes).unwrap();
        let error = Recorder::open(&path, u64::MAX).err().unwrap();
        assert!(error.to_string().contains(told) && error.to_string().contains("Move it away"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
    }
}

#[test]
fn one_program_at_a_time_writes_to_a_file() {
    let dir = directory("locked");
    let path = dir.0.join("r");
    let (recorder, _) = Recorder::open(&path, u64::MAX).unwrap();
    assert!(matches!(Recorder::open(&path, u64::MAX), Err(RecordingError::InUse)));
    drop(recorder);
    recorded(&path, 1..2);
}

#[test]
fn a_large_file_is_put_aside() {
    let dir = directory("large");
    let (path, aside) = (dir.0.join("r"), dir.0.join("r.1"));
    let (mut recorder, _) = Recorder::open(&path, 2000).unwrap();
    for number in 1..100 {
        recorder.add(&sample(number)).unwrap();
        for file in [&path, &aside] {
            assert!(std::fs::metadata(file).map_or(0, |file| file.len()) < 2500);
        }
    }
    let mut aside = Recording::open(File::open(&aside).unwrap()).unwrap();
    let mut recording = Recording::open(File::open(&path).unwrap()).unwrap();
    let (last, next) = (aside.sample(aside.len() - 1).unwrap().at, recording.len() as u64);
    assert_eq!(last + next, 99);
    assert_eq!(recording.sample(recording.len() - 1).unwrap(), sample(99));
}

#[test]
fn a_sample_says_no_more_than_a_sample_can() {
    let frame = |json: &[u8]| {
        let mut frame = zstd::encode_all(json, 1).unwrap();
        let mut file = b"teak top recording 1\n".to_vec();
        file.write_all(&(frame.len() as u32).to_le_bytes()).unwrap();
        file.append(&mut frame);
        file
    };
    let mut large = sample(1);
    large.parts.get_mut(&Part::Sessions).unwrap().rows = vec![Vec::new(); 201];
    let large = serde_json::to_vec(&large).unwrap();
    for json in [vec![b' '; super::MOST_SAMPLE + 1], vec![b'['; 100_000], large] {
        let file = frame(&json);
        let mut recording = Recording::open(Cursor::new(&file)).unwrap();
        assert!(matches!(recording.sample(0), Err(RecordingError::Damaged { at: 25, .. })));
    }
}

use super::*;
use crate::file::RealFileSystem;
use crate::store::OpenFiles;
use crate::tree::block::builder::BlockBuilder;
use crate::tree::block::{Block, Value};
use crate::Compression;
use std::path::PathBuf;

/// A space in a directory of its own, removed with it.
struct Scratch {
    dir: PathBuf,
    space: Arc<Space>,
}

impl Scratch {
    fn new(name: &str) -> Scratch {
        let dir = std::env::temp_dir().join(format!("teak-blob-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        let space =
            Space::create(&OpenFiles::new(Arc::new(RealFileSystem), 8), &dir.join("s7.teak"), 7).unwrap();
        Scratch { dir, space }
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

fn value(n: usize) -> Vec<u8> {
    (0..n).map(|i| (i * i / 7) as u8).collect()
}

#[test]
fn a_blob_is_stored_once_whoever_asks() {
    let scratch = Scratch::new("once");
    let blob = Blob::new(value(50_000));
    assert_eq!((blob.address(), blob.forget_bytes()), (None, 0));
    let addresses: Vec<BlobAddress> = std::thread::scope(|scope| {
        let store = || blob.store(&scratch.space, Compression::Zstd).unwrap();
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(store)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    assert!(addresses.iter().all(|address| Some(*address) == blob.address()));
    assert!(blob.extent().is_some_and(|extent| Arc::strong_count(extent) == 1));
}

#[test]
fn a_stored_blob_reads_back_after_its_bytes_are_forgotten() {
    let scratch = Scratch::new("forget");
    for (n, compression) in [(0, Compression::None), (1, Compression::Zstd), (200_000, Compression::Lz4)] {
        let blob = Blob::new(value(n));
        blob.store(&scratch.space, compression).unwrap();
        assert_eq!(blob.forget_bytes(), n);
        assert_eq!((&blob.bytes().unwrap()[..], blob.len()), (&value(n)[..], n as u64));
        assert_eq!(blob.memory(), 0);
    }
}

#[test]
fn the_image_of_a_block_leads_back_to_its_blobs() {
    let scratch = Scratch::new("image");
    let values = [value(9_000), value(20_000)];
    let mut builder = BlockBuilder::new();
    for (key, value) in [b"a", b"c"].into_iter().zip(&values) {
        builder.push(key, Value::Blob(&Arc::new(Blob::new(&value[..]))));
    }
    let image = builder.finish().image(&scratch.space, Compression::Zstd).unwrap().into_owned();
    let adopt = |at: BlobAddress| Arc::new(Blob::adopted(&scratch.space, &at));
    let block = Block::parse(image.clone(), &adopt).unwrap();
    for (i, expected) in values.iter().enumerate() {
        assert!(matches!(block.value(i), Value::Blob(blob) if blob.bytes().unwrap()[..] == expected[..]));
    }
    assert_eq!(*block.image(&scratch.space, Compression::Zstd).unwrap(), image);
    let mut damaged = image;
    let length_of_last = damaged.len() - 8;
    damaged[length_of_last] ^= 1;
    assert!(Block::parse(damaged, &adopt).is_err());
}

#[test]
fn a_private_blob_takes_its_extent_along() {
    let scratch = Scratch::new("private");
    let store = |n| {
        let blob = Blob::new(value(n));
        blob.store(&scratch.space, Compression::None).unwrap();
        (blob.address().unwrap().extent.offset, blob)
    };
    let (private, blob) = store(4096);
    drop(blob);
    let (published, blob) = store(4096);
    assert_eq!(published, private);
    blob.publish();
    drop(blob);
    assert_ne!(store(4096).0, published);
}

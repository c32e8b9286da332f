use super::*;

/// Fills each buffer with its number and sees that nobody else writes there.
fn churn(thread: u64, rounds: u64) {
    let mut state = thread + 1;
    let mut random = move |below: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % below
    };
    let mut kept: Vec<(Buffer, u8)> = Vec::new();
    for round in 0..rounds {
        let bytes = match random(10) {
            0 => random(3000),
            1 => random(300_000),
            _ => 3000 + random(62_000),
        };
        let mut buffer = Buffer::must(bytes as usize);
        assert_eq!((buffer.len() as u64, buffer.start().as_ptr() as usize % ALIGN), (bytes, 0));
        assert!(buffer.capacity() >= buffer.len());
        let mark = (round ^ thread << 5) as u8;
        buffer.fill(mark);
        kept.push((buffer, mark));
        if kept.len() > 60 || random(3) == 0 {
            let (mut buffer, mark) = kept.swap_remove(random(kept.len() as u64) as usize);
            assert!(buffer.iter().all(|byte| *byte == mark));
            buffer.truncate(10);
            assert!(buffer.len() <= 10);
        }
        if round % 500 == 499 {
            // All at once: slabs become empty, and serve other sizes.
            kept.drain(..).for_each(|(buffer, mark)| assert!(buffer.iter().all(|byte| *byte == mark)));
        }
    }
}

#[test]
fn buffers_are_their_owners_alone() {
    std::thread::scope(|scope| {
        for thread in 0..4 {
            scope.spawn(move || churn(thread, 3000));
        }
    });
}

#[test]
fn what_many_buffers_leave_behind_goes_back_to_the_system() {
    const EACH: usize = 33 << 10;
    let resident = || {
        let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
        4096 * pages.split(' ').nth(1).unwrap().parse::<usize>().unwrap()
    };
    let fill = |_| {
        let mut buffer = Buffer::must(EACH);
        buffer.fill(1);
        buffer
    };
    let before = resident();
    let mut all: Vec<Buffer> = (0..4000).map(fill).collect();
    let most = resident();
    assert!(most > before + 3000 * EACH, "{before} {most}");
    // Every tenth stays, so that no slab becomes empty; other tests have theirs meanwhile.
    let mut number = 0;
    all.retain(|_| {
        number += 1;
        number % 10 == 0
    });
    // Unless there is room for what is free; which other tests may say there is.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    let goes_back = |bytes: usize| loop {
        settle(0, usize::MAX);
        let rest = resident();
        if rest < before + bytes || std::time::Instant::now() > deadline {
            break rest;
        }
    };
    let rest = goes_back(1500 * EACH);
    assert!(rest < before + 1500 * EACH, "{before} {most} {rest}");
    drop(all);
    let rest = goes_back(1000 * EACH);
    assert!(rest < before + 1000 * EACH, "{before} {most} {rest}");
}

#[test]
fn a_buffer_of_nothing_is_one() {
    let mut none = Buffer::must(0);
    assert_eq!((none.len(), none.capacity()), (0, 0));
    none.copy_from_slice(&[]);
    assert_eq!(Buffer::from(vec![1, 2, 3])[..], [1, 2, 3]);
    assert!(Buffer::new(usize::MAX).is_none());
}

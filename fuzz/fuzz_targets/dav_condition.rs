#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| teak_archive_http::hostile::condition(bytes));

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| bronzeward_fuzz::merge(data));

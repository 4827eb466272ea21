#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    serrate_fuzz_plans::run(data);
});

//! Time as a thread has it: on a busy machine the clock on the wall says nothing.

/// Runs `work` on a thread of its own, with a pool of one; what it gives, and the seconds of CPU it
/// took.
pub fn on_one_thread<T: Send>(work: impl FnOnce() -> T + Send) -> (f64, T) {
    goodput_train::memory::keep_freed();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().expect("one thread");
    pool.install(|| timed(work))
}

/// Seconds of CPU that `work` took on this thread, and what it gives.
pub fn timed<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let before = cpu_secs();
    let result = work();
    (cpu_secs() - before, result)
}

/// Seconds that this thread has run, as Linux counts them.
fn cpu_secs() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    text.split_whitespace().next().and_then(|nanos| nanos.parse::<f64>().ok()).expect("nanoseconds first") / 1e9
}

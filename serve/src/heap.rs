//! The buffers of requests go back to the system when they are freed.
//!
//! glibc has up to eight heaps a core, and threads leave in them what they free. Once a large buffer was freed, it takes
//! buffers of up to 32 MiB from there too: every heap grows to the largest requests that its threads ever had.

/// Bytes of a buffer that gets pages of its own, and gives them back.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
const LARGE: libc::c_int = 256 << 10;

/// From now on, large buffers have pages of their own.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub fn give_back_large_buffers() {
    // SAFETY: it sets a number of the allocator, under the allocator's own lock.
    unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE) };
}

/// Other allocators do so anyway.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn give_back_large_buffers() {}

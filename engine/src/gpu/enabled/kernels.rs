//! The kernels: their names, what they need, and how they are compiled.
//!
//! Kernels are compiled for the GPU when they are first needed, some on every core, and kept for the life of the process.
//! A caller that has files may keep them longer ([`kernels`], [`offer_kernels`]).

use crate::device::Precision;
use crate::error::{Error, Result};
use cudarc::driver::sys;
use cudarc::driver::{CudaContext, DriverError};
use cudarc::nvrtc;
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

const SOURCE: &str = concat!(
    include_str!("../kernels/tiles.cu"),
    include_str!("../kernels/up.cu"),
    include_str!("../kernels/densities.cu"),
    include_str!("../kernels/down.cu"),
    include_str!("../kernels/first.cu"),
    include_str!("../kernels/first_down.cu"),
    include_str!("../kernels/fill.cu"),
    include_str!("../kernels/root.cu"),
    include_str!("../kernels/train.cu"),
    include_str!("../kernels/guard.cu"),
    include_str!("../kernels/leaves.cu"),
);

/// A kernel of the `.cu` files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Kernel {
    MixUpSmall,
    MixUpFlat,
    MixUpLarge,
    MixUpHuge,
    ScoreUp,
    MixDownSmall,
    MixDownTall,
    MixDownHuge,
    GradientSmall,
    GradientFlat,
    GradientLarge,
    GradientTall,
    GradientHuge,
    FirstUp,
    FirstGradient,
    JoinUp,
    LeavesUp,
    LeavesUpWide,
    JoinDown,
    Fill,
    Root,
    ClassRoot,
    Update,
    Finish,
    Guard,
    LeafFlow,
    LeafSums,
    LeafUpdate,
}

/// A kernel's name in the `.cu` files, and the shared memory that a block of it needs beyond what it gets unasked.
struct Entry {
    kernel: Kernel,
    name: &'static str,
    shared_bytes: u32,
}

const fn entry(kernel: Kernel, name: &'static str, shared_bytes: u32) -> Entry {
    Entry {
        kernel,
        name,
        shared_bytes,
    }
}

/// All kernels, in the order of [`Kernel`].
const ENTRIES: [Entry; 28] = [
    entry(Kernel::MixUpSmall, "mix_up_small", 110_592),
    entry(Kernel::MixUpFlat, "mix_up_flat", 55_296),
    entry(Kernel::MixUpLarge, "mix_up_large", 81_920),
    entry(Kernel::MixUpHuge, "mix_up_huge", 221_184),
    entry(Kernel::ScoreUp, "score_up", 82_944),
    entry(Kernel::MixDownSmall, "mix_down_small", 61_440),
    entry(Kernel::MixDownTall, "mix_down_tall", 92_160),
    entry(Kernel::MixDownHuge, "mix_down_huge", 108_544),
    entry(Kernel::GradientSmall, "gradient_small", 63_488),
    entry(Kernel::GradientFlat, "gradient_flat", 96_256),
    entry(Kernel::GradientLarge, "gradient_large", 112_640),
    entry(Kernel::GradientTall, "gradient_tall", 89_088),
    entry(Kernel::GradientHuge, "gradient_huge", 79_104),
    entry(Kernel::FirstUp, "first_up", 0),
    entry(Kernel::FirstGradient, "first_gradient", 67_072),
    entry(Kernel::JoinUp, "join_up", 0),
    entry(Kernel::LeavesUp, "leaves_up", 0),
    entry(Kernel::LeavesUpWide, "leaves_up_wide", 0),
    entry(Kernel::JoinDown, "join_down", 0),
    entry(Kernel::Fill, "fill", 0),
    entry(Kernel::Root, "root", 0),
    entry(Kernel::ClassRoot, "class_root", 0),
    entry(Kernel::Update, "update", 0),
    entry(Kernel::Finish, "finish", 0),
    entry(Kernel::Guard, "guard", 0),
    entry(Kernel::LeafFlow, "leaf_flow", 0),
    entry(Kernel::LeafSums, "leaf_sums", 0),
    entry(Kernel::LeafUpdate, "leaf_update", 0),
];

impl Kernel {
    /// All kernels that are compiled for a precision: two are there in tf32 only.
    pub fn all(precision: Precision) -> impl Iterator<Item = Self> {
        let tf32_only = |kernel| matches!(kernel, Self::FirstUp | Self::FirstGradient);
        let all = ENTRIES.iter().map(|entry| entry.kernel);
        all.filter(move |&kernel| precision == Precision::Tf32 || !tf32_only(kernel))
    }

    /// Its name in the `.cu` files.
    pub fn name(self) -> &'static str {
        ENTRIES[self as usize].name
    }

    /// The program that it is compiled in.
    pub fn program(self) -> usize {
        self as usize % PROGRAMS
    }

    /// Bytes of shared memory that a block needs beyond what it gets unasked.
    pub fn shared_bytes(self) -> u32 {
        ENTRIES[self as usize].shared_bytes
    }

    /// The kernel on this many blocks of threads.
    pub fn on(self, blocks: usize, threads: u32) -> Launch {
        Launch {
            kernel: self,
            blocks,
            threads,
        }
    }
}

/// A kernel with the blocks and threads it runs on.
#[derive(Clone, Copy)]
pub(crate) struct Launch {
    pub kernel: Kernel,
    pub blocks: usize,
    pub threads: u32,
}

pub(crate) fn failed(what: &str, error: DriverError) -> Error {
    Error::Device(format!("{what}: {error}"))
}

/// GPUs of this machine; an error that says why there are none.
pub fn count() -> Result<usize> {
    // SAFETY: it opens the library and looks for nothing in it.
    if !unsafe { sys::is_culib_present() } {
        return Err(Error::Device(
            "no NVIDIA GPU here: its driver (libcuda) was not found".into(),
        ));
    }
    let count = CudaContext::device_count().map_err(|error| failed("no NVIDIA GPU here", error))?;
    Ok(count as usize)
}

/// Programs that the kernels are compiled in, side by side. Of this many, none has two of the slow ones.
const PROGRAMS: usize = 9;

/// Compiled kernels by their name: architecture, precision, version of the driver, and a hash of their source.
static IMAGES: Kept<String, Arc<Vec<u8>>> = OnceLock::new();

/// Contexts by GPU. Opening one takes a good part of a second, so it stays open.
static CONTEXTS: Kept<usize, Arc<CudaContext>> = OnceLock::new();

type Kept<K, V> = OnceLock<Mutex<HashMap<K, V>>>;

fn lock<K, V>(kept: &'static Kept<K, V>) -> MutexGuard<'static, HashMap<K, V>> {
    let lock = kept.get_or_init(Mutex::default);
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn images() -> MutexGuard<'static, HashMap<String, Arc<Vec<u8>>>> {
    lock(&IMAGES)
}

/// The name of the kernels that a gpu needs, for a cache.
pub fn kernels_name(ordinal: usize, precision: Precision) -> Result<String> {
    let ctx = context(ordinal)?;
    name_of(&ctx, precision)
}

/// Compiles the kernels that a gpu needs, unless this process has them.
pub fn compile_kernels(ordinal: usize, precision: Precision) -> Result<Arc<Vec<u8>>> {
    image_of(&kernels_name(ordinal, precision)?, precision)
}

/// Kernels compiled earlier, from a cache. They must be those of that name.
pub fn offer_kernels(name: &str, image: Vec<u8>) {
    images()
        .entry(name.to_owned())
        .or_insert_with(|| Arc::new(image));
}

/// Kernels that this process has compiled or was given.
pub fn kernels(name: &str) -> Option<Arc<Vec<u8>>> {
    images().get(name).cloned()
}

pub(crate) fn context(ordinal: usize) -> Result<Arc<CudaContext>> {
    let count = count()?;
    if ordinal >= count {
        let message = format!(
            "expected a GPU from cuda:0 to cuda:{}, got cuda:{ordinal}",
            count.saturating_sub(1)
        );
        return Err(Error::Device(message));
    }
    let mut contexts = lock(&CONTEXTS);
    let known = contexts.get(&ordinal).cloned();
    let new = || CudaContext::new(ordinal).map_err(|error| failed("the GPU cannot be used", error));
    let ctx = known.map_or_else(new, Ok)?;
    contexts.insert(ordinal, ctx.clone());
    match ctx
        .compute_capability()
        .map_err(|error| failed("the GPU does not say what it is", error))?
    {
        (8.., _) => Ok(ctx),
        (major, minor) => {
            let expected = "expected a GPU of compute capability 8.0 or more (Ampere and later)";
            Err(Error::Device(format!(
                "{expected}, got cuda:{ordinal} of {major}.{minor}"
            )))
        }
    }
}

/// The first GPU that can be used.
pub fn first_usable() -> Option<usize> {
    (0..count().unwrap_or(0)).find(|&ordinal| context(ordinal).is_ok())
}

pub(crate) fn name_of(ctx: &CudaContext, precision: Precision) -> Result<String> {
    let (major, minor) = ctx
        .compute_capability()
        .map_err(|error| failed("the GPU does not say what it is", error))?;
    // FNV-1a
    let hash = SOURCE.bytes().fold(0xcbf2_9ce4_8422_2325u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let precision = if precision == Precision::Tf32 {
        "tf32"
    } else {
        "f32"
    };
    let mut driver = 0;
    // SAFETY: it writes one number.
    unsafe { sys::cuDriverGetVersion(&mut driver) }
        .result()
        .map_err(|error| failed("the driver does not say its version", error))?;
    Ok(format!(
        "sm_{major}{minor}-{precision}-{driver}-{hash:016x}"
    ))
}

/// Machine code of all kernels. Where another thread compiles already, this one waits for it.
pub(crate) fn image_of(name: &str, precision: Precision) -> Result<Arc<Vec<u8>>> {
    static COMPILING: Mutex<()> = Mutex::new(());
    let _compiling = COMPILING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(image) = kernels(name) {
        return Ok(image);
    }
    // SAFETY: as above.
    if !unsafe { nvrtc::sys::is_culib_present() } {
        return Err(Error::Device(
            "CUDA's run-time compiler (libnvrtc) was not found".into(),
        ));
    }
    let arch = name.split('-').next().unwrap_or_default();
    let image = compile_all(arch, precision)
        .map_err(|log| Error::Device(format!("the kernels do not compile: {log}")))?;
    offer_kernels(name, image);
    kernels(name).ok_or_else(|| Error::Device("the kernels are lost".into()))
}

/// All programs, one after another, each with its length before it.
fn compile_all(arch: &str, precision: Precision) -> std::result::Result<Vec<u8>, String> {
    let compiled = std::thread::scope(|scope| {
        let start = |program| scope.spawn(move || compile(arch, precision, program));
        let threads: Vec<_> = (0..PROGRAMS).map(start).collect();
        threads.into_iter().map(finished).collect::<Vec<_>>()
    });
    let mut image = Vec::new();
    for program in compiled {
        let program: Vec<u8> = program?;
        image.extend((program.len() as u64).to_le_bytes());
        image.extend(program);
    }
    Ok(image)
}

/// What a thread gave; its panic goes on here.
fn finished<T>(thread: std::thread::ScopedJoinHandle<'_, T>) -> T {
    match thread.join() {
        Ok(given) => given,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// The programs of an image; fewer than [`PROGRAMS`] if it is damaged.
pub(crate) fn programs_of(mut image: &[u8]) -> Vec<&[u8]> {
    let mut programs = Vec::new();
    while let Some((length, rest)) = image.split_first_chunk() {
        let length = u64::from_le_bytes(*length) as usize;
        let Some((program, rest)) = rest.split_at_checked(length) else {
            break;
        };
        programs.push(program);
        image = rest;
    }
    programs
}

/// The source of a program: kernels of others are templates that nobody uses.
fn source_of(program: usize) -> String {
    let is_other = |line: &str| {
        let declares = |entry: &Entry| line.contains(&format!(" {}(const __grid", entry.name));
        let others = |entry: &Entry| entry.kernel.program() != program && declares(entry);
        line.starts_with(KERNEL) && ENTRIES.iter().any(others)
    };
    let mut source = String::with_capacity(SOURCE.len());
    for line in SOURCE.lines() {
        match line.strip_prefix(KERNEL).filter(|_| is_other(line)) {
            Some(rest) => source.extend(["template <int>", rest]),
            None => source.push_str(line),
        }
        source.push('\n');
    }
    source
}

/// How a kernel begins.
const KERNEL: &str = "extern \"C\"";

fn compile(
    arch: &str,
    precision: Precision,
    program: usize,
) -> std::result::Result<Vec<u8>, String> {
    let source = CString::new(source_of(program)).map_err(|error| error.to_string())?;
    let program =
        nvrtc::result::create_program(&source, None).map_err(|error| error.to_string())?;
    let tf32 = u8::from(precision == Precision::Tf32);
    let options = [
        format!("--gpu-architecture={arch}"),
        format!("-DTF32={tf32}"),
        "--std=c++17".into(),
    ];
    // SAFETY: the program lives until it is destroyed below.
    let compiled = unsafe {
        nvrtc::result::compile_program(program, &options).and_then(|()| machine_code(program))
    };
    // SAFETY: the program is there.
    let log = unsafe { nvrtc::result::get_program_log(program) };
    // SAFETY: it is not used again.
    let _ = unsafe { nvrtc::result::destroy_program(program) };
    // SAFETY: the log ends with a zero.
    let text = |log: &Vec<_>| unsafe { CStr::from_ptr(log.as_ptr()) }.to_string_lossy();
    let log = log.as_ref().map(text).unwrap_or_default();
    compiled.map_err(|error| format!("{error} {log}"))
}

/// The machine code of a compiled program.
///
/// # Safety
/// The program has not been destroyed.
unsafe fn machine_code(
    program: nvrtc::sys::nvrtcProgram,
) -> std::result::Result<Vec<u8>, nvrtc::result::NvrtcError> {
    let mut size = 0;
    // SAFETY: it writes one number.
    unsafe { nvrtc::sys::nvrtcGetCUBINSize(program, &mut size) }.result()?;
    let mut image = vec![0u8; size];
    // SAFETY: the buffer has the size that the compiler says.
    unsafe { nvrtc::sys::nvrtcGetCUBIN(program, image.as_mut_ptr().cast()) }.result()?;
    Ok(image)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table stands in the order of the enum, and every name is a kernel of the source.
    #[test]
    fn every_kernel_is_in_the_source() {
        for (index, entry) in ENTRIES.iter().enumerate() {
            assert_eq!(entry.kernel as usize, index, "{}", entry.name);
            let call = format!("{}(const __grid_constant__", entry.name);
            assert!(SOURCE.contains(&call), "{}", entry.name);
        }
        assert_eq!(Kernel::all(Precision::Tf32).count(), ENTRIES.len());
        assert_eq!(Kernel::all(Precision::F32).count(), ENTRIES.len() - 2);
    }

    /// A kernel stands in one program, and in the others there is a template in its place.
    #[test]
    fn every_kernel_is_compiled_once() {
        let sources: Vec<String> = (0..PROGRAMS).map(source_of).collect();
        for entry in &ENTRIES {
            let declaration = format!(" {}(const __grid", entry.name);
            let is_kernel = |source: &String| {
                let mut lines = source.lines().filter(|line| line.contains(&declaration));
                let line = lines.next().unwrap();
                assert!(lines.next().is_none());
                assert!(line.starts_with(KERNEL) || line.starts_with("template <int> __global__"));
                line.starts_with(KERNEL)
            };
            let places: Vec<bool> = sources.iter().map(is_kernel).collect();
            assert_eq!(places.iter().filter(|&&is_kernel| is_kernel).count(), 1);
            assert!(places[entry.kernel.program()], "{}", entry.name);
        }
    }

    /// A damaged image has fewer programs, never a part of one.
    #[test]
    fn an_image_has_its_programs() {
        let mut image = Vec::new();
        for program in [&b"one"[..], b"", b"three"] {
            image.extend((program.len() as u64).to_le_bytes());
            image.extend(program);
        }
        assert_eq!(programs_of(&image), [&b"one"[..], b"", b"three"]);
        assert_eq!(programs_of(&image[..image.len() - 1]).len(), 2);
        assert!(programs_of(&[255; 40]).is_empty());
    }
}

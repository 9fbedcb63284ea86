//! One GPU: its memory, its kernels, its queue of work.
//!
//! Kernels are compiled for the card when they are first asked for and kept for the life of the process; a caller that
//! has files may keep them longer (`kernels`, `offer_kernels`).

use crate::device::Precision;
use crate::error::{Error, Result};
use cudarc::driver::sys::{self, CUfunction_attribute_enum, CUstreamCaptureMode};
use cudarc::driver::{
    CudaContext, CudaFunction, CudaGraph, CudaStream, DeviceRepr, DriverError, LaunchConfig,
};
use cudarc::driver::{PushKernelArg, result};
use cudarc::nvrtc;
use std::collections::HashMap;
use std::ffi::{CStr, CString};
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, OnceLock};

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

/// Kernels that need more shared memory than a block gets unasked, with how much.
const SHARED: [(&str, u32); 13] = [
    ("mix_up_small", 110_592),
    ("mix_up_flat", 55_296),
    ("mix_up_large", 81_920),
    ("mix_up_huge", 221_184),
    ("score_up", 82_944),
    ("mix_down_small", 61_440),
    ("mix_down_tall", 92_160),
    ("mix_down_huge", 108_544),
    ("gradient_small", 63_488),
    ("gradient_flat", 96_256),
    ("gradient_large", 112_640),
    ("gradient_tall", 89_088),
    ("gradient_huge", 79_104),
];

/// Kernels that are there in tf32 only.
const TENSOR: [(&str, u32); 2] = [("first_up", 0), ("first_gradient", 67_072)];

const OTHERS: [&str; 13] = [
    "join_up",
    "leaves_up",
    "leaves_up_wide",
    "join_down",
    "fill",
    "root",
    "class_root",
    "update",
    "finish",
    "guard",
    "leaf_flow",
    "leaf_sums",
    "leaf_update",
];

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

/// Compiled kernels by their name: architecture, precision, and a hash of their source.
static IMAGES: OnceLock<Mutex<HashMap<String, Arc<Vec<u8>>>>> = OnceLock::new();

fn images() -> std::sync::MutexGuard<'static, HashMap<String, Arc<Vec<u8>>>> {
    let lock = IMAGES.get_or_init(Mutex::default);
    lock.lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The name of the kernels that a card needs, for a cache.
pub fn kernels_name(ordinal: usize, precision: Precision) -> Result<String> {
    let ctx = context(ordinal)?;
    name_of(&ctx, precision)
}

/// Compiles the kernels that a card needs, unless this process has them.
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

fn context(ordinal: usize) -> Result<Arc<CudaContext>> {
    let count = count()?;
    if ordinal >= count {
        let message = format!(
            "expected a GPU from cuda:0 to cuda:{}, got cuda:{ordinal}",
            count.saturating_sub(1)
        );
        return Err(Error::Device(message));
    }
    let ctx = CudaContext::new(ordinal).map_err(|error| failed("the GPU cannot be used", error))?;
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

fn name_of(ctx: &CudaContext, precision: Precision) -> Result<String> {
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
    Ok(format!("sm_{major}{minor}-{precision}-{hash:016x}"))
}

/// Machine code of all kernels.
fn image_of(name: &str, precision: Precision) -> Result<Arc<Vec<u8>>> {
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
    let image = compile(arch, precision)
        .map_err(|log| Error::Device(format!("the kernels do not compile: {log}")))?;
    offer_kernels(name, image);
    kernels(name).ok_or_else(|| Error::Device("the kernels are lost".into()))
}

fn compile(arch: &str, precision: Precision) -> std::result::Result<Vec<u8>, String> {
    let source = CString::new(SOURCE).map_err(|error| error.to_string())?;
    let program =
        nvrtc::result::create_program(&source, None).map_err(|error| error.to_string())?;
    let tf32 = u8::from(precision == Precision::Tf32);
    let options = [
        format!("--gpu-architecture={arch}"),
        format!("-DTF32={tf32}"),
        "--std=c++17".into(),
    ];
    let mut image = Vec::new();
    // SAFETY: the program lives until it is destroyed below; the buffer has the size that the compiler says.
    let compiled = unsafe {
        nvrtc::result::compile_program(program, &options).and_then(|()| {
            let mut size = 0;
            nvrtc::sys::nvrtcGetCUBINSize(program, &mut size).result()?;
            image.resize(size, 0u8);
            nvrtc::sys::nvrtcGetCUBIN(program, image.as_mut_ptr().cast()).result()
        })
    };
    // SAFETY: the program is there; the log ends with a zero.
    let log = unsafe { nvrtc::result::get_program_log(program) }.map(|log| {
        unsafe { CStr::from_ptr(log.as_ptr()) }
            .to_string_lossy()
            .into_owned()
    });
    // SAFETY: it is not used again.
    let _ = unsafe { nvrtc::result::destroy_program(program) };
    match compiled {
        Ok(()) => Ok(image),
        Err(error) => Err(format!("{error} {}", log.unwrap_or_default())),
    }
}

/// Numbers on the card: an address and a length. The card owns them.
pub(crate) struct Room<T> {
    pub at: u64,
    pub len: usize,
    kind: PhantomData<T>,
}

impl<T> Clone for Room<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Room<T> {}

impl<T> Room<T> {
    /// Nothing: address zero.
    pub fn none() -> Self {
        Self {
            at: 0,
            len: 0,
            kind: PhantomData,
        }
    }

    /// The part that starts at `first`.
    pub fn part(&self, first: usize, len: usize) -> Self {
        debug_assert!(first + len <= self.len);
        Self {
            at: self.at + (first * size_of::<T>()) as u64,
            len,
            kind: PhantomData,
        }
    }
}

/// A card with what was put on it.
pub(crate) struct Card {
    ctx: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    functions: HashMap<&'static str, CudaFunction>,
    rooms: Vec<u64>,
}

// SAFETY: a graph or a queue may be used by one thread at a time, and every use needs the one owner.
unsafe impl Send for Graph {}
// SAFETY: a shared reference to it cannot launch it: [`Card::replay`] takes the only one.
unsafe impl Sync for Graph {}

/// Recorded work.
pub(crate) struct Graph(CudaGraph);

impl Card {
    pub fn open(ordinal: usize, precision: Precision) -> Result<Self> {
        let ctx = context(ordinal)?;
        let fail = |error| failed("the GPU cannot be used", error);
        // SAFETY: all work of a card goes through one queue, in order.
        unsafe { ctx.disable_event_tracking() };
        let stream = ctx.new_stream().map_err(fail)?;
        let name = name_of(&ctx, precision)?;
        let image = image_of(&name, precision)?;
        let load = |image: &[u8]| ctx.load_module(nvrtc::Ptx::from_binary(image.to_vec()));
        let module = load(&image).or_else(|_| {
            images().remove(&name); // from a damaged cache
            load(&image_of(&name, precision)?).map_err(fail)
        })?;
        let mut functions = HashMap::new();
        let attribute =
            sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
        let most = ctx.attribute(attribute).map_err(fail)? as u32;
        let tensor = TENSOR.iter().filter(|_| precision == Precision::Tf32);
        for (name, bytes) in SHARED
            .iter()
            .chain(tensor)
            .copied()
            .chain(OTHERS.map(|name| (name, 0)))
        {
            if bytes > most {
                continue; // see `has`
            }
            let function = module.load_function(name).map_err(fail)?;
            let attribute =
                CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
            if bytes > 0 {
                function
                    .set_attribute(attribute, bytes as i32)
                    .map_err(fail)?;
            }
            functions.insert(name, function);
        }
        Ok(Self {
            ctx,
            stream,
            functions,
            rooms: Vec::new(),
        })
    }

    /// Whether it has the shared memory that a kernel needs: 227 kB of an H200 are enough for all, 99 kB of smaller ones
    /// for at least one shape of each kind.
    pub fn has(&self, name: &str) -> bool {
        self.functions.contains_key(name)
    }

    /// Bytes that are free.
    pub fn free(&self) -> Result<usize> {
        self.ctx
            .mem_get_info()
            .map(|(free, _)| free)
            .map_err(|error| failed("memory", error))
    }

    /// Multiprocessors.
    pub fn processors(&self) -> usize {
        let attribute = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
        self.ctx
            .attribute(attribute)
            .map_or(1, |count| count.max(1) as usize)
    }

    /// Room for so many numbers, all zero.
    pub fn room<T>(&mut self, len: usize) -> Result<Room<T>> {
        let bytes = (len * size_of::<T>()).max(16);
        let fail = |error| failed(&format!("{bytes} bytes of memory"), error);
        self.ctx.bind_to_thread().map_err(fail)?;
        // SAFETY: the memory is freed when the card is dropped, after all work on it.
        let at = unsafe {
            let at = result::malloc_sync(bytes).map_err(fail)?;
            self.rooms.push(at);
            result::memset_d8_async(at, 0, bytes, self.stream.cu_stream()).map_err(fail)?;
            at
        };
        Ok(Room {
            at,
            len,
            kind: PhantomData,
        })
    }

    /// Room with these numbers in it.
    pub fn keep<T: Copy>(&mut self, values: &[T]) -> Result<Room<T>> {
        let room = self.room(values.len())?;
        self.send(room, values)?;
        Ok(room)
    }

    /// Copies numbers to the card, when all work before has been done.
    pub fn send<T: Copy>(&self, room: Room<T>, values: &[T]) -> Result<()> {
        assert!(
            values.len() <= room.len,
            "{} numbers for a room of {}",
            values.len(),
            room.len
        );
        if values.is_empty() {
            return Ok(());
        }
        let fail = |error| failed("copying to the GPU", error);
        self.ctx.bind_to_thread().map_err(fail)?;
        // SAFETY: the room is long enough; from memory that is not pinned the copy has read all when it returns.
        unsafe { result::memcpy_htod_async(room.at, values, self.stream.cu_stream()) }.map_err(fail)
    }

    /// Copies numbers back, when all work before has been done.
    pub fn fetch<T: Copy + Default>(&self, room: Room<T>) -> Result<Vec<T>> {
        let mut values = vec![T::default(); room.len];
        let fail = |error| failed("copying from the GPU", error);
        self.ctx.bind_to_thread().map_err(fail)?;
        if !values.is_empty() {
            // SAFETY: the vector is as long as the room, and lives until the queue is empty.
            unsafe { result::memcpy_dtoh_async(&mut values, room.at, self.stream.cu_stream()) }
                .map_err(fail)?;
        }
        self.wait()?;
        Ok(values)
    }

    /// Sets every byte.
    pub fn flood<T>(&self, room: Room<T>, byte: u8) -> Result<()> {
        // SAFETY: the room is that long.
        let set = unsafe {
            result::memset_d8_async(
                room.at,
                byte,
                room.len * size_of::<T>(),
                self.stream.cu_stream(),
            )
        };
        set.map_err(|error| failed("memory", error))
    }

    /// Until all work is done.
    pub fn wait(&self) -> Result<()> {
        self.stream
            .synchronize()
            .map_err(|error| failed("the GPU failed", error))
    }

    /// Queues a kernel.
    pub fn launch<A: DeviceRepr>(
        &self,
        name: &'static str,
        args: &A,
        blocks: usize,
        threads: u32,
    ) -> Result<()> {
        if blocks == 0 {
            return Ok(());
        }
        let shared = SHARED
            .iter()
            .chain(&TENSOR)
            .find(|(known, _)| *known == name)
            .map_or(0, |(_, bytes)| *bytes);
        let config = LaunchConfig {
            grid_dim: (blocks as u32, 1, 1),
            block_dim: (threads, 1, 1),
            shared_mem_bytes: shared,
        };
        let function = self
            .functions
            .get(name)
            .ok_or_else(|| Error::Device(format!("no kernel '{name}'")))?;
        let mut launch = self.stream.launch_builder(function);
        launch.arg(args);
        // SAFETY: every kernel takes the one struct that is its argument, laid out alike in both languages, and the
        // rooms it names live as long as the card.
        unsafe { launch.launch(config) }
            .map(drop)
            .map_err(|error| failed(name, error))
    }

    /// Records work without doing it.
    pub fn record(&self, work: impl FnOnce(&Self) -> Result<()>) -> Result<Graph> {
        let fail = |error| failed("recording work", error);
        self.stream
            .begin_capture(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)
            .map_err(fail)?;
        let queued = work(self);
        let graph = self
            .stream
            .end_capture(sys::CUgraphInstantiate_flags(0))
            .map_err(fail);
        queued?;
        let graph = graph?.ok_or_else(|| Error::Device("no work was recorded".into()))?;
        graph.upload().map_err(fail)?;
        Ok(Graph(graph))
    }

    /// Queues recorded work.
    pub fn replay(&self, graph: &mut Graph) -> Result<()> {
        graph
            .0
            .launch()
            .map_err(|error| failed("the GPU failed", error))
    }
}

impl Drop for Card {
    fn drop(&mut self) {
        let _ = self.stream.synchronize();
        for &at in &self.rooms {
            // SAFETY: it was allocated by `room`, and nothing uses it any more.
            let _ = unsafe { result::free_sync(at) };
        }
    }
}

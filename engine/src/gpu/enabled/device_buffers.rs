//! One GPU: its memory, its kernels, its queue of work.

use crate::device::Precision;
use crate::error::{Error, Result};
use crate::gpu::enabled::kernels::{
    Kernel, Launch, context, failed, image_of, images, name_of, programs_of,
};
use cudarc::driver::sys::{self, CUfunction_attribute_enum, CUstreamCaptureMode};
use cudarc::driver::{
    CudaContext, CudaEvent, CudaFunction, CudaGraph, CudaModule, CudaStream, DeviceRepr,
    LaunchConfig, PinnedHostSlice, ValidAsZeroBits,
};
use cudarc::driver::{PushKernelArg, result};
use cudarc::nvrtc;
use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::Arc;

/// Numbers on the GPU: an address and a length. The [`Gpu`] owns them.
pub(crate) struct Buffer<T> {
    pub at: u64,
    pub len: usize,
    kind: PhantomData<T>,
}

impl<T> Clone for Buffer<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Buffer<T> {}

impl<T> Buffer<T> {
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

/// A GPU with what was put on it.
pub(crate) struct Gpu {
    ctx: Arc<CudaContext>,
    stream: Arc<CudaStream>,
    copies: Arc<CudaStream>, // beside the work
    functions: HashMap<Kernel, CudaFunction>,
    allocated: Vec<u64>,
    processors: usize,
}

// SAFETY: a graph or a queue may be used by one thread at a time, and every use needs the one owner.
unsafe impl Send for Graph {}
// SAFETY: a shared reference to it cannot launch it: [`Gpu::replay`] takes the only one.
unsafe impl Sync for Graph {}

/// Recorded work.
pub(crate) struct Graph(CudaGraph);

impl Gpu {
    /// Opens a GPU and loads its kernels.
    pub fn open(ordinal: usize, precision: Precision) -> Result<Self> {
        let ctx = context(ordinal)?;
        let fail = |error| failed("the GPU cannot be used", error);
        // SAFETY: all work of a GPU goes through one queue, in order.
        unsafe { ctx.disable_event_tracking() };
        let stream = ctx.new_stream().map_err(fail)?;
        let name = name_of(&ctx, precision)?;
        let image = image_of(&name, precision)?;
        let functions = load_functions(&ctx, &image, precision).or_else(|_| {
            images().remove(&name); // from a damaged cache
            load_functions(&ctx, &image_of(&name, precision)?, precision)
        })?;
        let attribute = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
        let processors = ctx.attribute(attribute);
        Ok(Self {
            processors: processors.map_or(1, |count| count.max(1) as usize),
            functions,
            copies: ctx.new_stream().map_err(fail)?,
            ctx,
            stream,
            allocated: Vec::new(),
        })
    }

    /// Whether it has the shared memory that a kernel needs: 227 kB of an H200 are enough for all, 99 kB of smaller ones
    /// for at least one shape of each kind.
    pub fn has(&self, kernel: Kernel) -> bool {
        self.functions.contains_key(&kernel)
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
        self.processors
    }

    /// A buffer of this many numbers, all zero for the work that is queued after this.
    pub fn allocate<T>(&mut self, len: usize) -> Result<Buffer<T>> {
        let bytes = (len * size_of::<T>()).max(16);
        let fail = |error| failed(&format!("{bytes} bytes of memory"), error);
        self.ctx.bind_to_thread().map_err(fail)?;
        // SAFETY: the memory is freed when the GPU is dropped, after all work on it.
        let at = unsafe {
            let at = result::malloc_sync(bytes).map_err(fail)?;
            self.allocated.push(at);
            result::memset_d8_async(at, 0, bytes, self.stream.cu_stream()).map_err(fail)?;
            at
        };
        Ok(Buffer {
            at,
            len,
            kind: PhantomData,
        })
    }

    /// A buffer with these numbers in it.
    pub fn upload<T: Copy>(&mut self, values: &[T]) -> Result<Buffer<T>> {
        let buffer = self.allocate(values.len())?;
        self.send(buffer, values)?;
        Ok(buffer)
    }

    /// Copies numbers to the GPU, when all work before has been done.
    pub fn send<T: Copy>(&self, buffer: Buffer<T>, values: &[T]) -> Result<()> {
        assert!(
            values.len() <= buffer.len,
            "{} numbers for a buffer of {}",
            values.len(),
            buffer.len
        );
        if values.is_empty() {
            return Ok(());
        }
        let fail = |error| failed("copying to the GPU", error);
        self.ctx.bind_to_thread().map_err(fail)?;
        // SAFETY: the buffer is long enough; from memory that is not pinned the copy has read all when it returns.
        unsafe { result::memcpy_htod_async(buffer.at, values, self.stream.cu_stream()) }
            .map_err(fail)
    }

    /// Memory of the host from which the GPU copies by itself. What it holds at first is not said.
    pub fn pinned<T: DeviceRepr>(&self, len: usize) -> Result<PinnedHostSlice<T>> {
        // SAFETY: what is read has been written before.
        unsafe { self.ctx.alloc_pinned(len) }.map_err(|error| failed("pinned memory", error))
    }

    /// A point of a queue that can be waited for; before it is set, there is nothing to wait for.
    pub fn event(&self) -> Result<CudaEvent> {
        let event = self.ctx.new_event(None);
        event.map_err(|error| failed("the GPU cannot be used", error))
    }

    /// Copies numbers to the GPU at once, while work that does not use them goes on, and sets the event when they are
    /// there: work in the queue must neither read nor write the buffer, nor clear it as [`allocate`](Self::allocate)
    /// does.
    ///
    /// # Safety
    /// The values must live and keep still until the event.
    pub unsafe fn send_beside<T: Copy>(
        &self,
        buffer: Buffer<T>,
        values: &[T],
        event: &CudaEvent,
    ) -> Result<()> {
        assert!(values.len() <= buffer.len, "numbers for a smaller buffer");
        let fail = |error| failed("copying to the GPU", error);
        self.ctx.bind_to_thread().map_err(fail)?;
        // SAFETY: the buffer is long enough, and the caller keeps the values.
        unsafe { result::memcpy_htod_async(buffer.at, values, self.copies.cu_stream()) }
            .map_err(fail)?;
        event.record(&self.copies).map_err(fail)
    }

    /// Lets the work that is queued next wait for an event.
    pub fn wait_for(&self, event: &CudaEvent) -> Result<()> {
        let waiting = self.stream.wait(event);
        waiting.map_err(|error| failed("the GPU failed", error))
    }

    /// Sets an event when all that was queued is done.
    pub fn mark(&self, event: &CudaEvent) -> Result<()> {
        let marked = event.record(&self.stream);
        marked.map_err(|error| failed("the GPU failed", error))
    }

    /// Queues a copy of numbers to pinned memory.
    ///
    /// # Safety
    /// The memory must live until the copy is done, and must not be read before.
    pub unsafe fn fetch_later<T: Copy + ValidAsZeroBits>(
        &self,
        buffer: Buffer<T>,
        to: &mut PinnedHostSlice<T>,
    ) -> Result<()> {
        let fail = |error| failed("copying from the GPU", error);
        let to = &mut to.as_mut_slice().map_err(fail)?[..buffer.len];
        self.ctx.bind_to_thread().map_err(fail)?;
        // SAFETY: there is space for all, and the caller keeps it.
        unsafe { result::memcpy_dtoh_async(to, buffer.at, self.stream.cu_stream()) }.map_err(fail)
    }

    /// Copies numbers back, when all work before has been done.
    pub fn fetch<T: Copy + Default>(&self, buffer: Buffer<T>) -> Result<Vec<T>> {
        let mut values = vec![T::default(); buffer.len];
        let fail = |error| failed("copying from the GPU", error);
        self.ctx.bind_to_thread().map_err(fail)?;
        if !values.is_empty() {
            // SAFETY: the vector is as long as the buffer, and lives until the queue is empty.
            unsafe { result::memcpy_dtoh_async(&mut values, buffer.at, self.stream.cu_stream()) }
                .map_err(fail)?;
        }
        self.wait()?;
        Ok(values)
    }

    /// Sets every byte.
    pub fn set_bytes<T>(&self, buffer: Buffer<T>, byte: u8) -> Result<()> {
        // SAFETY: the buffer is that long.
        let set = unsafe {
            result::memset_d8_async(
                buffer.at,
                byte,
                buffer.len * size_of::<T>(),
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
    pub fn launch<A: DeviceRepr>(&self, launch: Launch, args: &A) -> Result<()> {
        let Launch {
            kernel,
            blocks,
            threads,
        } = launch;
        if blocks == 0 {
            return Ok(());
        }
        let config = LaunchConfig {
            grid_dim: (blocks as u32, 1, 1),
            block_dim: (threads, 1, 1),
            shared_mem_bytes: kernel.shared_bytes(),
        };
        let function = self
            .functions
            .get(&kernel)
            .ok_or_else(|| Error::Device(format!("no kernel '{}'", kernel.name())))?;
        let mut launch = self.stream.launch_builder(function);
        launch.arg(args);
        // SAFETY: every kernel takes the one struct that is its argument, laid out alike in both languages, and the
        // buffers it names live as long as the GPU.
        unsafe { launch.launch(config) }
            .map(drop)
            .map_err(|error| failed(kernel.name(), error))
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

/// The kernels for which a block has enough shared memory, see [`Gpu::has`].
fn load_functions(
    ctx: &Arc<CudaContext>,
    image: &[u8],
    precision: Precision,
) -> Result<HashMap<Kernel, CudaFunction>> {
    let fail = |error| failed("the GPU cannot be used", error);
    let mut modules: Vec<Arc<CudaModule>> = Vec::new();
    for program in programs_of(image) {
        let program = nvrtc::Ptx::from_binary(program.to_vec());
        modules.push(ctx.load_module(program).map_err(fail)?);
    }
    let attribute = sys::CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
    let max_shared = ctx.attribute(attribute).map_err(fail)? as u32;
    let mut functions = HashMap::new();
    for kernel in Kernel::all(precision).filter(|kernel| kernel.shared_bytes() <= max_shared) {
        let module = modules.get(kernel.program());
        let module = module.ok_or_else(|| Error::Device("the kernels are damaged".into()))?;
        let function = module.load_function(kernel.name()).map_err(fail)?;
        let shared = CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        if kernel.shared_bytes() > 0 {
            function
                .set_attribute(shared, kernel.shared_bytes() as i32)
                .map_err(fail)?;
        }
        functions.insert(kernel, function);
    }
    Ok(functions)
}

impl Drop for Gpu {
    fn drop(&mut self) {
        let _ = self.copies.synchronize();
        let _ = self.stream.synchronize();
        for &at in &self.allocated {
            // SAFETY: it was allocated by `allocate`, and nothing uses it any more.
            let _ = unsafe { result::free_sync(at) };
        }
    }
}

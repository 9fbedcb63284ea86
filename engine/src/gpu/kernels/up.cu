// The way up: mixing with the product of a window, products of products where windows are large.

// A level: windows of at most four children. Larger windows are cut, and joined afterwards.
struct Mix {
    Layer below, above;
    const float* weights; // (matrices, C, wide A), as `kept` has them
    float* others;        // (nodes below, B, wide C): the product of a child's siblings; null where nothing goes down
    const int* child;     // (windows, 4), −1 where there is none
    const int* matrix;    // (nodes below)
    const float* by;      // 4 / the least number of all matrices of the level
    int rows;             // B, a multiple of 64
};

// Log-scale of one row of a window, and what underflow may have taken. All is read at once, also what will not count:
// one read after another would be as long as the products.
__device__ __forceinline__ void add_scales(const Mix& s, int4 four, int p, int b) {
    const float by = *s.by;
    const int children[4] = {four.x, four.y, four.z, four.w};
    int top[4];
    double below[4];
    float2 own[4];
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const size_t row = (size_t)max(children[k], 0) * s.rows + b;
        top[k] = s.below.top[row], below[k] = s.below.scale[row], own[k] = s.below.lost[row];
    }
    double scale = 0.0;
    float2 lost = make_float2(2.0f * TINY, 0.0f); // of the product, and of sums over φ that was not divided yet
#pragma unroll
    for (int k = 0; k < 4; k++) {
        if (children[k] < 0 || top[k] < 0) continue;
        scale += below[k] + exponent(top[k]);
        add_mixed(lost, lost_after(own[k].x, top[k]), own[k].y, by);
    }
    s.above.scale[(size_t)p * s.rows + b] = scale;
    s.above.lost[(size_t)p * s.rows + b] = lost;
}

// Bits of the rows that this thread will write: the window is not summed out.
template <class T> __device__ __forceinline__ int seen_rows(const Mix& s, const int (&children)[4], int p, int b0) {
    const int QUADS = T::BN / 4, ROUNDS = T::BM * QUADS / T::THREADS;
    int seen = 0;
#pragma unroll
    for (int r = 0; r < ROUNDS; r++) {
        const int b = b0 + (threadIdx.x + r * T::THREADS) / QUADS;
        bool any = false;
#pragma unroll
        for (int k = 0; k < 4; k++) any |= children[k] >= 0 && s.below.top[(size_t)children[k] * s.rows + b] >= 0;
        if (any && (s.above.drop == 0 || s.above.drop[(size_t)p * s.rows + b] == 0)) seen |= 1 << r;
    }
    return seen;
}

// φ of a window from ψ of its children, which lie in shared memory; and for each child the product of its siblings.
template <class T> __device__ __forceinline__ void multiply_children(const Mix& s, const int (&children)[4], int p, int b0, int c0, int seen) {
    const int QUADS = T::BN / 4, ROUNDS = T::BM * QUADS / T::THREADS;
#pragma unroll 1
    for (int r = 0; r < ROUNDS; r++) {
        const int i = threadIdx.x + r * T::THREADS, row = i / QUADS, c = i % QUADS * 4, b = b0 + row;
        const float* psi = shared + row * T::OUT + c;
        float4 x = *(const float4*)psi, y = *(const float4*)(psi + T::BM * T::OUT);
        float4 z = *(const float4*)(psi + 2 * T::BM * T::OUT), w = *(const float4*)(psi + 3 * T::BM * T::OUT);
        float4 xy = make_float4(x.x * y.x, x.y * y.y, x.z * y.z, x.w * y.w);
        float4 zw = make_float4(z.x * w.x, z.y * w.y, z.z * w.z, z.w * w.w);
        float4 all = make_float4(xy.x * zw.x, xy.y * zw.y, xy.z * zw.z, xy.w * zw.w);
        const int real = s.above.real - c0 - c;
        if (real < 1) all.x = 0.0f;
        if (real < 2) all.y = 0.0f;
        if (real < 3) all.z = 0.0f;
        if (real < 4) all.w = 0.0f;
        float largest = fmaxf(fmaxf(all.x, all.y), fmaxf(all.z, all.w));
#pragma unroll
        for (int by = QUADS / 2; by > 0; by /= 2) largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, by));
        if (c == 0 && (seen >> r & 1)) atomicMax(s.above.top + (size_t)p * s.rows + b, __float_as_int(largest));
        if (c0 + c >= s.above.wide) continue;
        *(float4*)(s.above.phi + ((size_t)p * s.rows + b) * s.above.wide + c0 + c) = make_float4(kept(all.x), kept(all.y), kept(all.z), kept(all.w));
        if (s.others != 0) {
            float4 o[4] = {make_float4(y.x * zw.x, y.y * zw.y, y.z * zw.z, y.w * zw.w), make_float4(x.x * zw.x, x.y * zw.y, x.z * zw.z, x.w * zw.w),
                           make_float4(w.x * xy.x, w.y * xy.y, w.z * xy.z, w.w * xy.w), make_float4(z.x * xy.x, z.y * xy.y, z.z * xy.z, z.w * xy.w)};
#pragma unroll
            for (int k = 0; k < 4; k++)
                if (children[k] >= 0) *(float4*)(s.others + ((size_t)children[k] * s.rows + b) * s.above.wide + c0 + c) = o[k];
        }
    }
}

template <class T> __device__ __forceinline__ void mix_up(const Mix& s) {
    const int group = threadIdx.x / T::GROUP, thread = threadIdx.x % T::GROUP, warp = thread / 32;
    const int c_tiles = (s.above.wide + T::BN - 1) / T::BN, b_tiles = s.rows / T::BM;
    const int c0 = blockIdx.x % c_tiles * T::BN, b0 = blockIdx.x / c_tiles % b_tiles * T::BM;
    const int p = blockIdx.x / c_tiles / b_tiles;
    const int m = warp % (T::BM / T::WM) * T::WM, n = warp / (T::BM / T::WM) * T::WN;
    const int depth = s.below.wide, steps = (depth + T::BK - 1) / T::BK;
    const int j = s.child[4 * p + group];
    const int STAGE = (T::BM + T::BN) * T::LINE;
    float acc[T::MF][T::NF][4];
    clear<T>(acc);
    // A group without a child goes through the steps as well, for the barriers' sake.
    const float* phi = s.below.phi + ((size_t)max(j, 0) * s.rows + b0) * depth;
    const float* w = s.weights + ((size_t)s.matrix[max(j, 0)] * s.above.real + c0) * depth;
    float* stage = shared + group * min(steps, T::STAGES) * STAGE;
    auto load = [&](int step) {
        float* to = stage + step % T::STAGES * STAGE;
        if (j >= 0 && step < steps) {
            load_lines<T, T::BM>(to, phi, depth, T::BM, step * T::BK, depth, thread);
            load_lines<T, T::BN>(to + T::BM * T::LINE, w, depth, s.above.real - c0, step * T::BK, depth, thread);
        }
        copies_end();
    };
#pragma unroll 1
    for (int step = 0; step < T::STAGES - 1; step++) load(step);
    // What is known of the children is read while the first copies are on their way.
    const int4 all_four = *(const int4*)(s.child + 4 * p);
    const int children[4] = {all_four.x, all_four.y, all_four.z, all_four.w};
    const int seen = seen_rows<T>(s, children, p, b0);
    float factor[2 * T::MF]; // negative where a row of the child is 1
#pragma unroll
    for (int r = 0; r < 2 * T::MF; r++) {
        const int top = j < 0 ? -1 : s.below.top[(size_t)j * s.rows + b0 + m + 8 * r + (threadIdx.x & 31) / 4];
        factor[r] = top < 0 ? -1.0f : inverse(top);
    }
    if (c0 == 0 && threadIdx.x < T::BM) add_scales(s, all_four, p, b0 + threadIdx.x);
    for (int step = 0; step < steps; step++) {
        copies_wait<T::STAGES - 2>();
        group_sync<T>(group);
        load(step + T::STAGES - 1);
        const float* from = stage + step % T::STAGES * STAGE;
        if (j >= 0) multiply<T, T::LINE, 1, T::LINE, 1, false>(acc, from + m * T::LINE, from + (T::BM + n) * T::LINE, 0);
    }
    copies_wait<0>();
    __syncthreads();
    put<T>(shared + group * T::BM * T::OUT, acc, m, n, [&](int r) { return factor[r]; });
    __syncthreads();
    multiply_children<T>(s, children, p, b0, c0, seen);
}

extern "C" __global__ void __launch_bounds__(128) mix_up_small(const __grid_constant__ Mix s) {
    mix_up<Shape<32, 32, 32, 32, 32, 3, 4>>(s);
}
extern "C" __global__ void __launch_bounds__(128, 4) mix_up_flat(const __grid_constant__ Mix s) { // at most 32 channels in
    mix_up<Shape<32, 64, 32, 64, 32, 2, 4>>(s);
}
extern "C" __global__ void __launch_bounds__(256, 2) mix_up_large(const __grid_constant__ Mix s) {
    mix_up<Shape<64, 64, 32, 64, 16, 2, 4>>(s);
}
extern "C" __global__ void __launch_bounds__(512, 1) mix_up_huge(const __grid_constant__ Mix s) {
    mix_up<Shape<128, 64, 32, 64, 32, 2, 4>>(s);
}

// Writes N pieces of eight channels of one row of φ, two numbers a lane from channel c0 on; returns the row's largest.
template <int N>
__device__ __forceinline__ float store_products(const Layer& above, const float (&prod)[N][4], int half, size_t row, int c0) {
    float largest = 0.0f;
#pragma unroll
    for (int j = 0; j < N; j++) {
        const int c = c0 + 8 * j;
        float2 both = make_float2(prod[j][half], prod[j][half + 1]);
        if (c >= above.real) both.x = 0.0f;
        if (c + 1 >= above.real) both.y = 0.0f;
        largest = fmaxf(largest, fmaxf(both.x, both.y));
        if (c < above.wide) *(float2*)(above.phi + row * above.wide + c) = make_float2(kept(both.x), kept(both.y));
    }
    largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 1));
    return fmaxf(largest, __shfl_xor_sync(~0u, largest, 2));
}

// The copies of a block that takes tile after tile, and of each one child after another: what is copied next, from where
// and to which stage.
template <class T> struct ChildStream {
    const Mix& s;
    int depth, c_tiles, b_tiles, tiles;
    int tile, child = 0, k = 0, stage = 0, left = 0;
    const float *phi = 0, *w = 0;

    __device__ __forceinline__ void aim() {
        const int c0 = tile % c_tiles * T::BN, b0 = tile / c_tiles % b_tiles * T::BM;
        const int j = s.child[4 * (tile / c_tiles / b_tiles) + child];
        phi = s.below.phi + ((size_t)j * s.rows + b0) * depth;
        w = s.weights + ((size_t)s.matrix[j] * s.above.real + c0) * depth;
        left = s.above.real - c0;
    }

    __device__ __forceinline__ void load() {
        if (tile < tiles) {
            float* to = shared + stage * (T::BM + T::BN) * T::LINE;
            load_lines<T, T::BM>(to, phi, depth, T::BM, k, depth, threadIdx.x);
            load_lines<T, T::BN>(to + T::BM * T::LINE, w, depth, left, k, depth, threadIdx.x);
            stage = stage + 1 == T::STAGES ? 0 : stage + 1;
            k += T::BK;
            if (k >= depth) {
                k = 0, child++;
                if (child == 4 || s.child[4 * (tile / c_tiles / b_tiles) + child] < 0) child = 0, tile += gridDim.x;
                if (tile < tiles) aim();
            }
        }
        copies_end();
    }
};

// Multiplies products by ψ of one child where it is observed; returns bits of those rows.
template <class T>
__device__ __forceinline__ int multiply_observed(float (&prod)[T::MF][T::NF][4], const float (&acc)[T::MF][T::NF][4], const int (&top)[2 * T::MF]) {
    int seen = 0;
#pragma unroll
    for (int r = 0; r < 2 * T::MF; r++) {
        if (top[r] < 0) continue;
        seen |= 1 << r;
        const float by = inverse(top[r]);
#pragma unroll
        for (int j = 0; j < T::NF; j++) prod[r / 2][j][r % 2 * 2] *= acc[r / 2][j][r % 2 * 2] * by, prod[r / 2][j][r % 2 * 2 + 1] *= acc[r / 2][j][r % 2 * 2 + 1] * by;
    }
    return seen;
}

// Mixing up where nothing goes down: one stream of copies, and products in registers.
template <class T> __device__ __forceinline__ void score_tiles(const Mix& s) {
    const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3, warp = threadIdx.x / 32;
    const int c_tiles = (s.above.wide + T::BN - 1) / T::BN, b_tiles = s.rows / T::BM, tiles = s.above.nodes * b_tiles * c_tiles;
    const int m = warp % (T::BM / T::WM) * T::WM, n = warp / (T::BM / T::WM) * T::WN;
    const int depth = s.below.wide, STAGE = (T::BM + T::BN) * T::LINE;
    ChildStream<T> stream = {s, depth, c_tiles, b_tiles, tiles, (int)blockIdx.x};
    stream.aim();
#pragma unroll
    for (int i = 0; i < T::STAGES - 1; i++) stream.load();
    int stage = 0;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x) {
        const int c0 = tile % c_tiles * T::BN, b0 = tile / c_tiles % b_tiles * T::BM, p = tile / c_tiles / b_tiles;
        const int* child = s.child + 4 * p;
        if (c0 == 0 && threadIdx.x < T::BM) add_scales(s, *(const int4*)child, p, b0 + threadIdx.x);
        float acc[T::MF][T::NF][4], prod[T::MF][T::NF][4];
#pragma unroll
        for (int i = 0; i < T::MF; i++)
#pragma unroll
            for (int j = 0; j < T::NF; j++)
#pragma unroll
                for (int r = 0; r < 4; r++) prod[i][j][r] = 1.0f;
        int any = 0;
        for (int q = 0; q < 4 && child[q] >= 0; q++) {
            int top[2 * T::MF];
#pragma unroll
            for (int r = 0; r < 2 * T::MF; r++) top[r] = s.below.top[(size_t)child[q] * s.rows + b0 + m + 8 * r + g];
            clear<T>(acc);
            for (int k = 0; k < depth; k += T::BK) {
                copies_wait<T::STAGES - 2>();
                __syncthreads();
                stream.load();
                const float* from = shared + stage * STAGE;
                multiply<T, T::LINE, 1, T::LINE, 1, false>(acc, from + m * T::LINE, from + (T::BM + n) * T::LINE, 0);
                stage = stage + 1 == T::STAGES ? 0 : stage + 1;
            }
            any |= multiply_observed<T>(prod, acc, top);
        }
#pragma unroll
        for (int r = 0; r < 2 * T::MF; r++) {
            const size_t row = (size_t)p * s.rows + b0 + m + 8 * r + g;
            const float largest = store_products<T::NF>(s.above, prod[r / 2], r % 2 * 2, row, c0 + n + 2 * t);
            const bool seen = (any >> r & 1) && (s.above.drop == 0 || s.above.drop[row] == 0);
            if (t == 0 && seen) atomicMax(s.above.top + row, __float_as_int(largest));
        }
    }
}

extern "C" __global__ void __launch_bounds__(256, 2) score_up(const __grid_constant__ Mix s) {
    score_tiles<Shape<128, 64, 32, 32, 32, 3, 1>>(s);
}

// φ of a node that is the product of at most four others. A warp a row.
struct Join {
    Layer below, above;
    float* others; // (nodes below, B, C)
    const int* child;
    int rows;
};

extern "C" __global__ void join_up(const __grid_constant__ Join s) {
    const int lane = threadIdx.x & 31;
    const size_t row = (size_t)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (row >= (size_t)s.above.nodes * s.rows) return;
    const int p = row / s.rows, b = row % s.rows, wide = s.above.wide;
    size_t from[4];
    float by[4];
    bool any = false, seen = s.above.drop == 0 || s.above.drop[row] == 0;
    double scale = 0.0;
    float2 lost = make_float2(TINY, 0.0f);
    for (int k = 0; k < 4; k++) {
        int j = s.child[4 * p + k];
        from[k] = (size_t)(j < 0 ? 0 : j) * s.rows + b;
        int top = j < 0 ? -1 : s.below.top[from[k]];
        by[k] = top < 0 ? -1.0f : inverse(top);
        if (top < 0) continue;
        any = true;
        scale += s.below.scale[from[k]] + exponent(top);
        lost.x += lost_after(s.below.lost[from[k]].x, top);
        lost.y += s.below.lost[from[k]].y;
    }
    float largest = 0.0f;
    for (int c = lane; c < wide; c += 32) {
        float x[4];
        for (int k = 0; k < 4; k++) x[k] = by[k] < 0.0f ? 1.0f : s.below.phi[from[k] * wide + c] * by[k];
        float all = c < s.above.real ? (x[0] * x[1]) * (x[2] * x[3]) : 0.0f;
        largest = fmaxf(largest, all);
        s.above.phi[row * wide + c] = kept(all);
        if (s.others == 0) continue;
        float o[4] = {x[1] * (x[2] * x[3]), x[0] * (x[2] * x[3]), x[3] * (x[0] * x[1]), x[2] * (x[0] * x[1])};
        for (int k = 0; k < 4; k++)
            if (s.child[4 * p + k] >= 0) s.others[from[k] * wide + c] = o[k];
    }
    for (int step = 16; step > 0; step /= 2) largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, step));
    if (lane > 0) return;
    s.above.top[row] = seen && any ? __float_as_int(largest) : -1;
    s.above.scale[row] = scale;
    s.above.lost[row] = lost;
}

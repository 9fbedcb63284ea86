// The way down: dφ of a level's children, and dW.
//
//     dψ_j(c) = dφ(c) 2⁻ᵉ Π_{k≠j} ψ_k(c)          made where it is needed; zero where the child or the window is summed out
//     dφ_j(a) = Σ_c W[c,a] dψ_j(c)
//     dW[c,a] = Σ_b dψ_b(c) φ_b(a)

struct Down {
    Layer below, above;
    const float* weights; // (matrices, C, wide A)
    const float* others;  // (nodes below, B, wide C)
    const int* parent;    // (nodes below)
    const int* matrix;    // (nodes below)
    int rows;
};

template <class T> __device__ __forceinline__ void mix_down(const Down& s) {
    const int group = threadIdx.x / T::GROUP, thread = threadIdx.x % T::GROUP, warp = thread / 32;
    const int a_tiles = (s.below.wide + T::BN - 1) / T::BN, b_tiles = s.rows / T::BM;
    const int a0 = blockIdx.x % a_tiles * T::BN, b0 = blockIdx.x / a_tiles % b_tiles * T::BM;
    const int j = blockIdx.x / a_tiles / b_tiles, p = s.parent[j];
    const int m = warp % (T::BM / T::WM) * T::WM, n = warp / (T::BM / T::WM) * T::WN;
    const int depth = s.above.real, wide = s.above.wide, steps = (depth + T::BK - 1) / T::BK;
    const float* dphi = s.above.dphi + ((size_t)p * s.rows + b0) * wide;
    const float* others = s.others + ((size_t)j * s.rows + b0) * wide;
    const float* w = s.weights + (size_t)s.matrix[j] * depth * s.below.wide + a0;
    const int STAGE = T::BM * T::LINE + T::BK * (T::BN + 8);
    const int QUADS = T::BM * T::BK / 4 / T::GROUP; // numbers of dψ that a thread makes, by four
    float* stage = shared + group * 2 * STAGE;
    float acc[T::MF][T::NF][4], by[QUADS];
    float4 x[QUADS], y[QUADS];
    clear<T>(acc);
#pragma unroll
    for (int i = 0; i < QUADS; i++) {
        size_t row = b0 + (thread + i * T::GROUP) / (T::BK / 4);
        int top = s.above.top[(size_t)p * s.rows + row];
        by[i] = top < 0 || s.below.top[(size_t)j * s.rows + row] < 0 ? 0.0f : inverse(top);
    }
    auto fetch = [&](int step) {
#pragma unroll
        for (int i = 0; i < QUADS; i++) {
            int at = thread + i * T::GROUP, r = at / (T::BK / 4), k = step * T::BK + at % (T::BK / 4) * 4;
            bool valid = k < wide;
            x[i] = valid ? *(const float4*)(dphi + (size_t)r * wide + k) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            y[i] = valid ? *(const float4*)(others + (size_t)r * wide + k) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        }
    };
    auto store = [&](float* to) {
#pragma unroll
        for (int i = 0; i < QUADS; i++) {
            int at = thread + i * T::GROUP;
            float f = by[i];
            float4 value = make_float4(x[i].x * f * y[i].x, x[i].y * f * y[i].y, x[i].z * f * y[i].z, x[i].w * f * y[i].w);
            *(float4*)(to + at / (T::BK / 4) * T::LINE + at % (T::BK / 4) * 4) = value;
        }
    };
    auto load = [&](int step, float* to) {
        load_columns<T, T::BN>(to + T::BM * T::LINE, w, s.below.wide, step * T::BK, depth, s.below.wide - a0, thread);
        copies_end();
    };
    int turn = 0;
    if (group < steps) {
        fetch(group);
        load(group, stage);
        store(stage);
    }
    for (int step = group; step < steps; step += T::GROUPS, turn ^= 1) {
        float *now = stage + turn * STAGE, *next = stage + (turn ^ 1) * STAGE;
        bool more = step + T::GROUPS < steps;
        if (more) fetch(step + T::GROUPS);
        copies_wait<0>();
        group_sync<T>(group);
        if (more) load(step + T::GROUPS, next);
        multiply<T, T::LINE, 1, 1, T::BN + 8, false>(acc, now + m * T::LINE, now + T::BM * T::LINE + n, 0);
        if (more) store(next);
    }
    __syncthreads();
    put<T>(shared + group * T::BM * T::OUT, acc, m, n, [](int) { return 1.0f; });
    __syncthreads();
    for (int i = threadIdx.x; i < T::BM * T::BN / 4; i += T::THREADS) {
        const int row = i / (T::BN / 4), a = i % (T::BN / 4) * 4;
        if (a0 + a >= s.below.wide) continue;
        float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        for (int k = 0; k < T::GROUPS; k++) {
            float4 part = *(const float4*)(shared + k * T::BM * T::OUT + row * T::OUT + a);
            sum = make_float4(sum.x + part.x, sum.y + part.y, sum.z + part.z, sum.w + part.w);
        }
        *(float4*)(s.below.dphi + ((size_t)j * s.rows + b0 + row) * s.below.wide + a0 + a) = sum;
    }
}

typedef Shape<32, 32, 32, 32, 16, 2, 4> Small;
typedef Shape<64, 64, 32, 64, 16, 2, 4> Large;
typedef Shape<128, 64, 64, 16, 16, 2, 1> Tall;
typedef Shape<128, 128, 64, 32, 16, 2, 1> Huge;

extern "C" __global__ void __launch_bounds__(128) mix_down_small(const __grid_constant__ Down s) { mix_down<Small>(s); }
extern "C" __global__ void __launch_bounds__(256, 2) mix_down_tall(const __grid_constant__ Down s) { mix_down<Tall>(s); }
extern "C" __global__ void __launch_bounds__(256, 2) mix_down_huge(const __grid_constant__ Down s) { mix_down<Huge>(s); }

// dφ of nodes that were multiplied without mixing.
extern "C" __global__ void join_down(const __grid_constant__ Down s) {
    const int wide = s.below.wide;
    const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x, row = i / wide;
    if (row >= (size_t)s.below.nodes * s.rows) return;
    const size_t above = (size_t)s.parent[row / s.rows] * s.rows + row % s.rows;
    int top = s.above.top[above];
    float by = top < 0 || s.below.top[row] < 0 ? 0.0f : inverse(top);
    s.below.dphi[i] = s.above.dphi[above * wide + i % wide] * by * s.others[i];
}

// One tile of one dW, summed over a part of its (node, sample) pairs.
struct Part {
    int source, matrix, c, a; // which product, and where the tile lies
    int from, until;          // steps of BK samples, over the matrix' nodes one after another
    u64 out;                  // where the tile's matrix starts in the sums
};

// What a dW is made of.
struct Source {
    Layer below, above;
    const float* others; // null: dψ is `above.dphi` itself
    const float* factor; // (B, trees) with others null: of this tree under the root
    const int* parent;
    const int* nodes;    // nodes of each matrix, one after another
    const int* first;    // (matrices + 1)
    int stride;          // of factor
    int columns;         // wide A of the matrix
};

struct Gradient {
    const Source* sources;
    const Part* parts;
    float* sums;
    int rows;
};

template <class T> __device__ __forceinline__ void gradient(const Gradient& g) {
    const int group = threadIdx.x / T::GROUP, thread = threadIdx.x % T::GROUP, warp = thread / 32;
    const Part part = g.parts[blockIdx.x];
    const Source& s = g.sources[part.source];
    const int m = warp % (T::BM / T::WM) * T::WM, n = warp / (T::BM / T::WM) * T::WN;
    const int c_wide = s.above.wide, a_wide = s.below.wide, a_left = a_wide - part.a;
    const int each = g.rows / T::BK; // steps a node
    const int* nodes = s.nodes + s.first[part.matrix];
    const float *dphi = s.above.dphi, *others = s.others, *phi = s.below.phi, *factor = s.factor;
    const int *above_top = s.above.top, *below_top = s.below.top, *parent = s.parent;
    const int LINE_C = T::BM + 8, LINE_A = T::BN + 8, STAGE = T::BK * (LINE_C + LINE_A + 1);
    const int QUADS = T::BM * T::BK / 4 / T::GROUP;
    float* stage = shared + group * 2 * STAGE;
    float acc[T::MF][T::NF][4], by[QUADS];
    float4 x[QUADS], y[QUADS];
    clear<T>(acc);
    auto fetch = [&](int step) {
        const int j = nodes[step / each], b0 = step % each * T::BK, p = parent[j];
#pragma unroll
        for (int i = 0; i < QUADS; i++) {
            int at = thread + i * T::GROUP, b = b0 + at / (T::BM / 4), c = part.c + at % (T::BM / 4) * 4;
            bool valid = c < c_wide;
            size_t above = (size_t)p * g.rows + b, below = (size_t)j * g.rows + b;
            x[i] = valid ? *(const float4*)(dphi + above * c_wide + c) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
            if (others != 0) {
                y[i] = valid ? *(const float4*)(others + below * c_wide + c) : make_float4(0.0f, 0.0f, 0.0f, 0.0f);
                int top = above_top[above];
                by[i] = top < 0 || below_top[below] < 0 ? 0.0f : inverse(top);
            } else {
                y[i] = make_float4(1.0f, 1.0f, 1.0f, 1.0f);
                by[i] = factor[(size_t)b * s.stride];
            }
        }
    };
    auto load = [&](int step, float* to) {
        const int j = nodes[step / each], b0 = step % each * T::BK;
        const size_t row = (size_t)j * g.rows + b0;
        load_columns<T, T::BN>(to + T::BK * LINE_C, phi + row * a_wide + part.a, a_wide, 0, T::BK, a_left, thread);
        copies_end();
        if (thread < T::BK) to[T::BK * (LINE_C + LINE_A) + thread] = inverse(below_top[row + thread]);
    };
    auto store = [&](float* to) {
#pragma unroll
        for (int i = 0; i < QUADS; i++) {
            int at = thread + i * T::GROUP;
            float f = by[i];
            float4 value = make_float4(x[i].x * f * y[i].x, x[i].y * f * y[i].y, x[i].z * f * y[i].z, x[i].w * f * y[i].w);
            *(float4*)(to + at / (T::BM / 4) * LINE_C + at % (T::BM / 4) * 4) = value;
        }
    };
    int turn = 0;
    const int first = part.from + group;
    if (first < part.until) {
        fetch(first);
        load(first, stage);
        store(stage);
    }
    for (int step = first; step < part.until; step += T::GROUPS, turn ^= 1) {
        float *now = stage + turn * STAGE, *next = stage + (turn ^ 1) * STAGE;
        bool more = step + T::GROUPS < part.until;
        if (more) fetch(step + T::GROUPS);
        copies_wait<0>();
        group_sync<T>(group);
        if (more) load(step + T::GROUPS, next);
        multiply<T, 1, LINE_C, 1, LINE_A, true>(acc, now + m, now + T::BK * LINE_C + n, now + T::BK * (LINE_C + LINE_A));
        if (more) store(next);
    }
    __syncthreads();
    put<T>(shared + group * T::BM * T::OUT, acc, m, n, [](int) { return 1.0f; });
    __syncthreads();
    for (int i = threadIdx.x; i < T::BM * T::BN / 4; i += T::THREADS) {
        const int c = i / (T::BN / 4), a = i % (T::BN / 4) * 4;
        if (part.c + c >= s.above.real || a >= a_left) continue;
        float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
        for (int k = 0; k < T::GROUPS; k++) {
            float4 tile = *(const float4*)(shared + k * T::BM * T::OUT + c * T::OUT + a);
            sum = make_float4(sum.x + tile.x, sum.y + tile.y, sum.z + tile.z, sum.w + tile.w);
        }
        *(float4*)(g.sums + part.out + (size_t)(part.c + c) * s.columns + part.a + a) = sum;
    }
}

extern "C" __global__ void __launch_bounds__(128) gradient_small(const __grid_constant__ Gradient s) { gradient<Small>(s); }
extern "C" __global__ void __launch_bounds__(256, 2) gradient_large(const __grid_constant__ Gradient s) { gradient<Large>(s); }
extern "C" __global__ void __launch_bounds__(256, 2) gradient_tall(const __grid_constant__ Gradient s) { gradient<Tall>(s); }
extern "C" __global__ void __launch_bounds__(256, 2) gradient_huge(const __grid_constant__ Gradient s) { gradient<Huge>(s); }

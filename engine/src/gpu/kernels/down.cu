// The way down: dφ of a level's children, and dW.
//
//     dψ_j(c) = dφ(c) 2⁻ᵉ Π_{k≠j} ψ_k(c)          made where it is needed; zero where the child or the window is summed out
//     dφ_j(a) = Σ_c W[c,a] dψ_j(c)
//     dW[c,a] = Σ_b dψ_b(c) φ_b(a)

struct Down {
    Layer below, above;
    const float* weights; // (matrices, C, wide A), as `kept` has them
    const float* others;  // (nodes below, B, wide C)
    const int* parent;    // (nodes below)
    const int* matrix;    // (nodes below)
    int rows;
};

// dψ of four channels.
__device__ __forceinline__ float4 kept_product(float4 d, float f, float4 o) {
    return make_float4(kept(d.x * f * o.x), kept(d.y * f * o.y), kept(d.z * f * o.z), kept(d.w * f * o.w));
}

// The sum of the groups' tiles, four columns.
template <class T> __device__ __forceinline__ float4 sum_of_groups(int row, int column) {
    float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
    for (int k = 0; k < T::GROUPS; k++) {
        float4 part = *(const float4*)(shared + k * T::BM * T::OUT + row * T::OUT + column);
        sum = make_float4(sum.x + part.x, sum.y + part.y, sum.z + part.z, sum.w + part.w);
    }
    return sum;
}

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
    const int LINES = T::BM * T::LINE, STAGE = 2 * LINES + T::BK * (T::BN + 8);
    const int QUADS = T::BM * T::BK / 4 / T::GROUP; // numbers of dψ that a thread makes, by four
    float* stage = shared + group * T::STAGES * STAGE;
    float acc[T::MF][T::NF][4], by[QUADS];
    clear<T>(acc);
#pragma unroll
    for (int i = 0; i < QUADS; i++) {
        size_t row = b0 + (thread + i * T::GROUP) / (T::BK / 4);
        int top = s.above.top[(size_t)p * s.rows + row];
        by[i] = top < 0 || s.below.top[(size_t)j * s.rows + row] < 0 ? 0.0f : inverse(top);
    }
    auto load = [&](int turn) {
        const int k = (group + turn * T::GROUPS) * T::BK;
        float* to = stage + turn % T::STAGES * STAGE;
        if (k < depth) {
            load_lines<T, T::BM>(to, dphi, wide, T::BM, k, wide, thread);
            load_lines<T, T::BM>(to + LINES, others, wide, T::BM, k, wide, thread);
            load_columns<T, T::BN>(to + 2 * LINES, w, s.below.wide, k, depth, s.below.wide - a0, thread);
        }
        copies_end();
    };
    auto combine = [&](float* x) {
#pragma unroll
        for (int i = 0; i < QUADS; i++) {
            const int at = thread + i * T::GROUP, place = at / (T::BK / 4) * T::LINE + at % (T::BK / 4) * 4;
            const float4 d = *(const float4*)(x + place), o = *(const float4*)(x + LINES + place);
            *(float4*)(x + place) = kept_product(d, by[i], o);
        }
    };
#pragma unroll 1
    for (int turn = 0; turn < T::STAGES - 1; turn++) load(turn);
    for (int turn = 0; group + turn * T::GROUPS < steps; turn++) {
        float* now = stage + turn % T::STAGES * STAGE;
        copies_wait<T::STAGES - 2>();
        group_sync<T>(group);
        load(turn + T::STAGES - 1);
        combine(now);
        group_sync<T>(group);
        multiply<T, T::LINE, 1, 1, T::BN + 8, false>(acc, now + m * T::LINE, now + 2 * LINES + n, 0);
    }
    copies_wait<0>();
    __syncthreads();
    put<T>(shared + group * T::BM * T::OUT, acc, m, n, [](int) { return 1.0f; });
    __syncthreads();
    for (int i = threadIdx.x; i < T::BM * T::BN / 4; i += T::THREADS) {
        const int row = i / (T::BN / 4), a = i % (T::BN / 4) * 4;
        if (a0 + a >= s.below.wide) continue;
        *(float4*)(s.below.dphi + ((size_t)j * s.rows + b0 + row) * s.below.wide + a0 + a) = sum_of_groups<T>(row, a);
    }
}

typedef Shape<32, 32, 32, 32, 16, 2, 4> Small;
typedef Shape<64, 32, 32, 32, 16, 2, 4> Flat;
typedef Shape<64, 64, 32, 64, 16, 2, 4> Large;
typedef Shape<128, 64, 32, 32, 32, 2, 1> Tall;
typedef Shape<128, 128, 64, 32, 32, 2, 1> Huge;
typedef Shape<128, 128, 64, 32, 16, 3, 1> HugeGradient;

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

// A stage: dφ, the siblings' product, φ, then three numbers a sample: bits of the two tops (or a factor), φ's divisor.
template <class T> struct GradientStage {
    static const int LINE_C = T::BM + 8, LINE_A = T::BN + 8;
    static const int SMALL = T::BK * (2 * LINE_C + LINE_A), SIZE = SMALL + 4 * T::BK;
};

// dψ in place of dφ, and the divisors of φ.
template <class T> __device__ __forceinline__ void combine_stage(float* x, bool siblings, int thread) {
    const int QUADS = T::BM * T::BK / 4 / T::GROUP, LINE_C = GradientStage<T>::LINE_C;
    float* small = x + GradientStage<T>::SMALL;
#pragma unroll
    for (int i = 0; i < QUADS; i++) {
        const int at = thread + i * T::GROUP, k = at / (T::BM / 4), place = k * LINE_C + at % (T::BM / 4) * 4;
        const float4 d = *(const float4*)(x + place);
        float4 o = make_float4(1.0f, 1.0f, 1.0f, 1.0f);
        float f = small[k];
        if (siblings) {
            const int top = __float_as_int(f);
            f = top < 0 || __float_as_int(small[T::BK + k]) < 0 ? 0.0f : inverse(top);
            o = *(const float4*)(x + T::BK * LINE_C + place);
        }
        *(float4*)(x + place) = kept_product(d, f, o);
    }
    if (thread < T::BK) small[2 * T::BK + thread] = inverse(__float_as_int(small[T::BK + thread]));
}

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
    const int LINE_C = GradientStage<T>::LINE_C, LINE_A = GradientStage<T>::LINE_A, STAGE = GradientStage<T>::SIZE;
    float* stage = shared + group * T::STAGES * STAGE;
    float acc[T::MF][T::NF][4];
    clear<T>(acc);
    auto load = [&](int turn) {
        const int step = part.from + group + turn * T::GROUPS;
        float *to = stage + turn % T::STAGES * STAGE, *small = to + GradientStage<T>::SMALL;
        if (step < part.until) {
            const int j = nodes[step / each], b0 = step % each * T::BK;
            const size_t above = (size_t)parent[j] * g.rows + b0, below = (size_t)j * g.rows + b0;
            load_columns<T, T::BM>(to, dphi + above * c_wide + part.c, c_wide, 0, T::BK, c_wide - part.c, thread);
            if (others != 0) load_columns<T, T::BM>(to + T::BK * LINE_C, others + below * c_wide + part.c, c_wide, 0, T::BK, c_wide - part.c, thread);
            load_columns<T, T::BN>(to + 2 * T::BK * LINE_C, phi + below * a_wide + part.a, a_wide, 0, T::BK, a_left, thread);
            if (thread < T::BK) {
                copy4(small + thread, others != 0 ? (const void*)(above_top + above + thread) : (const void*)(factor + (size_t)(b0 + thread) * s.stride));
                copy4(small + T::BK + thread, below_top + below + thread);
            }
        }
        copies_end();
    };
#pragma unroll 1
    for (int turn = 0; turn < T::STAGES - 1; turn++) load(turn);
    for (int turn = 0; part.from + turn * T::GROUPS < part.until; turn++) { // as often for each group
        const bool mine = part.from + group + turn * T::GROUPS < part.until;
        float* now = stage + turn % T::STAGES * STAGE;
        copies_wait<T::STAGES - 2>();
        group_sync<T>(group);
        load(turn + T::STAGES - 1);
        if (mine) combine_stage<T>(now, others != 0, thread);
        group_sync<T>(group);
        const float* scale = now + GradientStage<T>::SMALL + 2 * T::BK;
        if (mine) multiply<T, 1, LINE_C, 1, LINE_A, true>(acc, now + m, now + 2 * T::BK * LINE_C + n, scale);
    }
    copies_wait<0>();
    __syncthreads();
    put<T>(shared + group * T::BM * T::OUT, acc, m, n, [](int) { return 1.0f; });
    __syncthreads();
    for (int i = threadIdx.x; i < T::BM * T::BN / 4; i += T::THREADS) {
        const int c = i / (T::BN / 4), a = i % (T::BN / 4) * 4;
        if (part.c + c >= s.above.real || a >= a_left) continue;
        *(float4*)(g.sums + part.out + (size_t)(part.c + c) * s.columns + part.a + a) = sum_of_groups<T>(c, a);
    }
}

extern "C" __global__ void __launch_bounds__(128) gradient_small(const __grid_constant__ Gradient s) { gradient<Small>(s); }
extern "C" __global__ void __launch_bounds__(256, 2) gradient_flat(const __grid_constant__ Gradient s) { gradient<Flat>(s); }
extern "C" __global__ void __launch_bounds__(256, 2) gradient_large(const __grid_constant__ Gradient s) { gradient<Large>(s); }
extern "C" __global__ void __launch_bounds__(256, 2) gradient_tall(const __grid_constant__ Gradient s) { gradient<Tall>(s); }
extern "C" __global__ void __launch_bounds__(256, 2) gradient_huge(const __grid_constant__ Gradient s) { gradient<HugeGradient>(s); }

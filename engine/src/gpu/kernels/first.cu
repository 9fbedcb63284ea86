// The first level together with its leaves, on tensor cores: leaf activations are made in registers, as the products
// want them, and never go to memory; the way down makes them again.
//
// For at most 32 components of at most 4 normal numbers, and where leaves do not learn. A warp has all components of its
// samples: lane 4g + t those of sample g that leave the rest t when divided by 4.

#if TF32

#define PARTS 8   // components of a lane
#define INPUTS 4
#define COLUMNS 64 // channels of a tile
#define W_LINE 36
#define FAR -11542.0f // log₂ of a leaf's largest activation, 8000 nats; where it is less the guard takes the sample

struct First {
    Leaves leaves;
    Layer above;
    const float* weights; // (matrices, C, wide A), as `kept` has them
    const int* child;     // (windows, 4)
    const int* matrix;    // (nodes below)
    const float* by;      // 4 / the least number of all matrices of the level
    int* tops;            // of the layers further up, to be cleared on the way, or null
    int top_count;
    int shares;           // blocks that share the samples of a window
};

// One leaf as its lanes read it: log₂ p = Σ_k norm_k − (x_k · inverse_k + shift_k)² over what is observed.
struct LeafTable {
    float4 pairs[32][2]; // inverse and shift of two numbers each
    float4 norms[32];
    float sum[32];       // of the norms; far below where there is no such component
    int place[INPUTS];   // in the frame; −1: missing, −2: there is no such number
    int position, real;  // real: bits of the numbers there are
    int pad[2];
};

__device__ __forceinline__ u32 rounded(float x) { return __float_as_uint(x) + 0x1000u; }

__device__ __forceinline__ float power_of_two(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ float reciprocal(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// Fills a table, by one warp; a lane a component.
__device__ void read_leaf(LeafTable& to, const Leaves& s, int i) {
    const int d = threadIdx.x & 31, count = i < 0 ? 0 : s.first[i + 1] - s.first[i];
    const bool there = d < s.layer.real;
    const float half_log2e = 0.84932180028801904272f; // √(½ log₂ e)
    const double log2e = 1.44269504088896340736;
    float pairs[8], norms[4], sum = 0.0f;
#pragma unroll
    for (int k = 0; k < INPUTS; k++) {
        pairs[2 * k] = pairs[2 * k + 1] = norms[k] = 0.0f;
        if (k >= count || !there) continue;
        const float4 p = *(const float4*)(s.tables + s.offset[s.family[i] + k] + 4 * d);
        pairs[2 * k] = p.y * half_log2e;
        pairs[2 * k + 1] = -p.x * (p.y * half_log2e);
        norms[k] = (float)(p.z * log2e);
        sum += norms[k];
    }
    to.pairs[d][0] = make_float4(pairs[0], pairs[1], pairs[2], pairs[3]);
    to.pairs[d][1] = make_float4(pairs[4], pairs[5], pairs[6], pairs[7]);
    to.norms[d] = make_float4(norms[0], norms[1], norms[2], norms[3]);
    to.sum[d] = there ? sum : -1e30f;
    if (d < INPUTS) to.place[d] = i < 0 ? -1 : d < count ? s.inputs[s.first[i] + d] : -2;
    if (d == 0) to.position = i, to.real = (1 << count) - 1;
    __syncwarp();
}

// What the lane needs of sample b: the number t.
__device__ __forceinline__ float raw_number(const Leaves& s, const LeafTable& table, int b) {
    const int place = table.place[threadIdx.x & 3];
    if (b >= s.samples || place == -1) return MISSING;
    return place == -2 ? 0.0f : s.frame[(size_t)b * s.frame_len + place];
}

// log φ⁰ and its largest of R samples that are observed whole.
template <int R>
__device__ __forceinline__ void log_phi_whole(const LeafTable& table, const float (&x)[R][INPUTS], float (&log_phi)[R][PARTS], float (&top)[R]) {
    const int t = threadIdx.x & 3;
#pragma unroll
    for (int i = 0; i < PARTS; i++) {
        const float4 a = table.pairs[t + 4 * i][0], b = table.pairs[t + 4 * i][1];
        const float sum = table.sum[t + 4 * i];
#pragma unroll
        for (int r = 0; r < R; r++) {
            const float z0 = fmaf(x[r][0], a.x, a.y), z1 = fmaf(x[r][1], a.z, a.w);
            const float z2 = fmaf(x[r][2], b.x, b.y), z3 = fmaf(x[r][3], b.z, b.w);
            log_phi[r][i] = fmaf(-z0, z0, fmaf(-z1, z1, fmaf(-z2, z2, fmaf(-z3, z3, sum))));
            top[r] = fmaxf(top[r], log_phi[r][i]);
        }
    }
}

// The same where some numbers are missing; bits of `there` say which are not.
template <int R>
__device__ __forceinline__ void log_phi_with_holes(const LeafTable& table, const float (&x)[R][INPUTS], const u32 (&there)[R], float (&log_phi)[R][PARTS], float (&top)[R]) {
    const int t = threadIdx.x & 3, quad = threadIdx.x & 28;
    float one[R][INPUTS];
#pragma unroll
    for (int r = 0; r < R; r++)
#pragma unroll
        for (int k = 0; k < INPUTS; k++) one[r][k] = there[r] >> (quad | k) & 1 ? 1.0f : 0.0f;
#pragma unroll
    for (int i = 0; i < PARTS; i++) {
        const float4 a = table.pairs[t + 4 * i][0], b = table.pairs[t + 4 * i][1], n = table.norms[t + 4 * i];
        const float start = table.sum[t + 4 * i] < -9e29f ? -1e30f : 0.0f;
#pragma unroll
        for (int r = 0; r < R; r++) {
            const float z0 = fmaf(x[r][0], a.x, a.y) * one[r][0], z1 = fmaf(x[r][1], a.z, a.w) * one[r][1];
            const float z2 = fmaf(x[r][2], b.x, b.y) * one[r][2], z3 = fmaf(x[r][3], b.z, b.w) * one[r][3];
            float sum = fmaf(one[r][0], n.x, fmaf(one[r][1], n.y, fmaf(one[r][2], n.z, fmaf(one[r][3], n.w, start))));
            log_phi[r][i] = fmaf(-z0, z0, fmaf(-z1, z1, fmaf(-z2, z2, fmaf(-z3, z3, sum))));
            top[r] = fmaxf(top[r], log_phi[r][i]);
        }
    }
}

// φ⁰ of R samples, rounded to TF32, from their raw numbers: PARTS components a lane. `top` gets log₂ of what φ⁰ was
// divided by; returns bits of the samples that are observed. All lanes of a warp together.
template <int R>
__device__ __forceinline__ int leaf_activations(const LeafTable& table, const float (&raw)[R], u32 (&phi)[R][PARTS], float (&top)[R]) {
    const int quad = threadIdx.x & 28;
    u32 there[R];
    bool full = true, none = true;
    const u32 real = table.real * 0x11111111u;
#pragma unroll
    for (int r = 0; r < R; r++) {
        there[r] = __ballot_sync(~0u, !isnan(raw[r]));
        full &= there[r] == ~0u;
        none &= (there[r] & real) == 0;
    }
    if (none) return 0;
    float x[R][INPUTS], log_phi[R][PARTS];
    int seen = 0;
#pragma unroll
    for (int r = 0; r < R; r++) {
        const float own = isnan(raw[r]) ? 0.0f : raw[r];
#pragma unroll
        for (int k = 0; k < INPUTS; k++) x[r][k] = __shfl_sync(~0u, own, quad | k);
        seen |= (there[r] & real) >> quad & 15 ? 1 << r : 0;
        top[r] = -1e30f;
    }
    if (full) log_phi_whole<R>(table, x, log_phi, top);
    else log_phi_with_holes<R>(table, x, there, log_phi, top);
#pragma unroll
    for (int r = 0; r < R; r++) {
        top[r] = fmaxf(top[r], __shfl_xor_sync(~0u, top[r], 1));
        top[r] = fmaxf(top[r], __shfl_xor_sync(~0u, top[r], 2));
#pragma unroll
        for (int i = 0; i < PARTS; i++) phi[r][i] = rounded(power_of_two(log_phi[r][i] - top[r]));
    }
    return seen;
}

// Bits of the samples that are observed and not dropped.
template <int R> __device__ __forceinline__ int without_dropped(const Leaves& s, int position, int b0, int seen) {
    const int g = (threadIdx.x & 31) >> 2;
    if (s.layer.drop != 0 && seen != 0)
#pragma unroll
        for (int r = 0; r < R; r++)
            if (s.layer.drop[(size_t)position * s.rows + b0 + 8 * r + g]) seen &= ~(1 << r);
    return seen;
}

// Multiplies a window's products by ψ = W φ⁰ of one child, in AT pieces of eight channels at once; samples whose bit of
// `seen` is not set stay as they are.
template <int MF, int AT>
__device__ __forceinline__ void multiply_child(const float* weights, const u32 (&phi)[2 * MF][PARTS], int seen, float (&prod)[MF][8][4]) {
    const int lane = threadIdx.x & 31;
#pragma unroll
    for (int part = 0; part < 8 / AT; part++) { // of the channels
        float acc[MF][AT][4];
#pragma unroll
        for (int i = 0; i < MF; i++)
#pragma unroll
            for (int j = 0; j < AT; j++)
#pragma unroll
                for (int r = 0; r < 4; r++) acc[i][j][r] = 0.0f;
        const float* w = weights + (8 * AT * part + (lane >> 4) * 8 + (lane & 7)) * W_LINE + (lane >> 3 & 1) * 4;
#pragma unroll
        for (int a = 0; a < 4; a++) {
            u32 y[AT][2];
#pragma unroll
            for (int j = 0; j < AT; j += 2) {
                u32 address = (u32)__cvta_generic_to_shared(w + 8 * j * W_LINE + 8 * a);
                asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                             : "=r"(y[j][0]), "=r"(y[j][1]), "=r"(y[j + 1][0]), "=r"(y[j + 1][1]) : "r"(address));
            }
#pragma unroll
            for (int i = 0; i < MF; i++) {
                const u32 x[4] = {phi[2 * i][2 * a], phi[2 * i + 1][2 * a], phi[2 * i][2 * a + 1], phi[2 * i + 1][2 * a + 1]};
#pragma unroll
                for (int j = 0; j < AT; j++) mma(acc[i][j], x, y[j][0], y[j][1]);
            }
        }
#pragma unroll
        for (int i = 0; i < MF; i++)
#pragma unroll
            for (int j = 0; j < AT; j++)
#pragma unroll
                for (int r = 0; r < 4; r++)
                    if (seen >> (2 * i + r / 2) & 1) prod[i][AT * part + j][r] *= acc[i][j][r];
    }
}

// Writes φ of a window, with scales and bounds. Bits of samples: `any`, something is observed; `far`, the guard takes it.
// A block that is alone with the window does not share its largest number.
template <int MF>
__device__ __forceinline__ void store_window(const First& s, int p, int b0, int c0, const float (&prod)[MF][8][4], const double (&scale)[2 * MF], float least, int any, int far, bool alone) {
    const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3, rows = s.leaves.rows;
#pragma unroll
    for (int r = 0; r < 2 * MF; r++) {
        const size_t row = (size_t)p * rows + b0 + 8 * r + g;
        const float largest = store_products<8>(s.above, prod[r / 2], r % 2 * 2, row, c0 + 2 * t);
        if (t > 0) continue;
        const bool seen = (any >> r & 1) && (s.above.drop == 0 || s.above.drop[row] == 0);
        if (alone) s.above.top[row] = seen ? __float_as_int(largest) : -1;
        else if (seen) atomicMax(s.above.top + row, __float_as_int(largest));
        if (c0 > 0) continue;
        s.above.scale[row] = scale[r];
        float2 lost = make_float2(far >> r & 1 ? __int_as_float(0x7f800000) : 2.0f * TINY, 0.0f); // of sums and the product
        add_mixed(lost, 4.0f * TINY, 0.0f, least); // of leaves
        s.above.lost[row] = lost;
    }
}

// Leaves, mixing and the product of a window; a warp has 16 · MF samples, and takes one child after another, and AT
// pieces of eight channels at once.
template <int MF, int AT, int WARPS> __device__ __forceinline__ void first_level(const First& s) {
    __shared__ float weights[4][COLUMNS * W_LINE];
    __shared__ LeafTable tables[4];
    const int R = 2 * MF, rows = s.leaves.rows, depth = s.leaves.layer.wide;
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32, g = lane >> 2, t = lane & 3;
    const int c_tiles = (s.above.wide + COLUMNS - 1) / COLUMNS;
    const int share = blockIdx.x % s.shares, c0 = blockIdx.x / s.shares % c_tiles * COLUMNS, p = blockIdx.x / s.shares / c_tiles;
    for (int i = blockIdx.x * 32 * WARPS + threadIdx.x; i < s.top_count; i += gridDim.x * 32 * WARPS) s.tops[i] = -1;
    const int c = threadIdx.x / 8, q = threadIdx.x % 8 * 4, STEP = 4 * WARPS;
#pragma unroll 1
    for (int k = 0; k < 4; k++) {
        const int j = s.child[4 * p + k];
        const float* w = s.weights + ((size_t)(j < 0 ? 0 : s.matrix[j]) * s.above.real + c0 + c) * depth + q;
        copy_rows<COLUMNS / STEP, STEP, W_LINE>(weights[k] + c * W_LINE + q, w, depth, s.above.real - c0 - c, j >= 0 && q < depth);
    }
    copies_end();
    const float least = *s.by;
    for (int k = warp; k < 4; k += WARPS) read_leaf(tables[k], s.leaves, s.child[4 * p + k]);
    copies_wait<0>();
    __syncthreads();
    const int from = (share * WARPS + warp) * 16 * MF, by = s.shares * WARPS * 16 * MF;
    float next[R]; // numbers of the next child, or of the first one of the next samples
#pragma unroll
    for (int r = 0; r < R; r++) next[r] = raw_number(s.leaves, tables[0], from + 8 * r + g);
    for (int b0 = from; b0 < rows; b0 += by) {
        float prod[MF][8][4], raw[R];
        double scale[R];
        int any = 0, far = 0; // bits of samples: something is observed; the guard takes it
#pragma unroll
        for (int r = 0; r < R; r++) scale[r] = 0.0;
#pragma unroll
        for (int i = 0; i < MF; i++)
#pragma unroll
            for (int j = 0; j < 8; j++)
#pragma unroll
                for (int r = 0; r < 4; r++) prod[i][j][r] = 1.0f;
#pragma unroll 1
        for (int k = 0; k < 4; k++) {
#pragma unroll
            for (int r = 0; r < R; r++) {
                raw[r] = next[r];
                next[r] = raw_number(s.leaves, tables[(k + 1) % 4], (k < 3 ? b0 : b0 + by) + 8 * r + g);
            }
            u32 phi[R][PARTS];
            float top[R];
            const int observed = leaf_activations<R>(tables[k], raw, phi, top);
            const int seen = without_dropped<R>(s.leaves, tables[k].position, b0, observed);
            if (__all_sync(~0u, seen == 0)) continue;
            any |= seen;
#pragma unroll
            for (int r = 0; r < R; r++) {
                if (!(seen >> r & 1)) continue;
                scale[r] += top[r] * LN2;
                if (top[r] < FAR) far |= 1 << r;
            }
            multiply_child<MF, AT>(weights[k], phi, seen, prod);
        }
        store_window<MF>(s, p, b0, c0, prod, scale, least, any, far, c_tiles == 1);
    }
}

extern "C" __global__ void __launch_bounds__(128, 4) first_up(const __grid_constant__ First s) { first_level<1, 4, 4>(s); }

#endif

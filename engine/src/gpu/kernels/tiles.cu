// Products of tiles, the one hot part: out(m,n) = Σ_k A(m,k) B(n,k), on tensor cores: once in TF32, or three times for
// f32, whose numbers are sums of two of TF32.
//
// A block has groups of warps. A group owns a child (on the way up) or a part of k (on the way down and in dW), goes
// through k alone with its own barrier, and leaves its tile in shared memory for the others to read. Small tiles keep
// all multiprocessors busy with little work; large ones read less: from 64 × 64 to 128 × 128 halves what comes from L2.
// Activations are (node, sample, channel), so samples and channels of a tile are rows that lie one after another.

typedef unsigned char u8;
typedef unsigned int u32;
typedef unsigned long long u64;

#define TINY 1e-34f
#define LN2 0.693147180559945309417
#define HALF_LOG_TAU 0.918938533204672741780

// One layer of nodes. A row is φ · exp(scale), before φ is divided by the power of two that follows from `top`.
struct Layer {
    float* phi;     // (nodes, B, C)
    float* dphi;    // (nodes, B, C): by φ after the division
    int* top;       // (nodes, B): bits of the largest φ; negative where the node is summed out
    double* scale;  // (nodes, B)
    float2* lost;   // (nodes, B): what underflow may have taken, absolute and relative (`scaled_rows.rs`)
    const u8* drop; // (nodes, B), or null: nodes that training sums out
    int nodes, real, wide; // wide: channels in a row, the real ones and zeros
};

// 2⁻ᵉ that brings the largest φ into [½, 1); 1 for what is not a normal number.
__device__ __forceinline__ float inverse(int top) {
    return top < 0x00800000 ? 1.0f : __int_as_float((253 - (top >> 23)) << 23);
}

// What the division adds to the log-scale.
__device__ __forceinline__ double exponent(int top) {
    return top < 0x00800000 ? 0.0 : ((top >> 23) - 126) * LN2;
}

// The absolute part of `lost` after the division; everything where all has underflowed.
__device__ __forceinline__ float lost_after(float lost, int top) {
    return top < 0x00800000 ? __int_as_float(0x7f800000) : lost * inverse(top);
}

// Adds what may be missing of ψ = W φ, where 4/by is the least number of W: relative to ψ if that is next to nothing
// (`UnderflowBound::mixed`).
__device__ __forceinline__ void add_mixed(float2& sum, float absolute, float relative, float by) {
    const float share = absolute * by;
    const bool little = share <= 1e-9f;
    sum.x += little ? 0.0f : absolute;
    sum.y += little ? relative + share : relative;
}

__device__ __forceinline__ void copy16(float* to, const float* from, bool valid) {
    u32 address = (u32)__cvta_generic_to_shared(to);
    int bytes = valid ? 16 : 0; // the rest is zeros
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(address), "l"(from), "r"(bytes) : "memory");
}
__device__ __forceinline__ void copy4(void* to, const void* from) {
    u32 address = (u32)__cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(address), "l"(from) : "memory");
}
__device__ __forceinline__ void copies_end() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int LEFT> __device__ __forceinline__ void copies_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
}

// The shape of a tile: BM × BN of the result for a group, WM × WN for a warp; BK of k at a time; GROUPS in a block.
template <int M, int N, int U, int V, int K, int S, int G> struct Shape {
    static const int BM = M, BN = N, WM = U, WN = V, BK = K, STAGES = S, GROUPS = G;
    static const int MF = U / 16, NF = V / 8, WARPS = (M / U) * (N / V), GROUP = 32 * WARPS, THREADS = G * GROUP;
    static const int LINE = K + 4; // a row of k: conflict-free for 8 rows × 4 of k
    static const int OUT = N + 4;  // a row of a result
};

template <class T> __device__ __forceinline__ void group_sync(int group) {
    if (T::GROUPS == 1) __syncthreads();
    else if (T::WARPS == 1) __syncwarp();
    else asm volatile("bar.sync %0, %1;" ::"r"(1 + group), "n"(T::GROUP) : "memory");
}

// Copies COUNT rows that lie STEP rows apart, four numbers of each; zeros where these are not `inside`, and from `rows` on.
// One address and steps from it: a kernel that runs once through its code waits for the code.
template <int COUNT, int STEP, int LINE>
__device__ __forceinline__ void copy_rows(float* to, const float* from, size_t stride, int rows, bool inside) {
#pragma unroll
    for (int i = 0; i < COUNT; i++) copy16(to + i * STEP * LINE, from + i * (STEP * stride), inside && i * STEP < rows);
}

// Copies ROWS × BK numbers, k along the line, zeros beyond `rows` and `depth`.
template <class T, int ROWS>
__device__ __forceinline__ void load_lines(float* to, const float* from, size_t stride, int rows, int k, int depth, int thread) {
    const int STEP = T::GROUP / (T::BK / 4), r = thread / (T::BK / 4), q = thread % (T::BK / 4) * 4;
    static_assert(ROWS % STEP == 0, "whole steps");
    copy_rows<ROWS / STEP, STEP, T::LINE>(to + r * T::LINE + q, from + r * stride + k + q, stride, rows - r, k + q < depth);
}

// Copies BK × COLUMNS numbers, k down the rows.
template <class T, int COLUMNS>
__device__ __forceinline__ void load_columns(float* to, const float* from, size_t stride, int k, int depth, int columns, int thread) {
    const int STEP = T::GROUP / (COLUMNS / 4), LINE = COLUMNS + 8, r = thread / (COLUMNS / 4), q = thread % (COLUMNS / 4) * 4;
    static_assert(T::BK % STEP == 0, "whole steps");
    copy_rows<T::BK / STEP, STEP, LINE>(to + r * LINE + q, from + (k + r) * stride + q, stride, depth - k - r, q < columns);
}

// Rounds to the ten bits of TF32, once and not at every use: W, φ and dψ are kept so.
__device__ __forceinline__ float kept(float x) {
#if TF32
    return __uint_as_float((__float_as_uint(x) + 0x1000u) & 0xffffe000u);
#else
    return x;
#endif
}

// Four 8 × 4 pieces of lines of k, as a product wants them; a lane names the line of one row.
__device__ __forceinline__ void load_pieces(u32 (&to)[4], const float* line) {
    u32 address = (u32)__cvta_generic_to_shared(line);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(address));
}

// acc += x y for 16 × 8 numbers over 8 of k; of x and y the ten bits of TF32.
__device__ __forceinline__ void mma(float (&acc)[4], const u32 (&x)[4], u32 low, u32 high) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
        : "+f"(acc[0]), "+f"(acc[1]), "+f"(acc[2]), "+f"(acc[3])
        : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(low), "r"(high));
}

// Numbers as products take them.
#if TF32
template <int N> struct Factors {
    u32 x[N];
    __device__ __forceinline__ void split() {}
};
__device__ __forceinline__ void add_product(float (&acc)[4], const Factors<4>& a, const Factors<2>& b) { mma(acc, a.x, b.x[0], b.x[1]); }
#else
// x = x + rest, both of TF32; together they have two bits less than f32 at most.
template <int N> struct Factors {
    u32 x[N], rest[N];
    __device__ __forceinline__ void split() {
#pragma unroll
        for (int i = 0; i < N; i++) {
            const float whole = __uint_as_float(x[i]);
            x[i] = (x[i] + 0x1000u) & 0xffffe000u;
            rest[i] = __float_as_uint(whole - __uint_as_float(x[i])) + 0x1000u;
        }
    }
};
// The product of the two rests is below what f32 keeps. Tensor cores cut off where f32 rounds: sums of more than 8 are
// made here.
__device__ __forceinline__ void add_product(float (&acc)[4], const Factors<4>& a, const Factors<2>& b) {
    float sum[4] = {0.0f, 0.0f, 0.0f, 0.0f};
    mma(sum, a.rest, b.x[0], b.x[1]);
    mma(sum, a.x, b.rest[0], b.rest[1]);
    mma(sum, a.x, b.x[0], b.x[1]);
#pragma unroll
    for (int r = 0; r < 4; r++) acc[r] += sum[r];
}
#endif

// acc += A Bᵀ over BK. A(m,k) = a[m·AM + k·AK], B(n,k) = b[n·BN + k·BK]; `scale`, if there is one, multiplies B by its k:
// powers of two.
template <class T, int AM, int AK, int BN, int BK, bool SCALED>
__device__ __forceinline__ void multiply(float (&acc)[T::MF][T::NF][4], const float* a, const float* b, const float* scale) {
    const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
#pragma unroll
    for (int k = 0; k < T::BK; k += 8) {
        Factors<4> x[T::MF];
        Factors<2> y[T::NF];
        float low = SCALED ? scale[k + t] : 1.0f, high = SCALED ? scale[k + t + 4] : 1.0f;
#pragma unroll
        for (int i = 0; i < T::MF; i++) {
            if (AK == 1) {
                load_pieces(x[i].x, a + (16 * i + (lane & 15)) * AM + k + (lane >> 4) * 4);
            } else {
                const float* from = a + (16 * i + g) * AM + (k + t) * AK;
                x[i].x[0] = __float_as_uint(from[0]);
                x[i].x[1] = __float_as_uint(from[8 * AM]);
                x[i].x[2] = __float_as_uint(from[4 * AK]);
                x[i].x[3] = __float_as_uint(from[8 * AM + 4 * AK]);
            }
            x[i].split();
        }
#pragma unroll
        for (int j = 0; j < T::NF; j++) {
            if (BK == 1) {
                u32 both[4]; // of j and j + 1
                if (j % 2 == 0) {
                    load_pieces(both, b + (8 * j + (lane >> 4) * 8 + (lane & 7)) * BN + k + (lane >> 3 & 1) * 4);
                    y[j].x[0] = both[0], y[j].x[1] = both[1], y[j + 1].x[0] = both[2], y[j + 1].x[1] = both[3];
                }
            } else {
                const float* from = b + (8 * j + g) * BN + (k + t) * BK;
                y[j].x[0] = __float_as_uint(SCALED ? from[0] * low : from[0]);
                y[j].x[1] = __float_as_uint(SCALED ? from[4 * BK] * high : from[4 * BK]);
            }
        }
#pragma unroll
        for (int j = 0; j < T::NF; j++) {
            y[j].split();
#pragma unroll
            for (int i = 0; i < T::MF; i++) add_product(acc[i][j], x[i], y[j]);
        }
    }
}

template <class T> __device__ __forceinline__ void clear(float (&acc)[T::MF][T::NF][4]) {
#pragma unroll
    for (int i = 0; i < T::MF; i++)
#pragma unroll
        for (int j = 0; j < T::NF; j++)
#pragma unroll
            for (int r = 0; r < 4; r++) acc[i][j][r] = 0.0f;
}

// Puts a warp's WM × WN into the group's tile: (BM, OUT). Rows m + 8r + lane/4 are multiplied by `by(r)`, and become 1
// where that is negative.
template <class T, class By> __device__ __forceinline__ void put(float* to, const float (&acc)[T::MF][T::NF][4], int m, int n, By by) {
    const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
#pragma unroll
    for (int r = 0; r < 2 * T::MF; r++) {
        const float factor = by(r);
#pragma unroll
        for (int j = 0; j < T::NF; j++) {
            float2 value = make_float2(acc[r / 2][j][r % 2 * 2] * factor, acc[r / 2][j][r % 2 * 2 + 1] * factor);
            if (factor < 0.0f) value = make_float2(1.0f, 1.0f);
            *(float2*)(to + (m + 8 * r + g) * T::OUT + n + 8 * j + 2 * t) = value;
        }
    }
}

extern __shared__ float shared[];

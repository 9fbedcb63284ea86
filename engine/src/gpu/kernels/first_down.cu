// The way down of a first level that was computed with its leaves (`first.cu`).

#if TF32

// dW of the first level. dψ(c) = dφ(c) 2⁻ᵉ φ(c) / ψ(c): with ψ made again, siblings are not asked. Where ψ is next to
// nothing, so is the flow dψ·ψ, and the bound on what was lost holds for it too.
struct FirstShare {
    int window, count;   // windows with the same matrices, one after another in the list
    int share, shares;   // of their samples, in runs: windows at the border are less work
    int run;             // steps of a run
    int c;               // first channel
    int matrix[4];
    u64 out[4];          // where the sums of each child's matrix go
};

struct FirstGradient {
    First first;
    const FirstShare* shares;
    const int* windows;
    float* sums;
};

#define TILE 16    // samples of a step
#define F_LINE 68  // a sample's channels
#define SETS 2     // of four warps, one a child
#define STEP (2 * TILE * F_LINE + TILE) // dφ, φ, tops

// The copies of a set, step after step of its runs: dφ, φ and tops of windows, for a thread's channels.
struct FirstStream {
    const FirstGradient& s;
    const FirstShare& own;
    int thread, rows, length, each, runs, parts;
    int run, b = 0, b_end = 0; // samples b of a run are copied next
    size_t row = 0;

    __device__ __forceinline__ void aim() {
        if (run >= runs) return;
        b = run % each * length, b_end = min(b + length, rows);
        row = (size_t)s.windows[own.window + run / each] * rows + b;
    }

    __device__ __forceinline__ void load(float* to) {
        const Layer& above = s.first.above;
        const int b_own = thread / (COLUMNS / 4), q = thread % (COLUMNS / 4) * 4;
        const bool valid = own.c + q < above.wide;
        if (run < runs) {
#pragma unroll
            for (int i = b_own; i < TILE; i += 128 / (COLUMNS / 4)) {
                const size_t at = valid ? (row + i) * above.wide + own.c + q : 0;
                copy16(to + i * F_LINE + q, above.dphi + at, valid);
                copy16(to + (TILE + i) * F_LINE + q, above.phi + at, valid);
            }
            if (thread < TILE) copy4(to + 2 * TILE * F_LINE + thread, above.top + row + thread);
            b += TILE, row += TILE;
            if (b == b_end) run += parts, aim();
        }
        copies_end();
    }
};

// W of one child as operands, channels from c0 on; zeros where there is none.
__device__ __forceinline__ void load_operands(const First& s, int matrix, int c0, u32 (&w)[4][4][4]) {
    const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3, depth = s.leaves.layer.wide;
    const float* line = s.weights + ((size_t)max(matrix, 0) * s.above.real + c0 + g) * depth + t;
#pragma unroll
    for (int i = 0; i < 8; i++, line += 8 * depth)
#pragma unroll
        for (int a = 0; a < 4; a++) {
            const bool there = matrix >= 0 && c0 + g + 8 * i < s.above.real && 8 * a < depth;
#pragma unroll
            for (int r = 0; r < 2; r++) w[i / 2][a][i % 2 + 2 * r] = there ? __float_as_uint(line[8 * a + 4 * r]) : 0;
        }
}

// Adds dW of eight samples, the half n of a step: makes ψ again, then dψ, then dψ φ⁰.
__device__ __forceinline__ void add_gradient(const float* now, const float* turned, const u32 (&w)[4][4][4], const u32 (&phi)[PARTS], int seen, int n, float (&sums)[4][4][4]) {
    const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3;
    float acc[4][4];
#pragma unroll
    for (int m = 0; m < 4; m++)
#pragma unroll
        for (int r = 0; r < 4; r++) acc[m][r] = 0.0f;
#pragma unroll
    for (int a = 0; a < 4; a++)
#pragma unroll
        for (int m = 0; m < 4; m++) mma(acc[m], w[m][a], phi[2 * a], phi[2 * a + 1]);
    float by[2];
#pragma unroll
    for (int e = 0; e < 2; e++) {
        const int b = 2 * t + e, top_p = ((const int*)now)[2 * TILE * F_LINE + 8 * n + b];
        const int there = __shfl_sync(~0u, seen, 4 * b) >> n & 1;
        by[e] = top_p < 0 || !there ? 0.0f : inverse(top_p);
    }
    u32 y[4][2];
#pragma unroll
    for (int j = 0; j < 4; j++)
#pragma unroll
        for (int e = 0; e < 2; e++) y[j][e] = ((const u32*)turned)[(8 * n + 2 * t + e) * W_LINE + 8 * j + g];
#pragma unroll
    for (int m = 0; m < 4; m++) {
        u32 x[4]; // dψ: what was (channel, sample) of a result is (row, k) of an operand, with k in the order of its lanes
#pragma unroll
        for (int r = 0; r < 4; r++) {
            const float* at = now + (8 * n + 2 * t + r % 2) * F_LINE + 16 * m + g + r / 2 * 8;
            float flow = at[0] * at[TILE * F_LINE] * by[r % 2];
            asm("" : "+f"(flow)); // read in any case: a branch around it costs a fifth of the kernel's time
            x[r / 2 + r % 2 * 2] = rounded(acc[m][r] > TINY ? flow * reciprocal(acc[m][r]) : 0.0f);
        }
#pragma unroll
        for (int j = 0; j < 4; j++) mma(sums[m][j], x, y[j][0], y[j][1]);
    }
}

// Writes dW of one child: the sum over the sets. All threads of a block together.
__device__ __forceinline__ void store_gradient(const FirstGradient& s, int c0, int matrix, u64 out, float (&sums)[4][4][4]) {
    const Layer& above = s.first.above;
    const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3, set = threadIdx.x / 128, thread = threadIdx.x % 128, depth = s.first.leaves.layer.wide;
    float4* all = (float4*)shared; // (16, 128) for each set but the first
#pragma unroll
    for (int i = 0; i < 16; i++)
        if (set > 0) all[((set - 1) * 16 + i) * 128 + thread] = make_float4(sums[i / 4][i % 4][0], sums[i / 4][i % 4][1], sums[i / 4][i % 4][2], sums[i / 4][i % 4][3]);
    __syncthreads();
    if (set > 0 || matrix < 0) return;
#pragma unroll
    for (int i = 0; i < 16; i++) {
        float(&sum)[4] = sums[i / 4][i % 4];
        for (int other = 0; other < SETS - 1; other++) {
            const float4 more = all[(other * 16 + i) * 128 + thread];
            sum[0] += more.x, sum[1] += more.y, sum[2] += more.z, sum[3] += more.w;
        }
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int c = c0 + 16 * (i / 4) + g + 8 * half, a = 8 * (i % 4) + 2 * t;
            if (c < above.real && a < depth) *(float2*)(s.sums + out + (size_t)c * depth + a) = make_float2(sum[2 * half], sum[2 * half + 1]);
        }
    }
}

__device__ __forceinline__ void set_sync(int set) { asm volatile("bar.sync %0, 128;" ::"r"(1 + set) : "memory"); }

// Meets the barrier of a set with fewer steps as often as the other's: racecheck could not follow them otherwise.
__device__ __forceinline__ void meet_barriers(const FirstStream& stream, int set) {
    auto steps = [&](int of) {
        int sum = 0;
        for (int r = stream.own.share * SETS + of; r < stream.runs; r += stream.parts) sum += min(stream.own.run, (stream.rows - r % stream.each * stream.length) / TILE);
        return sum;
    };
    for (int more = max(steps(0), steps(1)) - steps(set); more > 0; more--) set_sync(set);
}

extern "C" __global__ void __launch_bounds__(128 * SETS, 1) first_gradient(const __grid_constant__ FirstGradient s) {
    const Leaves& leaves = s.first.leaves;
    const FirstShare own = s.shares[blockIdx.x];
    const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3, k = threadIdx.x / 32 % 4, set = threadIdx.x / 128;
    const int rows = leaves.rows, c0 = own.c;
    int matrix = own.matrix[0];
    u64 out = own.out[0];
#pragma unroll
    for (int i = 1; i < 4; i++)
        if (k == i) matrix = own.matrix[i], out = own.out[i];
    float* stages = shared + set * 2 * STEP;
    float* turned = shared + SETS * 2 * STEP + threadIdx.x / 32 * TILE * W_LINE; // φ⁰ of the warp: (TILE, W_LINE)
    LeafTable& table = ((LeafTable*)(shared + SETS * 2 * STEP + 4 * SETS * TILE * W_LINE))[threadIdx.x / 32];
    u32 w[4][4][4];
    float sums[4][4][4] = {};
    load_operands(s.first, matrix, c0, w);
    const int length = own.run * TILE, each = (rows + length - 1) / length, runs = own.count * each, parts = own.shares * SETS;
    FirstStream stream = {s, own, (int)(threadIdx.x % 128), rows, length, each, runs, parts, own.share * SETS + set};
    float next[2]; // numbers of the next samples of this window
    int run = stream.run, b0 = 0, b_stop = 0, stage = 0;
    stream.aim();
    stream.load(stages);
    for (; run < runs; stage ^= 1) {
        float raw[2], top[2];
        if (b0 == b_stop) { // another run
            b0 = run % each * length, b_stop = min(b0 + length, rows);
            __syncwarp();
            read_leaf(table, leaves, s.first.child[4 * s.windows[own.window + run / each] + k]);
#pragma unroll
            for (int r = 0; r < 2; r++) next[r] = raw_number(leaves, table, b0 + 8 * r + g);
        }
#pragma unroll
        for (int r = 0; r < 2; r++) {
            raw[r] = next[r];
            next[r] = raw_number(leaves, table, b0 + TILE + 8 * r + g);
        }
        copies_wait<0>();
        set_sync(set);
        stream.load(stages + (stage ^ 1) * STEP);
        u32 phi[2][PARTS];
        const int observed = leaf_activations<2>(table, raw, phi, top);
        const int seen = without_dropped<2>(leaves, table.position, b0, observed);
        b0 += TILE;
        if (b0 == b_stop) run += parts;
        if (__all_sync(~0u, seen == 0)) continue;
#pragma unroll
        for (int r = 0; r < 2; r++)
#pragma unroll
            for (int i = 0; i < PARTS; i++) ((u32*)turned)[(8 * r + g) * W_LINE + t + 4 * i] = phi[r][i];
        __syncwarp();
#pragma unroll
        for (int n = 0; n < 2; n++) add_gradient(stages + stage * STEP, turned, w, phi[n], seen, n, sums);
        __syncwarp();
    }
    meet_barriers(stream, set);
    copies_wait<0>();
    __syncthreads();
    store_gradient(s, c0, matrix, out, sums);
}

#endif

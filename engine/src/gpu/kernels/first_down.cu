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

extern "C" __global__ void __launch_bounds__(128 * SETS, 1) first_gradient(const __grid_constant__ FirstGradient s) {
    const Leaves& leaves = s.first.leaves;
    const Layer& above = s.first.above;
    const FirstShare own = s.shares[blockIdx.x];
    const int lane = threadIdx.x & 31, g = lane >> 2, t = lane & 3, k = threadIdx.x / 32 % 4, set = threadIdx.x / 128;
    const int thread = threadIdx.x % 128, rows = leaves.rows, depth = leaves.layer.wide, c0 = own.c, wide = above.wide;
    int matrix = own.matrix[0];
    u64 out = own.out[0];
#pragma unroll
    for (int i = 1; i < 4; i++)
        if (k == i) matrix = own.matrix[i], out = own.out[i];
    float* stages = shared + set * 2 * STEP;
    float* turned = shared + SETS * 2 * STEP + threadIdx.x / 32 * TILE * W_LINE; // φ⁰ of the warp: (TILE, W_LINE)
    LeafTable& table = ((LeafTable*)(shared + SETS * 2 * STEP + 4 * SETS * TILE * W_LINE))[threadIdx.x / 32];
    u32 w[4][4][4];
    float sums[4][4][4];
    const float* line = s.first.weights + ((size_t)max(matrix, 0) * above.real + c0 + g) * depth + t;
#pragma unroll
    for (int i = 0; i < 8; i++, line += 8 * depth)
#pragma unroll
        for (int a = 0; a < 4; a++) {
            const bool there = matrix >= 0 && c0 + g + 8 * i < above.real && 8 * a < depth;
#pragma unroll
            for (int r = 0; r < 2; r++) {
                w[i / 2][a][i % 2 + 2 * r] = there ? __float_as_uint(line[8 * a + 4 * r]) : 0;
                sums[i / 2][a][i % 2 + 2 * r] = 0.0f;
            }
        }
    const int length = own.run * TILE, each = (rows + length - 1) / length, runs = own.count * each, parts = own.shares * SETS;
    // What is copied next: samples b_next of a run.
    int run_next = own.share * SETS + set, b_next = 0, b_end = 0;
    size_t row_next = 0;
    auto aim = [&]() {
        if (run_next >= runs) return;
        b_next = run_next % each * length, b_end = min(b_next + length, rows);
        row_next = (size_t)s.windows[own.window + run_next / each] * rows + b_next;
    };
    const int b_own = thread / (COLUMNS / 4), q_own = thread % (COLUMNS / 4) * 4;
    const bool valid = c0 + q_own < wide;
    auto load = [&](float* to) {
        if (run_next < runs) {
#pragma unroll
            for (int b = b_own; b < TILE; b += 128 / (COLUMNS / 4)) {
                const size_t at = valid ? (row_next + b) * wide + c0 + q_own : 0;
                copy16(to + b * F_LINE + q_own, above.dphi + at, valid);
                copy16(to + (TILE + b) * F_LINE + q_own, above.phi + at, valid);
            }
            if (thread < TILE) copy4(to + 2 * TILE * F_LINE + thread, above.top + row_next + thread);
            b_next += TILE, row_next += TILE;
            if (b_next == b_end) run_next += parts, aim();
        }
        copies_end();
    };
    float next[2]; // numbers of the next samples of this window
    int run = run_next, b0 = 0, b_stop = 0, stage = 0;
    aim();
    load(stages);
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
        asm volatile("bar.sync %0, 128;" ::"r"(1 + set) : "memory");
        load(stages + (stage ^ 1) * STEP);
        u32 phi[2][PARTS];
        int seen = leaf_activations<2>(table, raw, phi, top);
        if (leaves.layer.drop != 0 && seen != 0)
#pragma unroll
            for (int r = 0; r < 2; r++)
                if (leaves.layer.drop[(size_t)table.position * rows + b0 + 8 * r + g]) seen &= ~(1 << r);
        b0 += TILE;
        if (b0 == b_stop) run += parts;
        if (__all_sync(~0u, seen == 0)) continue;
#pragma unroll
        for (int r = 0; r < 2; r++)
#pragma unroll
            for (int i = 0; i < PARTS; i++) ((u32*)turned)[(8 * r + g) * W_LINE + t + 4 * i] = phi[r][i];
        __syncwarp();
        const float* now = stages + stage * STEP;
#pragma unroll
        for (int n = 0; n < 2; n++) {
            float acc[4][4];
#pragma unroll
            for (int m = 0; m < 4; m++)
#pragma unroll
                for (int r = 0; r < 4; r++) acc[m][r] = 0.0f;
#pragma unroll
            for (int a = 0; a < 4; a++)
#pragma unroll
                for (int m = 0; m < 4; m++) mma(acc[m], w[m][a], phi[n][2 * a], phi[n][2 * a + 1]);
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
                    const float flow = at[0] * at[TILE * F_LINE] * by[r % 2];
                    x[r / 2 + r % 2 * 2] = rounded(acc[m][r] > TINY ? flow * reciprocal(acc[m][r]) : 0.0f);
                }
#pragma unroll
                for (int j = 0; j < 4; j++) mma(sums[m][j], x, y[j][0], y[j][1]);
            }
        }
        __syncwarp();
    }
    // A set with fewer steps meets its barrier as often as the other: racecheck could not follow them otherwise.
    auto steps = [&](int of) {
        int sum = 0;
        for (int r = own.share * SETS + of; r < runs; r += parts) sum += min(own.run, (rows - r % each * length) / TILE);
        return sum;
    };
    for (int more = max(steps(0), steps(1)) - steps(set); more > 0; more--) asm volatile("bar.sync %0, 128;" ::"r"(1 + set) : "memory");
    copies_wait<0>();
    __syncthreads();
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

#endif

// The end of a step: the rule, and the loss.

// Rows of W that move alike.
struct Rows {
    float *weights, *first, *second; // (rows, wide)
    float* rounded;      // the same weights as `kept` has them, or null where that is no other
    const float* sums;   // (parts, rows, wide): dW
    const float* counts; // (blocks of the guard, all weights): flows of samples that were computed again
    float* least;        // (rows): their least number
    u64 stride;          // from part to part
    int rows, real, wide, parts;
    int before, padding; // rows of the kinds before this one
};

struct Update {
    const Rows* all;
    const Numbers* numbers;
    const Clock* clock;
    const int* guarded; // (guards): whether that block of the guard has counted
    u64 guard_stride;
    float beta1, beta2; // or momentum
    int kinds, rows, rule, guards; // rule: 0 Adam and Nadam, 1 SGD, 2 EM
};

__device__ __forceinline__ float warp_sum(float x) {
    for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(~0u, x, step);
    return x;
}

// Δ of one number (`optimizer.rs`).
__device__ __forceinline__ float change(const Update& u, const Numbers& n, float rate, float g, float* first, float* second) {
    if (u.rule == 1) {
        *first = u.beta1 * *first + g;
        return rate * *first;
    }
    *first = u.beta1 * *first + (1.0f - u.beta1) * g;
    *second = u.beta2 * *second + (1.0f - u.beta2) * g * g;
    return rate * (n.from_moment * *first + n.from_gradient * g) * rsqrtf(n.second * *second + 1e-16f);
}

#define KEPT 4

__device__ __forceinline__ float4 plus(float4 a, float4 b) { return make_float4(a.x + b.x, a.y + b.y, a.z + b.z, a.w + b.w); }

__device__ __forceinline__ float4 times(float4 a, float by) { return make_float4(a.x * by, a.y * by, a.z * by, a.w * by); }
__device__ __forceinline__ float total_of(float4 a) { return a.x + a.y + a.z + a.w; }

// A row of W that a warp moves, a lane four columns side by side from column a on: counts N = W ∘ dW, the rule, the row
// back on the simplex. Columns that only fill a row up have zero weights and stay so.
struct MovingRow {
    const Update& u;
    const Rows r;
    const Numbers n;
    const size_t start;
    float *weights, *first, *second;
    const float *sums, *counts;
    bool guarded;
    float least, total, sum; // the least new weight; sums over the row of N and of what becomes of W

    __device__ __forceinline__ float4 flow(int a, float4 w) {
        float4 d = make_float4(0.0f, 0.0f, 0.0f, 0.0f), count = d;
#pragma unroll 8
        for (int part = 0; part < r.parts; part++) d = plus(d, *(const float4*)(sums + part * r.stride + a));
        if (guarded)
            for (int guard = 0; guard < u.guards; guard++)
                if (u.guarded[guard]) count = plus(count, *(const float4*)(counts + guard * u.guard_stride + a));
        const float penalty = u.rule == 2 ? 0.0f : n.penalty;
        return make_float4(w.x * (d.x + penalty * w.x) + count.x, w.y * (d.y + penalty * w.y) + count.y,
                           w.z * (d.z + penalty * w.z) + count.z, w.w * (d.w + penalty * w.w) + count.w);
    }

    __device__ __forceinline__ float moved(float w, float count, float* m, float* v) {
        if (u.rule == 2) {
            *m += n.rate * (fmaxf(count, 0.0f) - *m);
            return w > 0.0f ? *m + 1e-6f : w;
        }
        return w * expf(fminf(-change(u, n, n.rate, count - w * total, m, v), 80.0f));
    }

    __device__ __forceinline__ float4 move(int a, float4 w, float4 count, float4 m, float4 v) {
        w = make_float4(moved(w.x, count.x, &m.x, &v.x), moved(w.y, count.y, &m.y, &v.y), moved(w.z, count.z, &m.z, &v.z), moved(w.w, count.w, &m.w, &v.w));
        *(float4*)(first + a) = m;
        if (u.rule == 0) *(float4*)(second + a) = v;
        sum += total_of(w);
        least = fminf(least, fminf(a < r.real ? w.x : least, a + 1 < r.real ? w.y : least));
        least = fminf(least, fminf(a + 2 < r.real ? w.z : least, a + 3 < r.real ? w.w : least));
        return w;
    }

    // What the row is multiplied by to sum to one; `least` becomes that of the row. Both sums over lanes go side by side.
    __device__ __forceinline__ float to_simplex() {
        for (int step = 16; step > 0; step /= 2) {
            sum += __shfl_xor_sync(~0u, sum, step);
            least = fminf(least, __shfl_xor_sync(~0u, least, step));
        }
        const float by = 1.0f / sum;
        least *= by;
        return by;
    }

    __device__ __forceinline__ void store(int a, float4 w) {
        *(float4*)(weights + a) = w;
        if (r.rounded != 0) *(float4*)(r.rounded + start + a) = make_float4(kept(w.x), kept(w.y), kept(w.z), kept(w.w));
    }

    // All of a row in registers, all loads at once.
    __device__ __forceinline__ void move_short(int lane) {
        float4 w[KEPT], m[KEPT], v[KEPT], count[KEPT];
#pragma unroll
        for (int k = 0; k < KEPT; k++) {
            const int a = 4 * lane + 128 * k;
            if (a >= r.wide) continue;
            w[k] = *(const float4*)(weights + a);
            m[k] = *(const float4*)(first + a);
            v[k] = *(const float4*)(second + a);
        }
#pragma unroll
        for (int k = 0; k < KEPT; k++) {
            const int a = 4 * lane + 128 * k;
            if (a >= r.wide) continue;
            count[k] = flow(a, w[k]);
            total += total_of(count[k]);
        }
        total = warp_sum(total);
#pragma unroll
        for (int k = 0; k < KEPT; k++)
            if (4 * lane + 128 * k < r.wide) w[k] = move(4 * lane + 128 * k, w[k], count[k], m[k], v[k]);
        const float by = to_simplex();
#pragma unroll
        for (int k = 0; k < KEPT; k++)
            if (4 * lane + 128 * k < r.wide) store(4 * lane + 128 * k, times(w[k], by));
    }

    __device__ __forceinline__ void move_long(int lane) {
        for (int a = 4 * lane; a < r.wide; a += 128) total += total_of(flow(a, *(const float4*)(weights + a)));
        total = warp_sum(total);
        for (int a = 4 * lane; a < r.wide; a += 128) {
            float4 w = *(const float4*)(weights + a);
            *(float4*)(weights + a) = move(a, w, flow(a, w), *(const float4*)(first + a), *(const float4*)(second + a));
        }
        const float by = to_simplex();
        for (int a = 4 * lane; a < r.wide; a += 128) store(a, times(*(const float4*)(weights + a), by));
    }
};

// A warp a row.
extern "C" __global__ void __launch_bounds__(256) update(const __grid_constant__ Update u) {
    const int lane = threadIdx.x & 31;
    int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, kind = -1;
    if (row >= u.rows) return;
    for (int k = 0; k < u.kinds; k += 32) kind += __popc(__ballot_sync(~0u, k + lane < u.kinds && u.all[k + lane].before <= row));
    const Rows r = u.all[kind];
    row -= r.before;
    const size_t start = (size_t)row * r.wide;
    bool guarded = false;
    for (int k = lane; k < u.guards; k += 32) guarded |= u.guarded[k] != 0;
    guarded = __any_sync(~0u, guarded);
    MovingRow own = {u, r, u.numbers[u.clock->slot], start, r.weights + start, r.first + start, r.second + start,
                     r.sums + start, r.counts + start, guarded, __int_as_float(0x7f800000), 0.0f, 0.0f};
    if (r.wide <= 128 * KEPT) own.move_short(lane);
    else own.move_long(lane);
    if (lane == 0) r.least[row] = own.least;
}

struct Finish {
    const Cost* cost;
    Cost* sums; // (slots)
    Clock* clock;
    const float* least; // (rows of all levels): their least numbers, as `update` left them
    float* by;          // (levels): 4 / the least number of their matrices
    const int* levels;  // (levels + 1): their first rows
    int samples, padding;
};

// 4 / the least number of a level's matrices. A block.
__device__ __forceinline__ void gather_least(const Finish& s, int level, float* parts) {
    const int lane = threadIdx.x & 31;
    float least = __int_as_float(0x7f800000);
#pragma unroll 8
    for (int row = s.levels[level] + threadIdx.x; row < s.levels[level + 1]; row += 1024) least = fminf(least, s.least[row]);
    for (int step = 16; step > 0; step /= 2) least = fminf(least, __shfl_xor_sync(~0u, least, step));
    if (lane == 0) parts[threadIdx.x / 32] = least;
    __syncthreads();
    if (threadIdx.x >= 32) return;
    least = parts[lane];
    for (int step = 16; step > 0; step /= 2) least = fminf(least, __shfl_xor_sync(~0u, least, step));
    if (lane == 0) s.by[level] = 4.0f / least;
}

__device__ __forceinline__ void add_cost(Cost& to, const Cost& other) {
    to.discriminative += other.discriminative;
    to.generative += other.generative;
    to.weight += other.weight;
    to.correct += other.correct;
    to.labelled += other.labelled;
    to.doubtful += other.doubtful;
}

// The step's loss, summed in one fixed order; then the next step. Other blocks find the least weights meanwhile, a level each.
extern "C" __global__ void __launch_bounds__(1024) finish(const __grid_constant__ Finish s) {
    __shared__ Cost parts[1024];
    if (blockIdx.x > 0) return gather_least(s, blockIdx.x - 1, (float*)parts);
    Cost sum = {};
    for (int b = threadIdx.x; b < s.samples; b += 1024) add_cost(sum, s.cost[b]);
    parts[threadIdx.x] = sum;
    for (int half = 512; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) add_cost(parts[threadIdx.x], parts[threadIdx.x + half]);
    }
    if (threadIdx.x > 0) return;
    s.sums[s.clock->slot] = parts[0];
    s.clock->slot++;
}

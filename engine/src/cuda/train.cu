// A step around the circuit: rows with random holes, class scores and the objective, the rule.

struct Block { u32 x[4]; };

// Philox 4×32-10, as `random.rs`.
__device__ Block philox(u32 index, u32 item, u32 step, u32 purpose, u64 seed) {
    u32 c0 = index, c1 = item, c2 = step, c3 = purpose, k0 = (u32)seed, k1 = (u32)(seed >> 32);
#pragma unroll
    for (int round = 0; round < 10; round++) {
        u64 left = (u64)c0 * 0xD2511F53u, right = (u64)c2 * 0xCD9E8D57u;
        c0 = (u32)(right >> 32) ^ c1 ^ k0;
        c1 = (u32)right;
        c2 = (u32)(left >> 32) ^ c3 ^ k1;
        c3 = (u32)left;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return Block{{c0, c1, c2, c3}};
}

// The numbers of one step that the host knows beforehand.
struct Numbers {
    u32 step;
    float rate, penalty, from_moment, from_gradient, second, leaf_rate;
    float by; // 1 / the sum of the rows' weights
};

// Which step of those that were sent comes next.
struct Clock {
    u32 slot;
};

// Nodes of one layer that a step sums out at random.
struct Dropping {
    u8* drop; // (nodes, B)
    double below; // probability · 2³²
    int first, nodes; // its draws
};

struct Fill {
    const Clock* clock;
    const Numbers* numbers;
    const u32* picks;      // (slots, samples)
    const void* values;    // (n, width): codes, or numbers
    const float* codes;    // 256 numbers, or null where values are numbers
    const int* places;     // (shifts, width), −1 outside the frame
    const float* offset;   // (width)
    const float* scale;    // (width)
    const long long* labels; // (n) or null
    const float* weights;  // (n) or null
    float* frame;          // (B, D)
    int* label;            // (B)
    float* weight;         // (B)
    int* tops;             // of all layers, to be cleared
    const Dropping* dropping;
    const u8* smooth;      // (channels): whether turned images are interpolated; null where they stay as they are
    u64 top_count, seed;
    double drop; // probability of a hole
    double rotate, stretch;
    int width, frame_len, samples, rows, shifts, droppings, varied;
    int image_height, image_width, channels;
};

// The number i of a row of data.
__device__ __forceinline__ float number(const Fill& s, size_t row, int i) {
    const size_t at = row * s.width + i;
    return s.codes == 0 ? ((const float*)s.values)[at] : s.codes[((const u8*)s.values)[at]];
}

// 64 bits of a stream, the pair `index`.
__device__ __forceinline__ u64 pair_of(const Fill& s, u32 index, int b, u32 step, u32 purpose) {
    Block block = philox(index / 2, b, step, purpose, s.seed);
    return (u64)block.x[index % 2 * 2] << 32 | block.x[index % 2 * 2 + 1];
}
__device__ __forceinline__ double uniform(u64 bits) { return (bits >> 11) * (1.0 / (1ull << 53)); }

// A turn about the image's centre and a change of size (`augment.rs`).
struct Turn { double sin, cos, size; };

__device__ float pixel(const Fill& s, size_t row, double y, double x, int channel) {
    if (!(y >= 0.0 && y < s.image_height && x >= 0.0 && x < s.image_width)) return __int_as_float(0x7fffffff);
    return number(s, row, ((int)y * s.image_width + (int)x) * s.channels + channel);
}

// The number i of a turned image.
__device__ float turned(const Fill& s, const Turn& turn, size_t row, int i) {
    const int channel = i % s.channels, at = i / s.channels;
    const double middle = (s.image_height - 1.0) / 2.0, across = (s.image_width - 1.0) / 2.0, nothing = 1e-6;
    const double down = (at / s.image_width - middle) / turn.size, right = (at % s.image_width - across) / turn.size;
    const double y = middle + turn.cos * down + turn.sin * right, x = across - turn.sin * down + turn.cos * right;
    if (!s.smooth[channel]) return pixel(s, row, round(y), round(x), channel);
    const double top = floor(y + nothing), left = floor(x + nothing);
    const double low = fmax(y - top, 0.0), side = fmax(x - left, 0.0);
    float sum = 0.0f;
    for (int corner = 0; corner < 4; corner++) {
        const int v = corner / 2, h = corner % 2;
        const double part = (v ? low : 1.0 - low) * (h ? side : 1.0 - side);
        if (part > 2.0 * nothing) sum += (float)part * pixel(s, row, top + v, left + h, channel);
    }
    return sum;
}

// A block a sample.
extern "C" __global__ void fill(const __grid_constant__ Fill s) {
    const int b = blockIdx.x, t = threadIdx.x;
    for (u64 i = (u64)b * blockDim.x + t; i < s.top_count; i += (u64)gridDim.x * blockDim.x) s.tops[i] = -1;
    float* frame = s.frame + (size_t)b * s.frame_len;
    for (int i = t; i < s.frame_len; i += blockDim.x) frame[i] = __int_as_float(0x7fffffff);
    if (b >= s.samples) {
        if (t == 0) s.label[b] = -1, s.weight[b] = 0.0f;
        return;
    }
    const Numbers& now = s.numbers[s.clock->slot];
    const size_t row = s.picks[(size_t)s.clock->slot * s.samples + b];
    if (t == 0) {
        s.label[b] = s.labels == 0 ? -1 : (int)s.labels[row];
        s.weight[b] = s.weights == 0 ? 1.0f : s.weights[row];
    }
    int shift = 0;
    u32 drawn = 0; // of the stream that shifts and turns share
    if (s.shifts > 1) {
        const u64 n = s.shifts, limit = ~0ull - ~0ull % n;
        u64 bits;
        do bits = pair_of(s, drawn++, b, now.step, 5);
        while (bits >= limit); // without bias
        shift = bits % n;
    }
    __shared__ Turn turn;
    if (s.smooth != 0 && t == 0) {
        auto up_to = [&](double most, u32 index) { return most * (2.0 * uniform(pair_of(s, index, b, now.step, 5)) - 1.0); };
        sincos(up_to(s.rotate, drawn) * (3.14159265358979323846 / 180.0), &turn.sin, &turn.cos);
        turn.size = 1.0 + up_to(s.stretch, drawn + 1);
    }
    __syncthreads();
    u64 threshold = s.drop * 4294967296.0;
    if (s.varied) { // a row draws its own share of holes first, from two numbers
        threshold = fmin(2.0 * s.drop * uniform(pair_of(s, 0, b, now.step, 3)), 1.0) * 4294967296.0;
    }
    const int used = s.varied ? 2 : 0;
    for (int four = t; four < (s.width + used + 3) / 4; four += blockDim.x) {
        Block holes = {{~0u, ~0u, ~0u, ~0u}};
        if (threshold > 0) holes = philox(four, b, now.step, 3, s.seed);
        for (int r = 0; r < 4; r++) {
            const int i = 4 * four + r - used;
            if (i < 0 || i >= s.width || (u64)holes.x[r] < threshold) continue;
            const int place = s.places[(size_t)shift * s.width + i];
            if (place < 0) continue;
            float x = s.smooth == 0 ? number(s, row, i) : turned(s, turn, row, i);
            float z = (x - s.offset[i]) * s.scale[i];
            frame[place] = isnan(x) ? x : fminf(fmaxf(z, -3.402823466e38f), 3.402823466e38f);
        }
    }
    for (int d = 0; d < s.droppings; d++) {
        const Dropping& drop = s.dropping[d];
        for (int node = t; node < drop.nodes; node += blockDim.x) {
            u32 draw = drop.first + node;
            drop.drop[(size_t)node * s.rows + b] = philox(draw / 4, b, now.step, 4, s.seed).x[draw % 4] < drop.below;
        }
    }
}

// What one sample costs.
struct Cost {
    double discriminative, generative, weight;
    int correct, labelled, doubtful, padding;
};

struct Root {
    const Layer* tops;    // (trees): layers of one node
    const int* left;      // (trees): first column of each tree
    const float* weights; // (K, columns)
    const double* prior;  // (K), logarithms
    const int* label;
    const float* weight;
    const Numbers* numbers;
    const Clock* clock;
    float* psi;     // (B, wide K)
    float* dpsi;    // (B, wide K)
    float* factor;  // (B, trees)
    float* lost;    // (B)
    double* score;  // (B, K)
    Cost* cost;     // (B)
    u8* doubtful;   // (B)
    const float* seeds; // (B, K): given, or null where they follow from the objective
    float* doubt;       // (B, K): of each class, where rows are the identity
    double beta;
    int columns, classes, wide, trees, rows, samples, down, likelihood;
};

__device__ double log_sum(const double* score, const double* prior, int classes, int lane) {
    double top = -__longlong_as_double(0x7ff0000000000000ll), sum = 0.0;
    for (int y = lane; y < classes; y += 32) top = fmax(top, score[y] + prior[y]);
    for (int step = 16; step > 0; step /= 2) top = fmax(top, __shfl_xor_sync(~0u, top, step));
    if (!isfinite(top)) return top;
    for (int y = lane; y < classes; y += 32) sum += exp(score[y] + prior[y] - top);
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    return top + log(sum);
}

// Loss of one sample, and its seeds by `seed(y, value)`; a warp.
template <class Seed>
__device__ void objective(const Root& s, int b, const double* score, int lane, Seed seed) {
    const int label = s.label[b];
    const double weight = s.weight[b], by = s.numbers[s.clock->slot].by;
    const double whole = log_sum(score, s.prior, s.classes, lane);
    int beaten = 0;
    for (int y = lane; y < s.classes; y += 32) {
        const double joint = score[y] + s.prior[y], posterior = exp(joint - whole), hit = y == label ? 1.0 : 0.0;
        double value = posterior;
        if (s.likelihood && label >= 0) value = hit;
        if (!s.likelihood) value = label >= 0 ? posterior - hit - s.beta * posterior : -s.beta * posterior;
        seed(y, (float)(weight * value) * (float)by);
        if (label >= 0 && y != label && !(joint < score[label] + s.prior[label])) beaten = 1;
    }
    beaten = __any_sync(~0u, beaten);
    if (lane > 0) return;
    Cost cost = {};
    cost.weight = weight;
    cost.generative = -weight * whole;
    if (label >= 0) {
        cost.discriminative = weight * (whole - score[label] - s.prior[label]);
        cost.correct = !beaten;
        cost.labelled = 1;
    }
    s.cost[b] = cost;
}

#define CLASSES 10

// Class scores; for training also the objective, dψ of the classes and dφ of the tops. A warp a sample.
extern "C" __global__ void root(const __grid_constant__ Root s) {
    const int lane = threadIdx.x & 31, b = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (b >= s.rows) return;
    double most = -__longlong_as_double(0x7ff0000000000000ll);
    bool seen = false;
    for (int t = 0; t < s.trees; t++) {
        int top = s.tops[t].top[b];
        seen |= top >= 0;
        most = fmax(most, top < 0 ? 0.0 : s.tops[t].scale[b] + exponent(top));
    }
    float lost = s.trees > 1 ? TINY : 0.0f;
    for (int t = 0; t < s.trees; t++) {
        const Layer& layer = s.tops[t];
        const int top = layer.top[b];
        const double scale = top < 0 ? 0.0 : layer.scale[b] + exponent(top);
        const float factor = s.trees == 1 ? 1.0f : (float)exp(scale - most);
        if (top >= 0) lost += lost_after(layer.lost[b], top) * factor;
        else
            for (int a = lane; a < layer.real; a += 32) layer.phi[(size_t)b * layer.wide + a] = 1.0f;
        if (lane == 0) s.factor[(size_t)b * s.trees + t] = factor;
    }
    __syncwarp();
    double* score = s.score + (size_t)b * s.classes;
    float* psi = s.psi + (size_t)b * s.wide;
    for (int y0 = 0; y0 < s.classes; y0 += CLASSES) { // so many at once
        float sum[CLASSES];
#pragma unroll
        for (int y = 0; y < CLASSES; y++) sum[y] = 0.0f;
        for (int t = 0; t < s.trees; t++) {
            const Layer& layer = s.tops[t];
            const float by = s.factor[(size_t)b * s.trees + t] * inverse(layer.top[b]);
            const float *w = s.weights + (size_t)y0 * s.columns + s.left[t], *phi = layer.phi + (size_t)b * layer.wide;
#pragma unroll 4
            for (int a = lane; a < layer.real; a += 32) {
                const float value = phi[a] * by;
#pragma unroll
                for (int y = 0; y < CLASSES; y++)
                    if (y0 + y < s.classes) sum[y] += w[(size_t)y * s.columns + a] * value;
            }
        }
#pragma unroll
        for (int y = 0; y < CLASSES; y++)
            for (int step = 16; step > 0; step /= 2) sum[y] += __shfl_xor_sync(~0u, sum[y], step);
        float own = 0.0f; // a logarithm for each lane, not one after another
#pragma unroll
        for (int y = 0; y < CLASSES; y++)
            if (lane == y) own = sum[y];
        if (lane < CLASSES && y0 + lane < s.classes) {
            psi[y0 + lane] = own;
            score[y0 + lane] = seen ? log((double)own) + most : 0.0;
        }
    }
    if (lane == 0) s.lost[b] = lost;
    if (!s.down) return;
    __syncwarp();
    float* dpsi = s.dpsi + (size_t)b * s.wide;
    if (b >= s.samples) {
        for (int y = lane; y < s.wide; y += 32) dpsi[y] = 0.0f;
    } else {
        double harm = 0.0;
        auto note = [&](int y, float seed) {
            dpsi[y] = psi[y] > TINY ? seed / psi[y] : 0.0f;
            harm += (double)fabsf(seed) * lost / psi[y];
        };
        if (s.seeds != 0) {
            for (int y = lane; y < s.classes; y += 32) note(y, s.seeds[(size_t)b * s.classes + y]);
        } else {
            objective(s, b, score, lane, note);
            for (int step = 16; step > 0; step /= 2) harm += __shfl_xor_sync(~0u, harm, step);
            const bool doubtful = !(harm <= 1e-3);
            if (lane == 0) s.doubtful[b] = doubtful;
            if (doubtful)
                for (int y = lane; y < s.wide; y += 32) dpsi[y] = 0.0f; // computed again in log space
        }
        for (int y = s.classes + lane; y < s.wide; y += 32) dpsi[y] = 0.0f;
    }
    __syncwarp();
    for (int t = 0; t < s.trees; t++) {
        const Layer& layer = s.tops[t];
        const float by = s.factor[(size_t)b * s.trees + t];
        for (int a = lane; a < layer.wide; a += 32) {
            float sum = 0.0f;
#pragma unroll 10
            for (int y = 0; y < s.classes && a < layer.real; y++) sum += s.weights[(size_t)y * s.columns + s.left[t] + a] * dpsi[y];
            layer.dphi[(size_t)b * layer.wide + a] = sum * by;
        }
    }
}

// The same where class rows are the identity: a class shares nothing with the others, so its product over the top's
// children is taken alone, with a scale of its own (`root.rs`). tops[0] is the top, tops[1] has ψ of its children.
extern "C" __global__ void class_root(const __grid_constant__ Root s) {
    const int lane = threadIdx.x & 31, b = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (b >= s.rows) return;
    const Layer &top = s.tops[0], &parts = s.tops[1];
    const double infinite = __longlong_as_double(0x7ff0000000000000ll);
    const bool out = top.drop != 0 && top.drop[b] != 0;
    double *score = s.score + (size_t)b * s.classes, most = -infinite;
    float *psi = s.psi + (size_t)b * s.wide, *doubts = s.doubt + (size_t)b * s.classes;
    bool seen = false;
    for (int y = 0; y < s.classes; y++) {
        double sum = 0.0, doubt = 0.0;
        for (int j0 = lane; j0 < parts.nodes && !out; j0 += 256) { // eight factors, none below 10⁻³⁸
            double product = 1.0;
            for (int j = j0; j < min(j0 + 256, parts.nodes); j += 32) {
                const size_t row = (size_t)j * s.rows + b;
                if (parts.top[row] < 0) continue;
                const float factor = parts.phi[row * parts.wide + y];
                product *= factor;
                doubt += factor > TINY ? (double)(parts.lost[row] / factor) : infinite;
                sum += parts.scale[row];
                seen = true;
            }
            sum += log(product);
        }
        for (int step = 16; step > 0; step /= 2) {
            sum += __shfl_xor_sync(~0u, sum, step);
            doubt += __shfl_xor_sync(~0u, doubt, step);
        }
        most = fmax(most, sum);
        if (lane == 0) score[y] = sum, doubts[y] = (float)doubt;
    }
    seen = __any_sync(~0u, seen);
    __syncwarp();
    double lost = 0.0;
    for (int y = lane; y < s.wide; y += 32) {
        const float value = y < s.classes ? (float)exp(score[y] - most) : 0.0f;
        psi[y] = value;
        top.phi[(size_t)b * top.wide + y] = value;
        if (value > 0.0f) lost += (double)value * doubts[y];
    }
    for (int step = 16; step > 0; step /= 2) lost += __shfl_xor_sync(~0u, lost, step);
    if (lane == 0) {
        top.top[b] = seen ? 0x3f000000 : -1;
        top.scale[b] = most;
        s.factor[b] = 1.0f;
        s.lost[b] = (float)lost + TINY;
    }
    if (!s.down) return;
    float* seeds = s.dpsi + (size_t)b * s.wide;
    double harm = 0.0;
    auto note = [&](int y, float seed) {
        seeds[y] = seed;
        if (seed != 0.0f) harm += (double)fabsf(seed) * doubts[y];
    };
    if (b < s.samples && s.seeds != 0)
        for (int y = lane; y < s.classes; y += 32) note(y, s.seeds[(size_t)b * s.classes + y]);
    bool still = b >= s.samples;
    if (b < s.samples && s.seeds == 0) {
        objective(s, b, score, lane, note);
        for (int step = 16; step > 0; step /= 2) harm += __shfl_xor_sync(~0u, harm, step);
        still = !(harm <= 1e-3); // computed again in log space
        if (lane == 0) s.doubtful[b] = still;
    }
    __syncwarp();
    for (int i = lane; i < parts.nodes * parts.wide; i += 32) {
        const int y = i % parts.wide;
        const size_t row = (size_t)(i / parts.wide) * s.rows + b;
        const int bits = parts.top[row];
        const float factor = parts.phi[row * parts.wide + y];
        const bool none = still || out || bits < 0 || y >= s.classes || !(factor > TINY);
        parts.dphi[row * parts.wide + y] = none ? 0.0f : seeds[y] / (factor * inverse(bits));
    }
}

// Rows of W that move alike.
struct Rows {
    float *weights, *first, *second; // (rows, wide)
    float* rounded;      // the same weights as `kept` has them, or null where that is no other
    const float* sums;   // (parts, rows, wide): dW
    const float* counts; // (blocks of the guard, all weights): flows of samples that were computed again
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

// Δ of one number (`optim.rs`).
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

// A warp a row, a lane four columns side by side: counts N = W ∘ dW, the rule, the row back on the simplex. Columns that
// only fill a row up have zero weights and stay so.
extern "C" __global__ void __launch_bounds__(256) update(const __grid_constant__ Update u) {
    const int lane = threadIdx.x & 31;
    int row = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32, kind = -1;
    if (row >= u.rows) return;
    for (int k = 0; k < u.kinds; k += 32) kind += __popc(__ballot_sync(~0u, k + lane < u.kinds && u.all[k + lane].before <= row));
    const Rows r = u.all[kind];
    row -= r.before;
    const Numbers n = u.numbers[u.clock->slot];
    const size_t start = (size_t)row * r.wide;
    float *weights = r.weights + start, *first = r.first + start, *second = r.second + start;
    const float *sums = r.sums + start, *counts = r.counts + start;
    auto store = [&](int a, float4 w) {
        *(float4*)(weights + a) = w;
        if (r.rounded != 0) *(float4*)(r.rounded + start + a) = make_float4(kept(w.x), kept(w.y), kept(w.z), kept(w.w));
    };
    const int wide = r.wide, parts = r.parts;
    const u64 stride = r.stride;
    bool guarded = false;
    for (int k = lane; k < u.guards; k += 32) guarded |= u.guarded[k] != 0;
    guarded = __any_sync(~0u, guarded);
    auto flow = [&](int a, float4 w) {
        float4 d = make_float4(0.0f, 0.0f, 0.0f, 0.0f), count = d;
#pragma unroll 8
        for (int part = 0; part < parts; part++) d = plus(d, *(const float4*)(sums + part * stride + a));
        if (guarded)
            for (int guard = 0; guard < u.guards; guard++)
                if (u.guarded[guard]) count = plus(count, *(const float4*)(counts + guard * u.guard_stride + a));
        const float penalty = u.rule == 2 ? 0.0f : n.penalty;
        return make_float4(w.x * (d.x + penalty * w.x) + count.x, w.y * (d.y + penalty * w.y) + count.y,
                           w.z * (d.z + penalty * w.z) + count.z, w.w * (d.w + penalty * w.w) + count.w);
    };
    float total = 0.0f, sum = 0.0f;
    auto one = [&](float w, float count, float* m, float* v) {
        if (u.rule == 2) {
            *m += n.rate * (fmaxf(count, 0.0f) - *m);
            return w > 0.0f ? *m + 1e-6f : w;
        }
        return w * expf(fminf(-change(u, n, n.rate, count - w * total, m, v), 80.0f));
    };
    auto move = [&](int a, float4 w, float4 count, float4 m, float4 v) {
        w = make_float4(one(w.x, count.x, &m.x, &v.x), one(w.y, count.y, &m.y, &v.y), one(w.z, count.z, &m.z, &v.z), one(w.w, count.w, &m.w, &v.w));
        *(float4*)(first + a) = m;
        if (u.rule == 0) *(float4*)(second + a) = v;
        sum += w.x + w.y + w.z + w.w;
        return w;
    };
    if (wide <= 128 * KEPT) { // all of a row in registers, all loads at once
        float4 w[KEPT], m[KEPT], v[KEPT], count[KEPT];
#pragma unroll
        for (int k = 0; k < KEPT; k++) {
            const int a = 4 * lane + 128 * k;
            if (a >= wide) continue;
            w[k] = *(const float4*)(weights + a);
            m[k] = *(const float4*)(first + a);
            v[k] = *(const float4*)(second + a);
        }
#pragma unroll
        for (int k = 0; k < KEPT; k++) {
            const int a = 4 * lane + 128 * k;
            if (a >= wide) continue;
            count[k] = flow(a, w[k]);
            total += count[k].x + count[k].y + count[k].z + count[k].w;
        }
        total = warp_sum(total);
#pragma unroll
        for (int k = 0; k < KEPT; k++)
            if (4 * lane + 128 * k < wide) w[k] = move(4 * lane + 128 * k, w[k], count[k], m[k], v[k]);
        const float by = 1.0f / warp_sum(sum);
#pragma unroll
        for (int k = 0; k < KEPT; k++)
            if (4 * lane + 128 * k < wide) store(4 * lane + 128 * k, make_float4(w[k].x * by, w[k].y * by, w[k].z * by, w[k].w * by));
        return;
    }
    for (int a = 4 * lane; a < wide; a += 128) {
        float4 count = flow(a, *(const float4*)(weights + a));
        total += count.x + count.y + count.z + count.w;
    }
    total = warp_sum(total);
    for (int a = 4 * lane; a < wide; a += 128) {
        float4 w = *(const float4*)(weights + a);
        *(float4*)(weights + a) = move(a, w, flow(a, w), *(const float4*)(first + a), *(const float4*)(second + a));
    }
    const float by = 1.0f / warp_sum(sum);
    for (int a = 4 * lane; a < wide; a += 128) {
        float4 w = *(const float4*)(weights + a);
        store(a, make_float4(w.x * by, w.y * by, w.z * by, w.w * by));
    }
}

struct Finish {
    const Cost* cost;
    Cost* sums; // (slots)
    Clock* clock;
    int samples;
};

// The step's loss, summed in one fixed order; then the next step.
extern "C" __global__ void __launch_bounds__(1024) finish(const __grid_constant__ Finish s) {
    __shared__ Cost parts[1024];
    Cost sum = {};
    for (int b = threadIdx.x; b < s.samples; b += 1024) {
        const Cost& cost = s.cost[b];
        sum.discriminative += cost.discriminative;
        sum.generative += cost.generative;
        sum.weight += cost.weight;
        sum.correct += cost.correct;
        sum.labelled += cost.labelled;
        sum.doubtful += cost.doubtful;
    }
    parts[threadIdx.x] = sum;
    for (int half = 512; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x >= half) continue;
        Cost &to = parts[threadIdx.x], &other = parts[threadIdx.x + half];
        to.discriminative += other.discriminative;
        to.generative += other.generative;
        to.weight += other.weight;
        to.correct += other.correct;
        to.labelled += other.labelled;
        to.doubtful += other.doubtful;
    }
    if (threadIdx.x > 0) return;
    s.sums[s.clock->slot] = parts[0];
    s.clock->slot++;
}

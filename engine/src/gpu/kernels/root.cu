// The class root: scores, the objective, and down again.

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
    float* doubt;       // (B, K): the part of P(x|y) that underflow may have taken
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

// What a sample's class scores need of the tops of its trees.
struct Tops {
    double most;          // the largest of their scales
    float lost, relative; // what underflow may have taken
    bool seen;
};

#define CLASSES 10 // at once

// ψ of classes from y0 on for sample b: Σ_a W[y,a] φ(a) over the tops of all trees. A warp.
__device__ __forceinline__ void class_sums(const Root& s, int b, int y0, float (&sum)[CLASSES]) {
    const int lane = threadIdx.x & 31;
#pragma unroll
    for (int y = 0; y < CLASSES; y++) sum[y] = 0.0f;
    for (int t = 0; t < s.trees; t++) {
        const Layer& layer = s.tops[t];
        const int top = layer.top[b];
        const float by = s.trees == 1 ? inverse(top) : s.factor[(size_t)b * s.trees + t] * inverse(top);
        const float *w = s.weights + (size_t)y0 * s.columns + s.left[t], *phi = layer.phi + (size_t)b * layer.wide;
#pragma unroll 2
        for (int a = 4 * lane; a < layer.wide; a += 128) {
            float4 value = *(const float4*)(phi + a);
            if (top < 0) value = make_float4(1.0f, 1.0f, 1.0f, 1.0f);
            value = make_float4(a < layer.real ? value.x * by : 0.0f, a + 1 < layer.real ? value.y * by : 0.0f,
                                a + 2 < layer.real ? value.z * by : 0.0f, a + 3 < layer.real ? value.w * by : 0.0f);
#pragma unroll
            for (int y = 0; y < CLASSES; y++) { // the last class again where there are fewer: all loads without a condition
                const float4 row = *(const float4*)(w + (size_t)min(y, s.classes - 1 - y0) * s.columns + a);
                sum[y] += row.x * value.x + row.y * value.y + (row.z * value.z + row.w * value.w);
            }
        }
    }
#pragma unroll
    for (int y = 0; y < CLASSES; y++)
        for (int step = 16; step > 0; step /= 2) sum[y] += __shfl_xor_sync(~0u, sum[y], step);
}

// dψ of the classes of sample b; zero where it is to be computed again. A warp.
__device__ __forceinline__ void class_gradients(const Root& s, int b, const double* score, const float* psi, const float* doubt, float* dpsi, const Tops& tops, float largest) {
    const int lane = threadIdx.x & 31;
    double harm = 0.0;
    auto note = [&](int y, float seed) {
        dpsi[y] = psi[y] > TINY ? seed / psi[y] : 0.0f;
        if (seed != 0.0f) harm += (double)fabsf(seed) * doubt[y];
    };
    if (s.seeds != 0) {
        for (int y = lane; y < s.classes; y += 32) note(y, s.seeds[(size_t)b * s.classes + y]);
    } else {
        objective(s, b, score, lane, note);
        for (int step = 16; step > 0; step /= 2) harm += __shfl_xor_sync(~0u, harm, step);
        harm += (tops.relative + __fdividef(tops.lost, largest)) / s.samples; // of the seeds themselves
        const bool doubtful = !(harm <= 1e-3);
        if (lane == 0) s.doubtful[b] = doubtful;
        if (doubtful)
            for (int y = lane; y < s.wide; y += 32) dpsi[y] = 0.0f; // computed again in log space
    }
}

// dφ of the tops of all trees, for sample b. A warp.
__device__ __forceinline__ void tops_down(const Root& s, int b, const float* dpsi) {
    const int lane = threadIdx.x & 31;
    for (int t = 0; t < s.trees; t++) {
        const Layer& layer = s.tops[t];
        const float by = s.trees == 1 ? 1.0f : s.factor[(size_t)b * s.trees + t];
        const float* w = s.weights + s.left[t];
        for (int a = 4 * lane; a < layer.wide; a += 128) { // columns that only fill a row up have zero weights
            float4 sum = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
#pragma unroll 10
            for (int y = 0; y < s.classes; y++) {
                const float4 row = *(const float4*)(w + (size_t)y * s.columns + a);
                const float d = dpsi[y];
                sum = make_float4(sum.x + row.x * d, sum.y + row.y * d, sum.z + row.z * d, sum.w + row.w * d);
            }
            *(float4*)(layer.dphi + (size_t)b * layer.wide + a) = make_float4(sum.x * by, sum.y * by, sum.z * by, sum.w * by);
        }
    }
}

// All is read at once, and nothing that is written is read again: products with W start before it has arrived. A warp.
__device__ __forceinline__ Tops one_top(const Root& s, int b) {
    const Layer& layer = s.tops[0];
    const int top = layer.top[b];
    const double scale = layer.scale[b];
    const float2 lost = layer.lost[b];
    if (top < 0) {
        for (int a = threadIdx.x & 31; a < layer.real; a += 32) layer.phi[(size_t)b * layer.wide + a] = 1.0f;
        return {0.0, 0.0f, 0.0f, false};
    }
    return {scale + exponent(top), lost_after(lost.x, top), lost.y, true};
}

// The same for several trees, each with its factor. A warp.
__device__ __forceinline__ Tops several_tops(const Root& s, int b) {
    const int lane = threadIdx.x & 31;
    Tops tops = {-__longlong_as_double(0x7ff0000000000000ll), TINY, 0.0f, false};
    for (int t = 0; t < s.trees; t++) {
        const int top = s.tops[t].top[b];
        const double scale = s.tops[t].scale[b];
        tops.seen |= top >= 0;
        tops.most = fmax(tops.most, top < 0 ? 0.0 : scale + exponent(top));
    }
    for (int t = 0; t < s.trees; t++) {
        const Layer& layer = s.tops[t];
        const int top = layer.top[b];
        const double below = layer.scale[b];
        const float2 own = layer.lost[b]; // read at once with the others, also where it does not count
        const float factor = (float)exp((top < 0 ? 0.0 : below + exponent(top)) - tops.most);
        if (top >= 0) {
            tops.lost += lost_after(own.x, top) * factor;
            tops.relative = fmaxf(tops.relative, own.y);
        } else
            for (int a = lane; a < layer.real; a += 32) layer.phi[(size_t)b * layer.wide + a] = 1.0f;
        if (lane == 0) s.factor[(size_t)b * s.trees + t] = factor;
    }
    __syncwarp();
    return tops;
}

// Class scores; for training also the objective, dψ of the classes and dφ of the tops. A warp a sample. Few blocks, so
// that a thread has the registers to read many weights at once.
extern "C" __global__ void __launch_bounds__(64, 8) root(const __grid_constant__ Root s) {
    const int lane = threadIdx.x & 31, b = blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (b >= s.rows) return;
    const Tops tops = s.trees == 1 ? one_top(s, b) : several_tops(s, b);
    float largest = 0.0f;
    double* score = s.score + (size_t)b * s.classes;
    float *psi = s.psi + (size_t)b * s.wide, *doubt = s.doubt + (size_t)b * s.classes;
    for (int y0 = 0; y0 < s.classes; y0 += CLASSES) { // this many at once
        float sum[CLASSES];
        class_sums(s, b, y0, sum);
        float own = 0.0f; // a logarithm for each lane, not one after another
#pragma unroll
        for (int y = 0; y < CLASSES; y++) {
            if (lane == y) own = sum[y];
            largest = fmaxf(largest, sum[y]);
        }
        if (lane < CLASSES && y0 + lane < s.classes) {
            psi[y0 + lane] = own;
            doubt[y0 + lane] = tops.relative + __fdividef(tops.lost, own); // not finite where nothing is left
            score[y0 + lane] = tops.seen ? log((double)own) + tops.most : 0.0;
        }
    }
    if (lane == 0) s.lost[b] = tops.lost + tops.relative * largest;
    if (!s.down) return;
    if (s.trees == 1 && lane == 0) s.factor[b] = 1.0f;
    __syncwarp();
    float* dpsi = s.dpsi + (size_t)b * s.wide;
    if (b >= s.samples) {
        for (int y = lane; y < s.wide; y += 32) dpsi[y] = 0.0f;
    } else {
        class_gradients(s, b, score, psi, doubt, dpsi, tops, largest);
        for (int y = s.classes + lane; y < s.wide; y += 32) dpsi[y] = 0.0f;
    }
    __syncwarp();
    tops_down(s, b, dpsi);
}

// Adds log ψ of a class over the lane's share of the children, and what underflow may have taken of it; returns whether
// something is observed.
__device__ __forceinline__ bool class_product(const Layer& parts, int rows, int b, int y, bool out, double& sum, double& doubt) {
    const double infinite = __longlong_as_double(0x7ff0000000000000ll);
    bool seen = false;
    for (int j0 = threadIdx.x & 31; j0 < parts.nodes && !out; j0 += 256) { // eight factors, none below 10⁻³⁸
        double product = 1.0;
        for (int j = j0; j < min(j0 + 256, parts.nodes); j += 32) {
            const size_t row = (size_t)j * rows + b;
            if (parts.top[row] < 0) continue;
            const float factor = parts.phi[row * parts.wide + y];
            product *= factor;
            const float2 own = parts.lost[row];
            doubt += factor > TINY ? (double)(own.y + own.x / factor) : infinite;
            sum += parts.scale[row];
            seen = true;
        }
        sum += log(product);
    }
    return seen;
}

// dφ of the top's children, for sample b. A warp.
__device__ __forceinline__ void children_down(const Root& s, const Layer& parts, int b, const float* seeds, bool still) {
    const int lane = threadIdx.x & 31;
    for (int i = lane; i < parts.nodes * parts.wide; i += 32) {
        const int y = i % parts.wide;
        const size_t row = (size_t)(i / parts.wide) * s.rows + b;
        const int bits = parts.top[row];
        const float factor = parts.phi[row * parts.wide + y];
        const bool none = still || bits < 0 || y >= s.classes || !(factor > TINY);
        parts.dphi[row * parts.wide + y] = none ? 0.0f : seeds[y] / (factor * inverse(bits));
    }
}

// The same where class rows are the identity: a class shares nothing with the others, so its product over the top's
// children is taken alone, with a scale of its own (`class_root.rs`). tops[0] is the top, tops[1] has ψ of its children.
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
        seen |= class_product(parts, s.rows, b, y, out, sum, doubt);
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
    float likeliest = __int_as_float(0x7f800000);
    for (int y = 0; y < s.classes; y++) likeliest = fminf(likeliest, doubts[y]);
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
        still = !(harm + likeliest / s.samples <= 1e-3); // computed again in log space
        if (lane == 0) s.doubtful[b] = still;
    }
    __syncwarp();
    children_down(s, parts, b, seeds, still || out);
}


// Leaves: densities of what is observed.

// Leaf families as tables: a coordinate is normal (values = 0; for each component μ, 1/σ, −log σ − ½ log 2π and log σ)
// or has log-probabilities (V, M).
struct Leaves {
    Layer layer;
    const float* frame;    // (B, D), NaN is missing
    const float* tables;
    const int* inputs;     // places in the frame, −1 outside it
    const int* first;      // (positions + 1): where a position's inputs start
    const int* family;     // (positions): its family's first coordinate
    const int* values;     // (coordinates)
    const int* offset;     // (coordinates): into the tables, a multiple of 4
    int rows, samples, frame_len; // samples: rows that are not there only to fill up
    int dense;                    // also where nothing is observed
};

#define MISSING __int_as_float(0x7fffffff)

__device__ __forceinline__ float observed(const Leaves& s, int input, int b) {
    int place = s.inputs[input];
    return place < 0 ? MISSING : s.frame[(size_t)b * s.frame_len + place];
}

// log p(x|d) in f64 of one coordinate; its table is f32.
__device__ __noinline__ double log_density(const Leaves& s, int coordinate, int d, float x) {
    const float* table = s.tables + s.offset[coordinate];
    if (s.values[coordinate] > 0) return table[(int)x * s.layer.real + d];
    double log_sigma = table[4 * d + 3], z = ((double)x - table[4 * d]) * exp(-log_sigma);
    return -0.5 * z * z - log_sigma - HALF_LOG_TAU;
}

// log φ⁰(d) in f64.
__device__ __noinline__ double log_leaf(const Leaves& s, int i, int b, int d) {
    double sum = 0.0;
    for (int k = 0; k < s.first[i + 1] - s.first[i]; k++) {
        float x = observed(s, s.first[i] + k, b);
        if (!isnan(x)) sum += log_density(s, s.family[i] + k, d, x);
    }
    return sum;
}

#define SAMPLES 64 // a block takes one position and this many samples, one per thread
#define AT_ONCE 32 // components in registers
#define NUMBERS 4  // inputs asked for at once

#if TF32
#define EXP __expf
#else
#define EXP expf
#endif

// log φ⁰ of components d0 …; says whether anything is observed.
__device__ __forceinline__ bool log_leaves(const Leaves& s, int i, int b, int d0, float (&log_prob)[AT_ONCE]) {
    const int start = s.first[i], count = s.first[i + 1] - start, coordinate = s.family[i], m = s.layer.real;
    bool seen = false;
#pragma unroll
    for (int d = 0; d < AT_ONCE; d++) log_prob[d] = 0.0f;
    for (int k0 = 0; k0 < count; k0 += NUMBERS) {
        float x[NUMBERS];
#pragma unroll
        for (int k = 0; k < NUMBERS; k++) x[k] = b < s.samples && k0 + k < count ? observed(s, start + k0 + k, b) : MISSING;
#pragma unroll
        for (int k = 0; k < NUMBERS; k++) {
            if (k0 + k >= count) break;
            const float* table = s.tables + s.offset[coordinate + k0 + k];
            const bool there = !isnan(x[k]);
            seen |= there;
            if (s.values[coordinate + k0 + k] > 0) {
                if (!there) continue;
#pragma unroll
                for (int d = 0; d < AT_ONCE; d++) log_prob[d] += table[(int)x[k] * m + min(d0 + d, m - 1)];
                continue;
            }
            const float one = there ? 1.0f : 0.0f, value = there ? x[k] : 0.0f;
#pragma unroll
            for (int d = 0; d < AT_ONCE; d++) {
                const float4 p = *(const float4*)(table + 4 * min(d0 + d, m - 1)); // beyond m: not used
                const float z = (value - p.x) * p.y;
                log_prob[d] = fmaf(one, fmaf(-0.5f * z, z, p.z), log_prob[d]);
            }
        }
    }
    return seen;
}

// Mantissas of a few components of SAMPLES samples, by four; the last column keeps threads apart in shared memory.
typedef float4 DensityTile[SAMPLES][AT_ONCE / 4 + 1];

// Writes φ of components from d0 on for SAMPLES samples.
__device__ __forceinline__ void store_tile(const Leaves& s, const DensityTile& tile, int i, int b0, int d0, int wide, int t) {
#pragma unroll
    for (int at = t; at < SAMPLES * AT_ONCE / 4; at += SAMPLES) {
        const int r = at / (AT_ONCE / 4), q = at % (AT_ONCE / 4);
        if (d0 + 4 * q < wide) *(float4*)(s.layer.phi + ((size_t)i * s.rows + b0 + r) * wide + d0 + 4 * q) = tile[r][q];
    }
}

// Groups of SAMPLES threads share the components.
template <int GROUPS> __device__ __forceinline__ void leaf_layer(const Leaves& s) {
    __shared__ DensityTile tiles[GROUPS];
    __shared__ float best[GROUPS][SAMPLES];
    const int t = threadIdx.x % SAMPLES, group = GROUPS == 1 ? 0 : threadIdx.x / SAMPLES;
    const int m = s.layer.real, wide = s.layer.wide, first = group * AT_ONCE, by = GROUPS * AT_ONCE;
    const int i = blockIdx.x / (s.rows / SAMPLES), b0 = blockIdx.x % (s.rows / SAMPLES) * SAMPLES, b = b0 + t;
    const size_t row = (size_t)i * s.rows + b;
    DensityTile& tile = tiles[group];
    float log_prob[AT_ONCE], largest = -__int_as_float(0x7f800000);
    bool seen = false;
#pragma unroll 1
    for (int d0 = first; d0 < m; d0 += by) {
        seen = log_leaves(s, i, b, d0, log_prob);
#pragma unroll
        for (int d = 0; d < AT_ONCE; d++)
            if (d0 + d < m && !(log_prob[d] <= largest)) largest = log_prob[d]; // also if it is NaN
    }
    if (GROUPS > 1) {
        best[group][t] = largest;
        __syncthreads();
        for (int other = 0; other < GROUPS; other++)
            if (!(best[other][t] <= largest)) largest = best[other][t];
    }
    seen = (seen || (s.dense && b < s.samples)) && (s.layer.drop == 0 || s.layer.drop[row] == 0);
    double scale = largest;
    float lost = TINY;
    const bool outlier = seen && !(largest >= -1000.0f); // differences of f32 would lose the distance between components
    if (outlier) {
        scale = -__longlong_as_double(0x7ff0000000000000ll);
#pragma unroll 1
        for (int d = 0; d < m; d++) scale = fmax(scale, log_leaf(s, i, b, d));
    }
    const bool finite = isfinite(scale);
    if (outlier && !finite) lost = __int_as_float(0x7f800000);
    if (group == 0) {
        s.layer.top[row] = seen ? 0x3f000000 : -1; // ½: divided by 1
        s.layer.scale[row] = finite ? scale : 0.0;
        s.layer.lost[row] = make_float2(lost, 0.0f);
    }
#pragma unroll 1
    for (int d0 = first; d0 - first < wide; d0 += by) { // all groups alike, also where there is nothing left
        if (m > AT_ONCE) log_leaves(s, i, b, d0, log_prob); // else it is still there
        auto mantissa = [&](int d) {
            const float value = seen ? EXP(log_prob[d] - largest) : 1.0f;
            return d0 + d < m ? kept(value) : 0.0f;
        };
#pragma unroll
        for (int d = 0; d < AT_ONCE; d += 4) tile[t][d / 4] = make_float4(mantissa(d), mantissa(d + 1), mantissa(d + 2), mantissa(d + 3));
        if (outlier)
#pragma unroll 1
            for (int d = 0; d < AT_ONCE && d0 + d < m; d++)
                ((float*)tile[t])[d] = finite ? kept(expf((float)(log_leaf(s, i, b, d0 + d) - scale))) : 0.0f;
        __syncthreads();
        store_tile(s, tile, i, b0, d0, wide, t);
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(SAMPLES, 5) leaves_up(const __grid_constant__ Leaves s) { leaf_layer<1>(s); }
extern "C" __global__ void __launch_bounds__(4 * SAMPLES, 1) leaves_up_wide(const __grid_constant__ Leaves s) { leaf_layer<4>(s); }

// Rows of a step in the frame: shuffled, turned, shifted, with random holes.

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


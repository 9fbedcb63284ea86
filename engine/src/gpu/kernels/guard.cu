// The guard in training: samples that underflow may have spoilt, again, in f64 and log space (`log_space.rs`).
//
// A block takes the samples b = block, block + blocks, …; where none of them needs a recheck it ends at once. Its flows go
// into counts of its own, which `update` adds in the order of the blocks, so that the same seed gives the same bits.

// One layer of a tree, and the level that mixes it.
struct GuardLayer {
    u64 phi, e, flow, scale, psi; // in a block's scratch: log φ less its largest, exp of that, flows, what was subtracted; log ψ
    const u8* drop;               // (nodes, B) or null
    const float* weights;         // (matrices, C, wide A)
    const int *matrix, *first, *children; // children of parent p: children[first[p]] …
    u64 counts;                   // where the level's weights lie among all
    int nodes, channels, above_nodes, above_channels, wide, padding;
};

struct GuardTree {
    Leaves leaves;
    int first, levels; // its layers: first … first + levels
    int left, padding; // first column of the class rows
};

struct Guard {
    Root root;
    const GuardTree* trees;
    const GuardLayer* layers;
    double* scratch; // (blocks, stride)
    float* counts;   // (blocks, count_stride)
    int* guarded;    // (blocks)
    u64 stride, count_stride, class_counts, tops, log_root, seeds; // the last three in the scratch
    int to_leaves;
};

__device__ __forceinline__ double warp_max(double x) {
    for (int step = 16; step > 0; step /= 2) x = fmax(x, __shfl_xor_sync(~0u, x, step));
    return x;
}
__device__ __forceinline__ double warp_add(double x) {
    for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(~0u, x, step);
    return x;
}

#define NOTHING (-__longlong_as_double(0x7ff0000000000000ll))
#define NEAR 1e-280 // sums above this have lost nothing that counts

// log Σ_a W[a] exp(φ[a]), by a warp; e = exp(φ).
__device__ double log_mix(const float* w, const double* phi, const double* e, int count, int lane) {
    double sum = 0.0;
    for (int a = lane; a < count; a += 32) sum += w[a] * e[a];
    sum = warp_add(sum);
    if (sum > NEAR) return log(sum);
    double top = NOTHING;
    for (int a = lane; a < count; a += 32) top = fmax(top, log((double)w[a]) + phi[a]);
    top = warp_max(top);
    if (!isfinite(top)) return NOTHING;
    sum = 0.0;
    for (int a = lane; a < count; a += 32) sum += exp(log((double)w[a]) + phi[a] - top);
    return top + log(warp_add(sum));
}

// W exp(φ) / exp(whole), which is at most one.
__device__ __forceinline__ double share(float w, double phi, double e, double whole) {
    if (w == 0.0f || whole == NOTHING) return 0.0;
    return whole > -600.0 ? w * e * exp(-whole) : exp(log((double)w) + phi - whole);
}

// Subtracts a node's largest, and keeps exp of the rest; returns what was subtracted. A warp.
__device__ double centre(double* phi, double* e, int count, int lane) {
    double top = NOTHING;
    for (int c = lane; c < count; c += 32) top = fmax(top, phi[c]);
    top = warp_max(top);
    if (!isfinite(top)) top = 0.0;
    for (int c = lane; c < count; c += 32) {
        phi[c] -= top;
        e[c] = exp(phi[c]);
    }
    return top;
}

__device__ __forceinline__ bool dropped(const GuardLayer& layer, int node, int rows, int b) {
    return layer.drop != 0 && layer.drop[(size_t)node * rows + b] != 0;
}

__device__ void guard_up(const Guard& g, const GuardTree& tree, double* mine, int b) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32, warps = blockDim.x / 32, rows = g.root.rows;
    const GuardLayer& leaf = g.layers[tree.first];
    for (int i = warp; i < leaf.nodes; i += warps) {
        double *phi = mine + leaf.phi + (size_t)i * leaf.channels, *e = mine + leaf.e + (size_t)i * leaf.channels;
        for (int d = lane; d < leaf.channels; d += 32) phi[d] = dropped(leaf, i, rows, b) ? 0.0 : log_leaf(tree.leaves, i, b, d);
        double top = centre(phi, e, leaf.channels, lane);
        if (lane == 0) mine[leaf.scale + i] = top;
    }
    for (int l = 0; l < tree.levels; l++) {
        const GuardLayer &below = g.layers[tree.first + l], &above = g.layers[tree.first + l + 1];
        const int a_count = below.channels, c_count = above.channels;
        __syncthreads();
        for (int row = warp; row < below.nodes * c_count; row += warps) {
            const int j = row / c_count, c = row % c_count;
            const float* w = below.weights + ((size_t)below.matrix[j] * c_count + c) * below.wide;
            double log_psi = log_mix(w, mine + below.phi + (size_t)j * a_count, mine + below.e + (size_t)j * a_count, a_count, lane);
            if (lane == 0) mine[below.psi + row] = log_psi;
        }
        __syncthreads();
        for (int p = warp; p < above.nodes; p += warps) {
            double *phi = mine + above.phi + (size_t)p * c_count, *e = mine + above.e + (size_t)p * c_count, scale = 0.0;
            const bool out = dropped(above, p, rows, b);
            for (int c = lane; c < c_count; c += 32) {
                double sum = 0.0;
                for (int k = below.first[p]; k < below.first[p + 1] && !out; k++) sum += mine[below.psi + (size_t)below.children[k] * c_count + c];
                phi[c] = sum;
            }
            for (int k = below.first[p]; k < below.first[p + 1] && !out; k++) scale += mine[below.scale + below.children[k]];
            double top = centre(phi, e, c_count, lane);
            if (lane == 0) mine[above.scale + p] = scale + top;
        }
    }
    __syncthreads();
}

__device__ void guard_down(const Guard& g, const GuardTree& tree, double* mine, float* counts, int b) {
    __shared__ double sums[256];
    const int rows = g.root.rows;
    for (int l = tree.levels - 1; l >= 0; l--) {
        const GuardLayer &below = g.layers[tree.first + l], &above = g.layers[tree.first + l + 1];
        const int a_count = below.channels, c_count = above.channels;
        int lanes = 1; // threads side by side in a, the others share c
        while (lanes < a_count && lanes < 256) lanes *= 2;
        const int slices = 256 / lanes, slice = threadIdx.x / lanes;
        for (int p = 0; p < above.nodes; p++) {
            const bool out = dropped(above, p, rows, b);
            for (int k = below.first[p]; k < below.first[p + 1]; k++) {
                const int j = below.children[k];
                const double *flow = mine + above.flow + (size_t)p * c_count, *psi = mine + below.psi + (size_t)j * c_count;
                const size_t matrix = (size_t)below.matrix[j] * c_count * below.wide;
                for (int a0 = 0; a0 < a_count; a0 += lanes) { // one thread always has the same weights: no race
                    const int a = a0 + threadIdx.x % lanes;
                    double sum = 0.0;
                    if (a < a_count && !out) {
                        const double phi = mine[below.phi + (size_t)j * a_count + a], e = mine[below.e + (size_t)j * a_count + a];
                        for (int c = slice; c < c_count; c += slices) {
                            const size_t at = matrix + (size_t)c * below.wide + a;
                            double pair = flow[c] * share(below.weights[at], phi, e, psi[c]);
                            counts[below.counts + at] += (float)pair;
                            sum += pair;
                        }
                    }
                    sums[threadIdx.x] = sum;
                    __syncthreads();
                    if (slice == 0 && a < a_count) {
                        for (int other = 1; other < slices; other++) sum += sums[threadIdx.x + other * lanes];
                        mine[below.flow + (size_t)j * a_count + a] = sum;
                    }
                    __syncthreads();
                }
            }
        }
    }
    if (!g.to_leaves) return;
    const GuardLayer& leaf = g.layers[tree.first];
    for (int i = threadIdx.x; i < leaf.nodes * leaf.channels; i += blockDim.x) {
        const int node = i / leaf.channels;
        float flow = dropped(leaf, node, rows, b) ? 0.0f : (float)mine[leaf.flow + i];
        tree.leaves.layer.dphi[((size_t)node * rows + b) * tree.leaves.layer.wide + i % leaf.channels] = flow;
    }
}

__device__ void guard_root(const Guard& g, double* mine, float* counts, int b) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    const Root& s = g.root;
    double most = NOTHING;
    for (int t = 0; t < s.trees; t++) most = fmax(most, mine[g.layers[g.trees[t].first + g.trees[t].levels].scale]);
    double* tops = mine + g.tops; // (columns) log φ, then exp of it
    for (int i = threadIdx.x; i < s.columns; i += blockDim.x) tops[i] = NOTHING, tops[s.columns + i] = 0.0;
    __syncthreads();
    for (int t = 0; t < s.trees; t++) {
        const GuardLayer& top = g.layers[g.trees[t].first + g.trees[t].levels];
        for (int a = threadIdx.x; a < top.channels; a += blockDim.x) {
            double log_phi = mine[top.phi + a] + mine[top.scale] - most;
            tops[g.trees[t].left + a] = log_phi;
            tops[s.columns + g.trees[t].left + a] = exp(log_phi);
        }
    }
    __syncthreads();
    double *log_root = mine + g.log_root, *seeds = mine + g.seeds, *score = s.score + (size_t)b * s.classes;
    for (int y = warp; y < s.classes; y += warps) {
        double whole = log_mix(s.weights + (size_t)y * s.columns, tops, tops + s.columns, s.columns, lane);
        if (lane == 0) {
            log_root[y] = whole;
            score[y] = whole + most;
        }
    }
    __syncthreads();
    if (warp == 0) {
        objective(s, b, score, lane, [&](int y, float seed) { seeds[y] = seed; });
        if (lane == 0) s.cost[b].doubtful = 1;
    }
    __syncthreads();
    for (int t = 0; t < s.trees; t++) {
        const GuardLayer& top = g.layers[g.trees[t].first + g.trees[t].levels];
        for (int a = threadIdx.x; a < top.channels; a += blockDim.x) {
            const int column = g.trees[t].left + a;
            double sum = 0.0;
            for (int y = 0; y < s.classes; y++) {
                const size_t at = (size_t)y * s.columns + column;
                double pair = seeds[y] * share(s.weights[at], tops[column], tops[s.columns + column], log_root[y]);
                counts[g.class_counts + at] += (float)pair;
                sum += pair;
            }
            mine[top.flow + a] = sum;
        }
    }
    __syncthreads();
}

extern "C" __global__ void __launch_bounds__(256) guard(const __grid_constant__ Guard g) {
    const int blocks = gridDim.x;
    int some = 0;
    for (int b = blockIdx.x + threadIdx.x * blocks; b < g.root.samples; b += 256 * blocks) some |= g.root.doubtful[b];
    some = __syncthreads_or(some);
    if (threadIdx.x == 0) g.guarded[blockIdx.x] = some;
    if (!some) return;
    double* mine = g.scratch + blockIdx.x * g.stride;
    float* counts = g.counts + blockIdx.x * g.count_stride;
    for (u64 i = threadIdx.x; i < g.count_stride; i += 256) counts[i] = 0.0f;
    __syncthreads();
    for (int b = blockIdx.x; b < g.root.samples; b += blocks) {
        if (!g.root.doubtful[b]) continue;
        for (int t = 0; t < g.root.trees; t++) guard_up(g, g.trees[t], mine, b);
        guard_root(g, mine, counts, b);
        for (int t = 0; t < g.root.trees; t++) guard_down(g, g.trees[t], mine, counts, b);
        __syncthreads();
    }
}

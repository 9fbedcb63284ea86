// Leaves that learn: flows φ·dφ, their sums over samples, and the rule (`leaf.rs`, `optimizer.rs`).

struct Learn {
    Leaves leaves;        // dφ of its layer holds flows after `leaf_flow`
    float* tables;
    float* logits;        // free parameters of discrete coordinates, at the offsets of the tables
    float *first, *second; // the rule's memory, at the same offsets
    double* sums;         // for each position: normal coordinates (Σf, Σfz, Σfz², M each), discrete ones Σf[x = v], (V, M)
    const int* position_sums; // (positions)
    const int* sum_offset;    // (coordinates): within a position
    const int* member_first;  // (coordinates + 1): positions of its family
    const int* members;
    float floor;          // least log σ
    int coordinates;
};

extern "C" __global__ void leaf_flow(const __grid_constant__ Learn s) {
    const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    const Layer& layer = s.leaves.layer;
    if (i < (size_t)layer.nodes * s.leaves.rows * layer.wide) layer.dphi[i] *= layer.phi[i];
}

// A block a position; a thread a component.
extern "C" __global__ void leaf_sums(const __grid_constant__ Learn s) {
    const Leaves& leaves = s.leaves;
    const int i = blockIdx.x, m = leaves.layer.real, start = leaves.first[i];
    for (int d = threadIdx.x; d < m; d += blockDim.x) {
        const float* flows = leaves.layer.dphi + (size_t)i * leaves.rows * leaves.layer.wide + d;
        for (int k = 0; k < leaves.first[i + 1] - start; k++) {
            const int coordinate = leaves.family[i] + k, values = leaves.values[coordinate];
            double* sums = s.sums + s.position_sums[i] + s.sum_offset[coordinate];
            const float* table = s.tables + leaves.offset[coordinate];
            double zeroth = 0.0, once = 0.0, twice = 0.0;
            for (int v = 0; v < values; v++) sums[v * m + d] = 0.0;
            for (int b = 0; b < leaves.samples; b++) {
                const float x = observed(leaves, start + k, b);
                if (isnan(x)) continue;
                const float f = flows[(size_t)b * leaves.layer.wide];
                if (values > 0) {
                    sums[(int)x * m + d] += f;
                    continue;
                }
                const float z = (x - table[4 * d]) * table[4 * d + 1];
                zeroth += f;
                once += f * z;
                twice += f * z * z;
            }
            if (values == 0) sums[d] = zeroth, sums[m + d] = once, sums[2 * m + d] = twice;
        }
    }
}

__device__ double family_sum(const Learn& s, int coordinate, int at) {
    double sum = 0.0;
    for (int k = s.member_first[coordinate]; k < s.member_first[coordinate + 1]; k++)
        sum += s.sums[s.position_sums[s.members[k]] + s.sum_offset[coordinate] + at];
    return sum;
}

struct LearnStep {
    Learn learn;
    Update update;
};

// A block a coordinate; a thread a component.
extern "C" __global__ void leaf_update(const __grid_constant__ LearnStep step) {
    const Learn& s = step.learn;
    const Update& u = step.update;
    const Numbers& n = u.numbers[u.clock->slot];
    const int coordinate = blockIdx.x, m = s.leaves.layer.real, values = s.leaves.values[coordinate], start = s.leaves.offset[coordinate];
    const double least = 1e-8, rate = n.leaf_rate;
    for (int d = threadIdx.x; d < m; d += blockDim.x) {
        if (values == 0) {
            float *mean = s.tables + start + 4 * d, *log_sigma = mean + 3;
            float *first = s.first + start + d, *second = s.second + start + d;
            const double zeroth = family_sum(s, coordinate, d), once = family_sum(s, coordinate, m + d), twice = family_sum(s, coordinate, 2 * m + d);
            if (u.rule == 2) {
                const double part = fmax(zeroth, 0.0), by = rate * part / (part + least), z = once / (part + least);
                const double variance = (1.0 - by) + by * (twice / (part + least)) - by * z * by * z;
                *mean += (float)(by * z * exp((double)*log_sigma));
                *log_sigma += (float)(0.5 * log(fmax(variance, least)));
            } else {
                const float d_mean = (float)(once * exp(-(double)*log_sigma)), d_sigma = (float)(twice - zeroth);
                *mean -= change(u, n, n.leaf_rate, d_mean, first, second);
                *log_sigma -= change(u, n, n.leaf_rate, d_sigma, first + m, second + m);
            }
            *log_sigma = fminf(fmaxf(*log_sigma, s.floor), 80.0f);
            mean[1] = (float)exp(-(double)*log_sigma);
            mean[2] = (float)(-(double)*log_sigma - HALF_LOG_TAU);
            continue;
        }
        float *logits = s.logits + start + d, *first = s.first + start + d, *second = s.second + start + d;
        double total = 0.0, top = NOTHING, norm = 0.0;
        for (int v = 0; v < values; v++) {
            total += family_sum(s, coordinate, v * m + d);
            top = fmax(top, (double)logits[v * m]);
        }
        for (int v = 0; v < values; v++) norm += exp(logits[v * m] - top);
        const double part = fmax(total, 0.0), by = rate * part / (part + least);
        for (int v = 0; v < values; v++) {
            const double sum = family_sum(s, coordinate, v * m + d), old = exp(logits[v * m] - top) / norm;
            if (u.rule == 2) logits[v * m] = (float)log((1.0 - by) * old + by * fmax(sum, 0.0) / (part + least) + (double)1e-6f);
            else logits[v * m] -= change(u, n, n.leaf_rate, (float)(sum - old * total), first + v * m, second + v * m);
        }
        top = NOTHING, norm = 0.0;
        for (int v = 0; v < values; v++) top = fmax(top, (double)logits[v * m]);
        for (int v = 0; v < values; v++) norm += exp(logits[v * m] - top);
        for (int v = 0; v < values; v++) s.tables[start + v * m + d] = (float)(logits[v * m] - top - log(norm));
    }
}

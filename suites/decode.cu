// Attention of one position a head to its cache of keys and values, of HEAD bfloat16 each: a head's keys are dealt out to
// `splits` blocks, and what these found is merged (Flash-Decoding; Dao and others, 2023). With one split a head is one
// block, and a GPU with more multiprocessors than heads is mostly idle.

#include "softmax.cuh"

#define HEAD 128
#define NUMBERS 8               // of a key in a lane: one load of 16 bytes
#define LANES (HEAD / NUMBERS)  // that share a key
#define GROUPS (HEAD / LANES)   // of lanes in a block, which has HEAD threads: each takes keys of its own
#define AHEAD 4                 // keys of a group whose loads are in flight together

__device__ __forceinline__ void widen(const uint4& raw, float (&x)[NUMBERS]) {
    const unsigned words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
    for (int w = 0; w < 4; ++w) {
        x[2 * w] = __uint_as_float(words[w] << 16);
        x[2 * w + 1] = __uint_as_float(words[w] & 0xffff0000u);
    }
}

// Block head × splits + split: of its part of the keys, the weighted sum of values in parts[block][HEAD], not divided yet,
// and the greatest score and the sum of weights in totals[block].
extern "C" __global__ void attend(
    const uint4* __restrict__ q, const uint4* __restrict__ k, const uint4* __restrict__ v, float* __restrict__ parts,
    float* __restrict__ totals, long long context, int splits) {
    __shared__ Partial of_group[GROUPS];
    __shared__ float sums[GROUPS][HEAD];
    const int lane = threadIdx.x % LANES, group = threadIdx.x / LANES;
    const long long head = blockIdx.x / splits, split = blockIdx.x % splits;
    const long long first = context * split / splits, end = context * (split + 1) / splits;
    const uint4 *keys = k + head * context * LANES + lane, *values = v + head * context * LANES + lane;

    float query[NUMBERS], sum[NUMBERS] = {};
    widen(q[head * LANES + lane], query);
    Partial row = nothing();
    for (long long at = first; at < end; at += GROUPS * AHEAD) {
        uint4 raw_keys[AHEAD] = {}, raw_values[AHEAD] = {};
#pragma unroll
        for (int u = 0; u < AHEAD; ++u) {
            const long long key = at + u * GROUPS + group;
            if (key < end) raw_keys[u] = keys[key * LANES], raw_values[u] = values[key * LANES];
        }
        float score[AHEAD];
        float most = LEAST;
#pragma unroll
        for (int u = 0; u < AHEAD; ++u) {
            float x[NUMBERS];
            widen(raw_keys[u], x);
            float product = 0;
#pragma unroll
            for (int i = 0; i < NUMBERS; ++i) product += query[i] * x[i];
#pragma unroll
            for (int far = LANES / 2; far > 0; far /= 2) product += __shfl_xor_sync(ALL_LANES, product, far);
            score[u] = product * rsqrtf(HEAD);
            if (at + u * GROUPS + group < end) most = fmaxf(most, score[u]);
        }
        const float factor = raise_to(row, most);
#pragma unroll
        for (int i = 0; i < NUMBERS; ++i) sum[i] *= factor;
#pragma unroll
        for (int u = 0; u < AHEAD; ++u) {
            const float weight = at + u * GROUPS + group < end ? __expf(score[u] - row.most) : 0;
            float x[NUMBERS];
            widen(raw_values[u], x);
            row.sum += weight;
#pragma unroll
            for (int i = 0; i < NUMBERS; ++i) sum[i] += weight * x[i];
        }
    }
#pragma unroll
    for (int i = 0; i < NUMBERS; ++i) sums[group][lane * NUMBERS + i] = sum[i];
    if (lane == 0) of_group[group] = row;
    __syncthreads();

    Partial whole = nothing();
    float number = 0;
    for (int g = 0; g < GROUPS; ++g) {
        const float factor = raise_to(whole, of_group[g].most), share = __expf(of_group[g].most - whole.most);
        number = number * factor + sums[g][threadIdx.x] * share;
        whole.sum += of_group[g].sum * share;
    }
    parts[(long long)blockIdx.x * HEAD + threadIdx.x] = number;
    if (threadIdx.x == 0) totals[2 * blockIdx.x] = whole.most, totals[2 * blockIdx.x + 1] = whole.sum;
}

// out[head] from the parts of its splits; a block a head, of HEAD threads.
extern "C" __global__ void merge_splits(
    const float* __restrict__ parts, const float* __restrict__ totals, float* __restrict__ out, int splits) {
    Partial whole = nothing();
    float number = 0;
    for (int split = 0; split < splits; ++split) {
        const long long part = (long long)blockIdx.x * splits + split;
        const float factor = raise_to(whole, totals[2 * part]), share = __expf(totals[2 * part] - whole.most);
        number = number * factor + parts[part * HEAD + threadIdx.x] * share;
        whole.sum += totals[2 * part + 1] * share;
    }
    out[(long long)blockIdx.x * HEAD + threadIdx.x] = number / whole.sum;
}

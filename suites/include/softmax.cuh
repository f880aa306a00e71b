// A softmax whose maximum and sum are carried along while elements pass by (Milakov and Gimelshein, arXiv:1805.02867), tile
// after tile, and merged over the lanes of a warp and the warps of a block. Blocks are whole warps.
//
// Attention carries them over tiles of scores in the same way: `raise_to` the greatest score of the tile, multiply the
// output so far by what it returns, and add the tile's exponentials to `sum`.

#ifndef SOFTMAX_CUH
#define SOFTMAX_CUH

#define ALL_LANES 0xffffffffu
// The least finite float. A maximum starts here and not at -infinity, which less itself is NaN.
#define LEAST (-3.402823466e38f)

// Of some elements of a row: their greatest, and the sum of exp(x - most).
struct Partial {
    float most, sum;
};

__device__ __forceinline__ Partial nothing() { return {LEAST, 0}; }

// The maximum becomes `most` at least. What was added up under the old one is to be multiplied by what this returns; the
// sum already is.
__device__ __forceinline__ float raise_to(Partial& row, float most) {
    const float higher = fmaxf(row.most, most);
    const float factor = __expf(row.most - higher);
    row.most = higher;
    row.sum *= factor;
    return factor;
}

// Further elements of the row: one exponential each, and one for them all where the maximum may have risen.
template <int N>
__device__ __forceinline__ void take_in(Partial& row, const float (&x)[N]) {
    float most = x[0];
#pragma unroll
    for (int i = 1; i < N; ++i) most = fmaxf(most, x[i]);
    raise_to(row, most);
#pragma unroll
    for (int i = 0; i < N; ++i) row.sum += __expf(x[i] - row.most);
}

__device__ __forceinline__ Partial merged(Partial a, const Partial& b) {
    raise_to(a, b.most);
    a.sum += b.sum * __expf(b.most - a.most);
    return a;
}

__device__ __forceinline__ float of_lane_across(float mine, int far) { return __shfl_xor_sync(ALL_LANES, mine, far); }

__device__ __forceinline__ Partial of_lane_across(const Partial& mine, int far) {
    return {of_lane_across(mine.most, far), of_lane_across(mine.sum, far)};
}

template <class T, class Both>
__device__ __forceinline__ T over_warp(T mine, Both both) {
#pragma unroll
    for (int far = 16; far > 0; far /= 2) mine = both(mine, of_lane_across(mine, far));
    return mine;
}

// Every thread of the block gets it. `of_warps` are 32 places in shared memory that nothing else uses.
template <class T, class Both>
__device__ __forceinline__ T over_block(T mine, T none, T* of_warps, Both both) {
    mine = over_warp(mine, both);
    if (threadIdx.x % 32 == 0) of_warps[threadIdx.x / 32] = mine;
    __syncthreads();
    return over_warp(threadIdx.x % 32 < blockDim.x / 32 ? of_warps[threadIdx.x % 32] : none, both);
}

__device__ __forceinline__ float greatest_of_block(float mine, float* of_warps) {
    return over_block(mine, LEAST, of_warps, [](float a, float b) { return fmaxf(a, b); });
}

__device__ __forceinline__ float sum_of_block(float mine, float* of_warps) {
    return over_block(mine, 0.0f, of_warps, [](float a, float b) { return a + b; });
}

__device__ __forceinline__ Partial partial_of_block(const Partial& mine, Partial* of_warps) {
    return over_block(mine, nothing(), of_warps, [](const Partial& a, const Partial& b) { return merged(a, b); });
}

#endif

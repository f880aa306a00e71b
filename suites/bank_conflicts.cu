// Banks of shared memory: a warp's access takes as many turns as the most words that one bank holds of it.

#include "chains.cuh"

#ifndef PITCH
#define PITCH 33
#endif
#ifndef TURNED
#define TURNED 1
#endif
#define WORDS 2048
#define UNROLLED 16
#define TILE 32

// Each warp reads words `stride` apart, from word 0 on and then a whole row of banks further each time, WORDS / 32 times
// round and round: the same banks at every step. out[thread] is the sum of what it read, modulo 2^32, `reads` times.
extern "C" __global__ void strided_reads(
    const unsigned* __restrict__ x, unsigned* __restrict__ out, long long* __restrict__ clocks, int stride, int reads) {
    __shared__ unsigned held[WORDS + UNROLLED * 32];
    for (int i = threadIdx.x; i < WORDS + UNROLLED * 32; i += blockDim.x) held[i] = x[i % WORDS];
    unsigned sum = 0;
    timed_by_block(clocks, [&] {
        int at = threadIdx.x % 32 * stride % WORDS;
#pragma unroll 1
        for (int done = 0; done < reads; done += UNROLLED) {
            unsigned v[UNROLLED];
#pragma unroll
            for (int u = 0; u < UNROLLED; ++u) v[u] = held[at + 32 * u];
#pragma unroll
            for (int u = 0; u < UNROLLED; ++u) sum += v[u];
            at = (at + 32 * UNROLLED) % WORDS;
        }
    });
    out[(long long)blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// y = x transposed (TURNED 1) or x itself (0), both n × n, through a tile of 32 × 32 in shared memory whose rows are PITCH
// words apart. A block of 256 threads: a warp writes rows of the tile, and reads columns of it or rows again.
extern "C" __global__ void through_tile(const float* __restrict__ x, float* __restrict__ y, long long n) {
    __shared__ float tile[TILE * PITCH];
    const long long across = (n + TILE - 1) / TILE, left = blockIdx.x % across * TILE, top = blockIdx.x / across * TILE;
    const int column = threadIdx.x % TILE, first = threadIdx.x / TILE;
#pragma unroll
    for (int row = first; row < TILE; row += 8)
        if (top + row < n && left + column < n) tile[row * PITCH + column] = x[(top + row) * n + left + column];
    __syncthreads();
    const long long to = TURNED ? left : top, from = TURNED ? top : left;
#pragma unroll
    for (int row = first; row < TILE; row += 8)
        if (to + row < n && from + column < n)
            y[(to + row) * n + from + column] = TURNED ? tile[column * PITCH + row] : tile[row * PITCH + column];
}

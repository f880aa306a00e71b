// Occupancy against instruction-level parallelism: warps that take turns, or independent work within each thread.

#include "chains.cuh"

#ifndef ILP
#define ILP 4
#endif

// ILP chains of fp32 multiply-adds: out[thread] = ILP × links + 0 + 1 + …, for n threads. `one` is 1. So few registers that
// two blocks of 1024 threads are on a multiprocessor at the same time. places[3 block]: its multiprocessor, and the cycles of
// that one's clock when the block began and when it had ended.
extern "C" __global__ void __launch_bounds__(1024, 2) independent_chains(
    float* __restrict__ out, long long* __restrict__ places, float one, int links, long long n) {
    const long long begun = cycles_now();
    const float sum = sum_of_chains<ILP>(one, links, [&](float x) { return fmaf(one, x, one); });
    __syncthreads();
    if (threadIdx.x == 0) {
        long long* place = places + 3 * (long long)blockIdx.x;
        place[0] = multiprocessor(), place[1] = begun, place[2] = cycles_now();
    }
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = sum;
}

// y = x, n accesses of 16 bytes, by as many threads as there are: each has ILP loads in flight, then stores them.
extern "C" __global__ void copy_with(const float4* __restrict__ x, float4* __restrict__ y, long long n) {
    const long long threads = (long long)gridDim.x * blockDim.x, tile = threads * ILP;
    const long long me = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    long long first = 0;
#pragma unroll 1
    for (; first + tile <= n; first += tile) {
        float4 v[ILP];
#pragma unroll
        for (int u = 0; u < ILP; ++u) v[u] = __ldcs(x + first + u * threads + me);
#pragma unroll
        for (int u = 0; u < ILP; ++u) __stcs(y + first + u * threads + me, v[u]);
    }
    for (long long i = first + me; i < n; i += threads) y[i] = x[i];
}

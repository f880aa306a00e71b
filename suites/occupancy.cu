// Occupancy against instruction-level parallelism: warps that take turns, or independent work within each thread.

#include "chains.cuh"

#ifndef ILP
#define ILP 4
#endif

// ILP chains of fp32 multiply-adds: out[thread] = ILP × links + 0 + 1 + …, for n threads. `one` is 1.
extern "C" __global__ void independent_chains(
    float* __restrict__ out, long long* __restrict__ clocks, float one, int links, long long n) {
    float sum = 0;
    timed_by_block(clocks, [&] { sum = sum_of_chains<ILP>(one, links, [&](float x) { return fmaf(one, x, one); }); });
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

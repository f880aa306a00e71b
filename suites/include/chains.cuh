// Chains of dependent operations in registers, and the cycles a block takes for them.

#pragma once

#include "machine.cuh"

// COUNT chains of `links` links each (a multiple of LINKS_UNROLLED), which start at 0, `one`, 2 `one`, …: apart, or they
// would be one chain to the compiler. With one = 1 and a link that adds 1, the sum is COUNT × links + 0 + 1 + …
#define LINKS_UNROLLED 16

template <int COUNT, class Number, class Link>
__device__ __forceinline__ Number sum_of_chains(Number one, int links, Link link) {
    Number x[COUNT];
#pragma unroll
    for (int c = 0; c < COUNT; ++c) x[c] = c * one;
#pragma unroll 1
    for (int done = 0; done < links; done += LINKS_UNROLLED) {
#pragma unroll
        for (int u = 0; u < LINKS_UNROLLED; ++u) {
#pragma unroll
            for (int c = 0; c < COUNT; ++c) x[c] = link(x[c]);
        }
    }
    Number sum = x[0];
#pragma unroll
    for (int c = 1; c < COUNT; ++c) sum += x[c];
    return sum;
}

// What all threads of the block do in `body`, timed by thread 0 from the last one's start to the last one's end:
// clocks[2 b] cycles and clocks[2 b + 1] ns of block b.
template <class Body>
__device__ __forceinline__ void timed_by_block(long long* clocks, Body body) {
    __syncthreads();
    const long long ns = nanoseconds_now(), cycles = cycles_now();
    body();
    __syncthreads();
    if (threadIdx.x == 0) {
        clocks[2 * blockIdx.x] = cycles_now() - cycles;
        clocks[2 * blockIdx.x + 1] = nanoseconds_now() - ns;
    }
}

// Clusters of CLUSTER blocks that read each other's shared memory. Before compute capability 9.0 there is nothing in the
// kernels, and the suite does not launch them.

#include "chains.cuh"
#include "cluster.cuh"

#ifndef CLUSTER
#define CLUSTER 2
#endif
#define WORDS 4096

#ifndef HOME
#define HOME 0
#endif

// Every block holds a ring of WORDS places, each with the address of another. Thread 0 of each block chases through the
// ring of the next block of its cluster, of the first if it is the last; with HOME 1 through its own. out[block] is the
// place it gets to in `steps` steps from its number, clocks[block] cycles and ns.
extern "C" __global__ void CLUSTER_OF(CLUSTER) chase_ring(
    const int* __restrict__ next, int* __restrict__ out, long long* __restrict__ clocks, int steps) {
#if HAS_CLUSTERS
    __shared__ unsigned ring[WORDS];
    const unsigned rank = cluster_rank(), base = shared_address(ring), home = in_block(base, rank);
    const unsigned there = in_block(base, HOME ? rank : (rank + 1) % CLUSTER);
    for (int i = threadIdx.x; i < WORDS; i += blockDim.x) ring[i] = home + 4 * next[i];
    cluster_wait();
    if (threadIdx.x == 0) {
        unsigned at = there + 4 * (blockIdx.x % WORDS);
        const long long ns = nanoseconds_now(), cycles = cycles_now();
#pragma unroll 16
        for (int i = 0; i < steps; ++i) at = load_there(at);
        clocks[2 * blockIdx.x] = cycles_now() - cycles;
        clocks[2 * blockIdx.x + 1] = nanoseconds_now() - ns;
        out[blockIdx.x] = (int)(at - there) / 4;
    }
    cluster_wait();
#endif
}

// Every thread reads four times 16 bytes of the shared memory of the next block (with HOME 1 of its own), a quarter of it
// apart, `passes` times, each time 16 bytes further on: reads of the same place would be made once. Block r of a cluster
// holds the words x plus r. out[thread] is the sum of what it read, modulo 2^32; clocks[block] cycles and ns of the reading.
extern "C" __global__ void CLUSTER_OF(CLUSTER) copy_ring(
    const unsigned* __restrict__ x, unsigned* __restrict__ out, long long* __restrict__ clocks, int passes) {
#if HAS_CLUSTERS
    __shared__ alignas(16) unsigned held[WORDS];
    const unsigned rank = cluster_rank();
    for (int i = threadIdx.x; i < WORDS; i += blockDim.x) held[i] = x[i] + rank;
    cluster_wait();
    const unsigned there = in_block(shared_address(held), HOME ? rank : (rank + 1) % CLUSTER);
    unsigned sum = 0;
    timed_by_block(clocks, [&] {
#pragma unroll 1
        for (int pass = 0; pass < passes; ++pass) {
#pragma unroll
            for (int u = 0; u < 4; ++u) {
                const uint4 v = load_vector_there(there + 16 * ((threadIdx.x + pass + u * 256) % (WORDS / 4)));
                sum += (v.x + v.y) + (v.z + v.w);
            }
        }
    });
    out[(long long)blockIdx.x * blockDim.x + threadIdx.x] = sum;
    cluster_wait();
#endif
}

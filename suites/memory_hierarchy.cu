// The memory hierarchy: how long one access takes at each level, and how many bytes a second come from there.
//
// A chase follows pointers that lie one to a cache line, in one random cycle through all lines: no load can begin before
// the last one has ended, and no prefetcher knows where it goes. CACHED 1 lets the L1 keep lines, 0 passes it by. The clock
// may be read before the last of the many loads has come.

#include "machine.cuh"

#ifndef CACHED
#define CACHED 1
#endif
#ifndef UNROLL
#define UNROLL 4
#endif
#define LINE 128

__device__ __forceinline__ unsigned long long load(unsigned long long at) {
    return CACHED ? load_through_l1(at) : load_past_l1(at);
}

// Lines `first`, `first` + `step`, … below `lines`, read once by one thread: the sum of the places they point to.
__device__ __forceinline__ unsigned long long touch(
    unsigned long long set, long long first, long long step, long long lines) {
    unsigned long long sum = 0;
    for (long long line = first; line < lines; line += step) sum += (load(set + line * LINE) - set) / LINE;
    return sum;
}

// `set` is the address of `lines` lines, each with the address of the next. First all of it is touched `passes` times: by
// each block for itself where `whole`, else by all together. Then thread 0 of block b goes `steps` steps from places[b].
// out[b] is the place it gets to and the sum of the places its block touched, clocks[b] the cycles and ns of its steps.
extern "C" __global__ void chase(const unsigned long long* __restrict__ next, const long long* __restrict__ places,
    long long* __restrict__ out, long long* __restrict__ clocks, unsigned* __restrict__ arrived, long long lines,
    int passes, int whole, int steps) {
    const unsigned long long set = (unsigned long long)next;
    const long long first = whole ? threadIdx.x : (long long)blockIdx.x * blockDim.x + threadIdx.x;
    const long long step = whole ? blockDim.x : (long long)gridDim.x * blockDim.x;
    unsigned long long sum = 0;
    for (int pass = 0; pass < passes; ++pass) sum += touch(set, first, step, lines);
    if (threadIdx.x == 0) out[2 * blockIdx.x + 1] = 0;
    if (whole) __syncthreads();
    else all_blocks(arrived);  // which empties the L1 too
    if (threadIdx.x == 0) {
        unsigned long long at = set + places[blockIdx.x] * LINE;
        const long long ns = nanoseconds_now(), cycles = cycles_now();
#pragma unroll 16
        for (int i = 0; i < steps; ++i) at = load(at);
        clocks[2 * blockIdx.x] = cycles_now() - cycles;
        clocks[2 * blockIdx.x + 1] = nanoseconds_now() - ns;
        out[2 * blockIdx.x] = (at - set) / LINE;
    }
    __syncthreads();
    atomicAdd((unsigned long long*)out + 2 * blockIdx.x + 1, sum);
}

// The same through 32 KiB of shared memory, by one thread of each block: offsets of bytes, one to LINE bytes.
extern "C" __global__ void chase_shared(const int* __restrict__ next, const long long* __restrict__ places,
    long long* __restrict__ out, long long* __restrict__ clocks, int steps) {
    __shared__ unsigned ring[256 * LINE / 4];
    const unsigned base = shared_address(ring);
    for (int i = threadIdx.x; i < 256; i += blockDim.x) ring[i * LINE / 4] = base + next[i] * LINE;
    __syncthreads();
    if (threadIdx.x != 0) return;
    unsigned at = base + (unsigned)places[blockIdx.x] * LINE;
    const long long ns = nanoseconds_now(), cycles = cycles_now();
#pragma unroll 16
    for (int i = 0; i < steps; ++i) at = load_shared(at);
    clocks[2 * blockIdx.x] = cycles_now() - cycles;
    clocks[2 * blockIdx.x + 1] = nanoseconds_now() - ns;
    out[blockIdx.x] = (at - base) / LINE;
}

// A buffer of `tiles` tiles of UNROLL × blockDim accesses of 16 bytes, read `passes` times: tile after tile in turn, block b
// of `blocks` the turns b, b + blocks, …; turns run on from one pass into the next. A thread has UNROLL loads in flight and no more.
// out[b] is the sum of the block's words, modulo 2^32.
extern "C" __global__ void read_set(
    const uint4* __restrict__ x, unsigned* __restrict__ out, long long tiles, long long passes, long long blocks) {
    const int tile = blockDim.x * UNROLL;
    const long long ahead = blocks % tiles;
    unsigned sum = 0;
    long long here = blockIdx.x % tiles;
#pragma unroll 1
    for (long long turn = blockIdx.x; turn < tiles * passes; turn += blocks) {
        const uint4* at = x + here * tile + threadIdx.x;
        uint4 v[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) v[u] = __ldcg(at + u * blockDim.x);
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) sum += (v[u].x + v[u].y) + (v[u].z + v[u].w);
        here += ahead;
        if (here >= tiles) here -= tiles;
    }
    __shared__ unsigned total;
    if (threadIdx.x == 0) total = 0;
    __syncthreads();
    atomicAdd(&total, sum);
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = total;
}

// Streams: every byte of a buffer read or written once; and the same question asked of the L2 and of shared memory.
//
// VECTOR bytes an access (4, 8, 16); UNROLL independent accesses of a thread in flight before the first is used; HINT 0 for
// ordinary accesses, 1 for streaming ones (evict first), which a buffer far larger than the caches may gain from.

#include "sums.cuh"

#ifndef VECTOR
#define VECTOR 16
#endif
#ifndef UNROLL
#define UNROLL 4
#endif
#ifndef HINT
#define HINT 0
#endif

struct alignas(VECTOR) vec {
    static constexpr int lanes = VECTOR / 4;
    float lane[lanes];
};

// The accesses are spelt out by width so that each is one instruction of VECTOR bytes.
__device__ __forceinline__ vec load(const vec* at) {
    vec v;
#if VECTOR == 16
    const float4 raw = HINT ? __ldcs(reinterpret_cast<const float4*>(at)) : *reinterpret_cast<const float4*>(at);
    v.lane[0] = raw.x, v.lane[1] = raw.y, v.lane[2] = raw.z, v.lane[3] = raw.w;
#elif VECTOR == 8
    const float2 raw = HINT ? __ldcs(reinterpret_cast<const float2*>(at)) : *reinterpret_cast<const float2*>(at);
    v.lane[0] = raw.x, v.lane[1] = raw.y;
#else
    v.lane[0] = HINT ? __ldcs(reinterpret_cast<const float*>(at)) : *reinterpret_cast<const float*>(at);
#endif
    return v;
}

__device__ __forceinline__ void store(vec* at, const vec& v) {
#if VECTOR == 16
    const float4 raw = make_float4(v.lane[0], v.lane[1], v.lane[2], v.lane[3]);
    if (HINT) __stcs(reinterpret_cast<float4*>(at), raw);
    else *reinterpret_cast<float4*>(at) = raw;
#elif VECTOR == 8
    const float2 raw = make_float2(v.lane[0], v.lane[1]);
    if (HINT) __stcs(reinterpret_cast<float2*>(at), raw);
    else *reinterpret_cast<float2*>(at) = raw;
#else
    if (HINT) __stcs(reinterpret_cast<float*>(at), v.lane[0]);
    else *reinterpret_cast<float*>(at) = v.lane[0];
#endif
}

__device__ __forceinline__ float sum(const vec& v) {
    float total = 0;
    for (int i = 0; i < vec::lanes; ++i) total += v.lane[i];
    return total;
}

template <class Map>
__device__ __forceinline__ vec each(Map map) {
    vec v;
#pragma unroll
    for (int i = 0; i < vec::lanes; ++i) v.lane[i] = map(i);
    return v;
}

// Blocks take tiles of UNROLL × blockDim neighbouring accesses, block b the tiles b, b + gridDim, …: `many(i, step)` does
// UNROLL accesses a block apart, `one(i)` a single one of a tile that the buffer's end cuts short.
template <class Many, class One>
__device__ __forceinline__ void walk(long long n, long long tile, long long blocks, Many many, One one) {
    for (long long first = blockIdx.x * tile; first < n; first += blocks * tile) {
        const long long i = first + threadIdx.x;
        if (first + tile <= n) {
            many(i, (long long)blockDim.x);
        } else {
            for (long long at = i; at < n; at += blockDim.x) one(at);
        }
    }
}

template <class Many, class One>
__device__ __forceinline__ void walk(long long n, Many many, One one) {
    walk(n, (long long)blockDim.x * UNROLL, gridDim.x, many, one);
}

// One partial sum a block, so that every element is in exactly one number of the output. `tile` and `blocks`, which the
// launch implies, are arguments for the sake of the CPU's counterpart: it has no blocks, and adds up the same shares.
extern "C" __global__ void stream_read(
    const vec* __restrict__ x, float* __restrict__ out, long long n, long long tile, long long blocks) {
    float total = 0;
    walk(n, tile, blocks,
        [&](long long i, long long step) {
            vec v[UNROLL];
#pragma unroll
            for (int u = 0; u < UNROLL; ++u) v[u] = load(x + i + u * step);
#pragma unroll
            for (int u = 0; u < UNROLL; ++u) total += sum(v[u]);
        },
        [&](long long i) { total += sum(load(x + i)); });
    total = block_sum(total);
    if (threadIdx.x == 0) out[blockIdx.x] = total;
}

extern "C" __global__ void stream_write(vec* __restrict__ y, float value, long long n) {
    const vec v = each([&](int) { return value; });
    walk(n,
        [&](long long i, long long step) {
#pragma unroll
            for (int u = 0; u < UNROLL; ++u) store(y + i + u * step, v);
        },
        [&](long long i) { store(y + i, v); });
}

// y = map(x), element by element.
template <class Map>
__device__ __forceinline__ void mapped(const vec* __restrict__ x, vec* __restrict__ y, long long n, Map map) {
    walk(n,
        [&](long long i, long long step) {
            vec v[UNROLL];
#pragma unroll
            for (int u = 0; u < UNROLL; ++u) v[u] = load(x + i + u * step);
#pragma unroll
            for (int u = 0; u < UNROLL; ++u) store(y + i + u * step, map(v[u]));
        },
        [&](long long i) { store(y + i, map(load(x + i))); });
}

extern "C" __global__ void stream_copy(const vec* __restrict__ x, vec* __restrict__ y, long long n) {
    mapped(x, y, n, [](const vec& v) { return v; });
}

extern "C" __global__ void stream_scale(const vec* __restrict__ x, vec* __restrict__ y, float a, long long n) {
    mapped(x, y, n, [&](const vec& v) { return each([&](int i) { return a * v.lane[i]; }); });
}

extern "C" __global__ void stream_triad(
    const vec* __restrict__ x, const vec* __restrict__ z, vec* __restrict__ y, float a, long long n) {
    const auto map = [&](const vec& v, const vec& w) { return each([&](int i) { return fmaf(a, v.lane[i], w.lane[i]); }); };
    walk(n,
        [&](long long i, long long step) {
            vec v[UNROLL];
            vec w[UNROLL];
#pragma unroll
            for (int u = 0; u < UNROLL; ++u) v[u] = load(x + i + u * step);
#pragma unroll
            for (int u = 0; u < UNROLL; ++u) w[u] = load(z + i + u * step);
#pragma unroll
            for (int u = 0; u < UNROLL; ++u) store(y + i + u * step, map(v[u], w[u]));
        },
        [&](long long i) { store(y + i, map(load(x + i), load(z + i))); });
}

// The blocks read a buffer that fits the L2 `passes` times over, tile after tile in turn; the turns run on from one pass
// into the next, so that no block has more to read than another. .cg: the L1 keeps nothing. One partial sum a block.
extern "C" __global__ void l2_read(const float4* __restrict__ x, float* __restrict__ out, int tiles, int passes) {
    const int tile = blockDim.x * UNROLL, ahead = gridDim.x % tiles;
    float total = 0;
    int here = blockIdx.x % tiles;
    for (long long turn = blockIdx.x; turn < (long long)tiles * passes; turn += gridDim.x) {
        const float4* at = x + (long long)here * tile + threadIdx.x;
        float4 v[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) v[u] = __ldcg(at + u * blockDim.x);
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) total += (v[u].x + v[u].y) + (v[u].z + v[u].w);
        here += ahead;
        if (here >= tiles) here -= tiles;
    }
    total = block_sum(total);
    if (threadIdx.x == 0) out[blockIdx.x] = total;
}

// A block of 1024 threads reads 16 KiB of shared memory `passes` times, each warp 512 neighbouring bytes at a time, without
// a bank conflict; no two passes of a thread read the same place in turn, so that no load can be reused.
extern "C" __global__ void shared_read(const float4* __restrict__ x, float* __restrict__ out, int passes) {
    __shared__ float4 tile[1024];
    tile[threadIdx.x] = x[threadIdx.x];
    __syncthreads();
    float4 total = make_float4(0, 0, 0, 0);
    int at = threadIdx.x;
    for (int pass = 0; pass < passes; ++pass) {
#pragma unroll
        for (int u = 0; u < 8; ++u) {
            const float4 v = tile[at];
            total.x += v.x, total.y += v.y, total.z += v.z, total.w += v.w;
            at = (at + 32) & 1023;
        }
    }
    out[(long long)blockIdx.x * blockDim.x + threadIdx.x] = (total.x + total.y) + (total.z + total.w);
}

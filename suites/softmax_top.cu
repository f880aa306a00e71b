// The five greatest elements of a row, a block a row: of a softmax without ever writing it, while its maximum and sum are
// carried along (Milakov and Gimelshein, arXiv:1805.02867, section 4), or of the row as it is. One read, a few bytes written.
//
// x begins at a multiple of 16 bytes; rows have fewer than 2^31 elements. Where fewer than five elements are above
// -infinity, the rest of a row's places has no element: index -1.

#include "softmax.cuh"

#define TOP 5
#define UNROLL 2

__device__ __forceinline__ float minus_infinity() { return -__uint_as_float(0x7f800000u); }

// The greatest of what a warp has seen, greatest first: the same in all its lanes.
struct Top {
    float value[TOP];
    int at[TOP];

    __device__ __forceinline__ void clear() {
#pragma unroll
        for (int i = 0; i < TOP; ++i) value[i] = minus_infinity(), at[i] = -1;
    }

    __device__ __forceinline__ void insert(float one, int where) {
#pragma unroll
        for (int i = 0; i < TOP; ++i) {
            if (one > value[i]) {
                const float less = value[i];
                const int before = at[i];
                value[i] = one, at[i] = where;
                one = less, where = before;
            }
        }
    }
};

// N elements of each lane, `where(i)` being the place of the i-th in the row. Seldom is one of them among the greatest so
// far: then all lanes insert it.
template <int N, class Where>
__device__ __forceinline__ void take_in(Top& top, const float (&x)[N], Where where) {
    float most = x[0];
#pragma unroll
    for (int i = 1; i < N; ++i) most = fmaxf(most, x[i]);
    if (!__any_sync(ALL_LANES, most > top.value[TOP - 1])) return;
#pragma unroll
    for (int i = 0; i < N; ++i) {
        unsigned lanes = __ballot_sync(ALL_LANES, x[i] > top.value[TOP - 1]);
        while (lanes) {
            const int lane = __ffs(lanes) - 1;
            lanes &= lanes - 1;
            top.insert(__shfl_sync(ALL_LANES, x[i], lane), __shfl_sync(ALL_LANES, where(i), lane));
        }
    }
}

// Of the block's row: each warp's five, then the first warp's five of those. Only the first warp's answer is right. All
// lanes of a warp go the same way, and show -infinity where the row has no element for them.
template <class Also>
__device__ __forceinline__ Top top_of_row(const float* x, int v, Also also) {
    __shared__ float values[32 * TOP];
    __shared__ int places[32 * TOP];
    const long long first = (long long)blockIdx.x * v;
    const int head = (-first & 3) < v ? (int)(-first & 3) : v, vectors = (v - head) / 4, loose = v - 4 * vectors;
    const float4* body = reinterpret_cast<const float4*>(x + first + head);
    const int step = blockDim.x, mine = threadIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const float least = minus_infinity();
    Top top;
    top.clear();
    for (long long done = 0; done < vectors; done += UNROLL * step) {
        float4 raw[UNROLL];
        float some[4 * UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            const long long i = done + u * step + mine;
            raw[u] = i < vectors ? body[i] : make_float4(least, least, least, least);
        }
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) {
            some[4 * u] = raw[u].x, some[4 * u + 1] = raw[u].y, some[4 * u + 2] = raw[u].z, some[4 * u + 3] = raw[u].w;
        }
        also(some);
        take_in(top, some, [&](int i) { return head + 4 * (int)(done + i / 4 * step + mine) + i % 4; });
    }
    const int at = mine < head ? mine : mine + 4 * vectors;
    const float one[1] = {mine < loose ? x[first + at] : least};
    also(one);
    take_in(top, one, [&](int) { return at; });

    if (lane == 0) {
#pragma unroll
        for (int i = 0; i < TOP; ++i) values[warp * TOP + i] = top.value[i], places[warp * TOP + i] = top.at[i];
    }
    __syncthreads();
    if (warp == 0) {
        const int count = blockDim.x / 32 * TOP;
        top.clear();
        for (int i = 0; i < count; i += 32) {
            const bool there = i + lane < count;
            const float some[1] = {there ? values[i + lane] : least};
            const int place = there ? places[i + lane] : -1;
            take_in(top, some, [&](int) { return place; });
        }
    }
    return top;
}

__device__ __forceinline__ void write(float* greatest, long long* places, const Top& top, const Partial& whole) {
#pragma unroll
    for (int i = 0; i < TOP; ++i) {
        greatest[blockIdx.x * (long long)TOP + i] = __expf(top.value[i] - whole.most) / whole.sum;
        places[blockIdx.x * (long long)TOP + i] = top.at[i];
    }
}

extern "C" __global__ void __launch_bounds__(256)
top_of_softmax(const float* __restrict__ x, float* __restrict__ greatest, long long* __restrict__ places, long long rows,
               int v) {
    __shared__ Partial of_warps[32];
    Partial whole = nothing();
    const Top top = top_of_row(x, v, [&](const auto& some) { take_in(whole, some); });
    whole = partial_of_block(whole, of_warps);
    if (threadIdx.x == 0) write(greatest, places, top, whole);
}

extern "C" __global__ void __launch_bounds__(256)
top_plain(const float* __restrict__ x, float* __restrict__ greatest, long long* __restrict__ places, long long rows, int v) {
    const Top top = top_of_row(x, v, [](const auto&) {});
    if (threadIdx.x == 0) {
#pragma unroll
        for (int i = 0; i < TOP; ++i) {
            greatest[blockIdx.x * (long long)TOP + i] = top.value[i];
            places[blockIdx.x * (long long)TOP + i] = top.at[i];
        }
    }
}

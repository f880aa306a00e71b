// Softmax of the rows of a matrix, a block a row: in three passes over the row, in two with a running maximum and sum, and
// in one that keeps the row in shared memory. And the recurrence of maximum and sum by itself.
//
// x and y begin at multiples of 16 bytes. A row need not: of its v elements the first few, up to the next multiple, and
// the last few are loaded one by one. `rows`, which the grid implies, is an argument for the CPU's counterpart.

#include "async.cuh"
#include "softmax.cuh"

#define UNROLL 2

struct Row {
    long long first, vectors;  // the number of its first element in the matrix; its whole aligned groups of four
    int head, loose;           // elements before the first group; those before it and after the last
};

__device__ __forceinline__ Row row_of_block(long long v) {
    Row row;
    row.first = blockIdx.x * v;
    const long long head = -row.first & 3;
    row.head = head < v ? head : v;
    row.vectors = (v - row.head) / 4;
    row.loose = v - 4 * row.vectors;
    return row;
}

// Where in a row its loose element number i is.
__device__ __forceinline__ long long loose_at(const Row& row, int i) { return i < row.head ? i : i + 4 * row.vectors; }

__device__ __forceinline__ void unpack(float* to, const float4& from) {
    to[0] = from.x, to[1] = from.y, to[2] = from.z, to[3] = from.w;
}

// Shows all elements of a row, which lies at `at`, to `take`: each to one thread, several at a time, always the same ones.
template <class Take>
__device__ __forceinline__ void each(const float* at, const Row& row, Take take) {
    const float4* body = reinterpret_cast<const float4*>(at + row.head);
    const int step = blockDim.x;
    long long i = threadIdx.x;
    for (; i + (UNROLL - 1) * step < row.vectors; i += UNROLL * step) {
        float4 raw[UNROLL];
        float x[4 * UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) raw[u] = body[i + u * step];
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) unpack(x + 4 * u, raw[u]);
        take(x);
    }
    for (; i < row.vectors; i += step) {
        float x[4];
        unpack(x, body[i]);
        take(x);
    }
    if (threadIdx.x < row.loose) {
        const float x[1] = {at[loose_at(row, threadIdx.x)]};
        take(x);
    }
}

// y = exp(x - most) / sum
__device__ __forceinline__ void write(const float* at, float* to, const Row& row, const Partial& whole) {
    const float4* from = reinterpret_cast<const float4*>(at + row.head);
    float4* body = reinterpret_cast<float4*>(to + row.head);
    const float share = 1 / whole.sum;
    const auto of = [&](float x) { return __expf(x - whole.most) * share; };
    const auto of_four = [&](const float4& x) { return make_float4(of(x.x), of(x.y), of(x.z), of(x.w)); };
    const int step = blockDim.x;
    long long i = threadIdx.x;
    for (; i + (UNROLL - 1) * step < row.vectors; i += UNROLL * step) {
        float4 raw[UNROLL];
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) raw[u] = from[i + u * step];
#pragma unroll
        for (int u = 0; u < UNROLL; ++u) body[i + u * step] = of_four(raw[u]);
    }
    for (; i < row.vectors; i += step) body[i] = of_four(from[i]);
    if (threadIdx.x < row.loose) {
        const long long loose = loose_at(row, threadIdx.x);
        to[loose] = of(at[loose]);
    }
}

// The greatest of the row, then the sum, then the result: three reads and a write.
extern "C" __global__ void __launch_bounds__(256)
three_pass(const float* __restrict__ x, float* __restrict__ y, long long rows, long long v) {
    __shared__ float greatest[32], sums[32];
    const Row row = row_of_block(v);
    const float* at = x + row.first;
    Partial whole = nothing();
    each(at, row, [&](const auto& some) {
        for (const float one : some) whole.most = fmaxf(whole.most, one);
    });
    whole.most = greatest_of_block(whole.most, greatest);
    each(at, row, [&](const auto& some) {
        for (const float one : some) whole.sum += __expf(one - whole.most);
    });
    whole.sum = sum_of_block(whole.sum, sums);
    write(at, y + row.first, row, whole);
}

// Greatest and sum together, then the result: two reads and a write.
extern "C" __global__ void __launch_bounds__(256)
online(const float* __restrict__ x, float* __restrict__ y, long long rows, long long v) {
    __shared__ Partial of_warps[32];
    const Row row = row_of_block(v);
    const float* at = x + row.first;
    Partial whole = nothing();
    each(at, row, [&](const auto& some) { take_in(whole, some); });
    write(at, y + row.first, row, partial_of_block(whole, of_warps));
}

// The row is copied to shared memory and stays there: one read and a write. A thread reads what it copied itself.
extern "C" __global__ void __launch_bounds__(1024)
cached(const float* __restrict__ x, float* __restrict__ y, long long rows, long long v) {
    DYNAMIC_SHARED(memory);
    __shared__ Partial of_warps[32];
    const Row row = row_of_block(v);
    const float* at = x + row.first;
    float* kept = reinterpret_cast<float*>(memory) + (row.first & 3);  // aligned as the row is
    for (long long i = threadIdx.x; i < row.vectors; i += blockDim.x) {
        copy_async_4(kept + row.head + 4 * i, at + row.head + 4 * i, true);
    }
    if (threadIdx.x < row.loose) {
        const long long loose = loose_at(row, threadIdx.x);
        copy_async(kept + loose, at + loose, true);
    }
    end_group();
    wait_for_groups<0>();
    Partial whole = nothing();
    each(kept, row, [&](const auto& some) { take_in(whole, some); });
    write(kept, y + row.first, row, partial_of_block(whole, of_warps));
}

// A block is a trial: the n elements of a row in some order, cut into tiles, one a thread, tile t from cuts[t] up to
// cuts[t + 1]; then thread 0 merges tiles, pairs[2 i + 1] into pairs[2 i], until one is left, and has that.
template <class T, class Take, class Both>
__device__ __forceinline__ T trial(
    const float* x, const int* order, const int* cuts, const int* pairs, T* of_tiles, T none, int n, int tiles, Take take,
    Both both) {
    x += (long long)blockIdx.x * n;
    order += (long long)blockIdx.x * n;
    cuts += (long long)blockIdx.x * (tiles + 1);
    pairs += (long long)blockIdx.x * (2 * tiles - 2);
    if (threadIdx.x < tiles) {
        T mine = none;
        for (int i = cuts[threadIdx.x]; i < cuts[threadIdx.x + 1]; ++i) take(mine, x[order[i]]);
        of_tiles[threadIdx.x] = mine;
    }
    __syncthreads();
    if (threadIdx.x > 0) return none;
    int last = 0;
    for (int i = 0; i < tiles - 1; ++i) {
        last = pairs[2 * i];
        of_tiles[last] = both(of_tiles[last], of_tiles[pairs[2 * i + 1]]);
    }
    return of_tiles[last];
}

extern "C" __global__ void running(
    const float* __restrict__ x, const int* __restrict__ order, const int* __restrict__ cuts,
    const int* __restrict__ pairs, float* __restrict__ sums, long long trials, int n, int tiles) {
    __shared__ Partial of_tiles[32];
    const Partial whole = trial(
        x, order, cuts, pairs, of_tiles, nothing(), n, tiles,
        [](Partial& mine, float one) {
            const float some[1] = {one};
            take_in(mine, some);
        },
        [](const Partial& a, const Partial& b) { return merged(a, b); });
    if (threadIdx.x == 0) sums[blockIdx.x] = whole.sum;
}

// The same without a maximum: exponentials as they are.
extern "C" __global__ void without_maximum(
    const float* __restrict__ x, const int* __restrict__ order, const int* __restrict__ cuts,
    const int* __restrict__ pairs, float* __restrict__ sums, long long trials, int n, int tiles) {
    __shared__ float of_tiles[32];
    const float whole = trial(
        x, order, cuts, pairs, of_tiles, 0.0f, n, tiles, [](float& mine, float one) { mine += __expf(one); },
        [](float a, float b) { return a + b; });
    if (threadIdx.x == 0) sums[blockIdx.x] = whole;
}

// What a warp's addresses cost: strides, offsets, permutations, walks of a matrix, gathers, tiles that lie askew.
//
// Every access is of one float, a lane each; the pattern is an argument, so that one kernel makes every row of a table.

#include "sums.cuh"

#define UNROLL 8

// A block's threads take neighbouring elements of its tile of UNROLL × blockDim, this one the first, then one a block on.
__device__ __forceinline__ long long mine(int u) {
    return (long long)blockIdx.x * blockDim.x * UNROLL + u * blockDim.x + threadIdx.x;
}

// Every element of a buffer, once, with a stride: one pass takes elements o, o + stride, …, the next pass another o. They
// come in an order in which the same 64 bytes are wanted again only after the whole buffer, when no cache has them any more.
// Here the first element of the block's `tile` accesses; `each` accesses are in a pass, a multiple of `tile`.
__device__ __forceinline__ long long first_of_tile(long long tile, long long each, long long stride) {
    const long long first = blockIdx.x * tile, pass = first / each, groups = stride > 16 ? stride / 16 : 1;
    return (first - pass * each) * stride + pass % groups * 16 + pass / groups;
}

// out[b] is the sum over tile b. A block's threads make neighbouring accesses, UNROLL of them in flight.
extern "C" __global__ void strided_read(
    const float* __restrict__ x, float* __restrict__ out, long long tile, long long each, long long stride) {
    const float* at = x + first_of_tile(tile, each, stride) + threadIdx.x * stride;
    float v[UNROLL];
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) v[u] = at[u * blockDim.x * stride];
    float total = 0;
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) total += v[u];
    total = block_sum(total);
    if (threadIdx.x == 0) out[blockIdx.x] = total;
}

extern "C" __global__ void strided_write(
    float* __restrict__ y, float value, long long tile, long long each, long long stride) {
    float* at = y + first_of_tile(tile, each, stride) + threadIdx.x * stride;
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) at[u * blockDim.x * stride] = value;
}

// y[i] = x[i + offset]. The loads of a thread are in flight together, before the first is stored.
extern "C" __global__ void offset_copy(
    const float* __restrict__ x, float* __restrict__ y, long long n, long long offset) {
    float v[UNROLL];
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
        const long long i = mine(u);
        if (i < n) v[u] = x[i + offset];
    }
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
        const long long i = mine(u);
        if (i < n) y[i] = v[u];
    }
}

// Lane l of a warp reads the element of lane (factor l + shift) modulo 32, and writes its own. n is a multiple of 32.
extern "C" __global__ void permuted_copy(
    const float* __restrict__ x, float* __restrict__ y, long long n, int factor, int shift) {
    const int lane = threadIdx.x % 32, from = (factor * lane + shift) & 31;
    float v[UNROLL];
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
        const long long i = mine(u);
        if (i < n) v[u] = x[i - lane + from];
    }
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
        const long long i = mine(u);
        if (i < n) y[i] = v[u];
    }
}

// A thread walks along `length` elements of a row: its neighbours are a row away. out[segment][row].
extern "C" __global__ void walk_rows(
    const float* __restrict__ x, float* __restrict__ out, int rows, int columns, int length) {
    const int blocks = (rows + blockDim.x - 1) / blockDim.x, segment = blockIdx.x / blocks;
    const int row = blockIdx.x % blocks * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    const float* at = x + (long long)row * columns + segment * length;
    float total = 0;
#pragma unroll 8
    for (int i = 0; i < length; ++i) total += at[i];
    out[(long long)segment * rows + row] = total;
}

// A thread walks down `length` elements of a column: its neighbours are beside it. out[segment][column].
extern "C" __global__ void walk_columns(
    const float* __restrict__ x, float* __restrict__ out, int rows, int columns, int length) {
    const int blocks = (columns + blockDim.x - 1) / blockDim.x, segment = blockIdx.x / blocks;
    const int column = blockIdx.x % blocks * blockDim.x + threadIdx.x;
    if (column >= columns) return;
    const float* at = x + (long long)segment * length * columns + column;
    float total = 0;
#pragma unroll 8
    for (int i = 0; i < length; ++i) total += at[(long long)i * columns];
    out[(long long)segment * columns + column] = total;
}

// y[i] = x[from[i]]
extern "C" __global__ void gather(
    const float* __restrict__ x, const int* __restrict__ from, float* __restrict__ y, long long n) {
    int at[UNROLL];
    float v[UNROLL];
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
        const long long i = mine(u);
        at[u] = i < n ? from[i] : 0;
    }
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) v[u] = x[at[u]];
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
        const long long i = mine(u);
        if (i < n) y[i] = v[u];
    }
}

// The first `width` elements of rows that are `pitch` apart, copied to a dense buffer of n elements. width is a power of two.
extern "C" __global__ void tile_copy(
    const float* __restrict__ x, float* __restrict__ y, long long n, int width, long long pitch) {
    const int column = threadIdx.x & (width - 1);
    const int step = blockDim.x / width;
    const long long row = mine(0) / width;
    float v[UNROLL];
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
        if (mine(u) < n) v[u] = x[(row + u * step) * pitch + column];
    }
#pragma unroll
    for (int u = 0; u < UNROLL; ++u) {
        const long long i = mine(u);
        if (i < n) y[i] = v[u];
    }
}

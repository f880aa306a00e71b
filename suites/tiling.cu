// A ladder of matrix products in float32, C = A B with A of m × k, B of k × n, all stored by rows and of any sizes. Each rung
// changes one thing; the last is in tiling_warp.cu. After the sequence of S. Boehm, "How to Optimize a CUDA Matmul Kernel
// for cuBLAS-like Performance" (2022).
//
// Blocks are numbered along the rows of C. A tile that reaches over an edge is filled up with zeros.

#ifndef TILE
#define TILE 32
#endif

__device__ __forceinline__ int tiles(int n, int tile) { return (n + tile - 1) / tile; }

// Element [row][column] of a matrix, 0 outside it.
__device__ __forceinline__ float element(const float* x, int row, int column, int rows, int columns) {
    return row < rows && column < columns ? x[(long long)row * columns + column] : 0;
}

__device__ __forceinline__ void product(const float* a, const float* b, float* c, int row, int column, int m, int n, int k) {
    if (row >= m || column >= n) return;
    a += (long long)row * k, b += column;
    float sum = 0;
    for (int p = 0; p < k; ++p) sum = fmaf(a[p], b[(long long)p * n], sum);
    c[(long long)row * n + column] = sum;
}

// A thread makes one element, neighbouring threads the ones below each other: every load of A is 32 rows apart.
extern "C" __global__ void naive(
    const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n, int k) {
    const int across = tiles(n, 32), row = blockIdx.x / across * 32, column = blockIdx.x % across * 32;
    product(a, b, c, row + threadIdx.x % 32, column + threadIdx.x / 32, m, n, k);
}

// The same with neighbouring threads beside each other: loads of B are one line, of A one element for the whole warp.
extern "C" __global__ void coalesced(
    const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n, int k) {
    const int across = tiles(n, 32), row = blockIdx.x / across * 32, column = blockIdx.x % across * 32;
    product(a, b, c, row + threadIdx.x / 32, column + threadIdx.x % 32, m, n, k);
}

// Tiles of TILE × TILE pass through shared memory: each element of A and B is loaded once a block, and used TILE times.
extern "C" __global__ void shared_tile(
    const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n, int k) {
    __shared__ float left[TILE][TILE];
    __shared__ float right[TILE][TILE];
    const int across = tiles(n, TILE), down = threadIdx.x / TILE, right_of = threadIdx.x % TILE;
    const int row = blockIdx.x / across * TILE + down, column = blockIdx.x % across * TILE + right_of;
    float sum = 0;
#pragma unroll 1
    for (int p = 0; p < k; p += TILE) {
        left[down][right_of] = element(a, row, p + right_of, m, k);
        right[down][right_of] = element(b, p + down, column, k, n);
        __syncthreads();
#pragma unroll
        for (int q = 0; q < TILE; ++q) sum = fmaf(left[down][q], right[q][right_of], sum);
        __syncthreads();
    }
    if (row < m && column < n) c[(long long)row * n + column] = sum;
}

// 512 threads make a tile of 64 × 64, each eight elements below each other: what is read of B serves eight sums.
extern "C" __global__ void __launch_bounds__(512, 1) registers_1d(
    const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n, int k) {
    __shared__ float left[64][8];
    __shared__ float right[8][64];
    const int across = tiles(n, 64), row = blockIdx.x / across * 64, column = blockIdx.x % across * 64;
    const int x = threadIdx.x % 64, y = threadIdx.x / 64 * 8;
    float sums[8] = {};
#pragma unroll 1
    for (int p = 0; p < k; p += 8) {
        const int i = threadIdx.x;
        left[i / 8][i % 8] = element(a, row + i / 8, p + i % 8, m, k);
        right[i / 64][i % 64] = element(b, p + i / 64, column + i % 64, k, n);
        __syncthreads();
#pragma unroll 4
        for (int q = 0; q < 8; ++q) {
            const float of_b = right[q][x];
#pragma unroll
            for (int r = 0; r < 8; ++r) sums[r] = fmaf(left[y + r][q], of_b, sums[r]);
        }
        __syncthreads();
    }
#pragma unroll
    for (int r = 0; r < 8; ++r) {
        if (row + y + r < m && column + x < n) c[(long long)(row + y + r) * n + column + x] = sums[r];
    }
}

// An 8 × 8 block of sums of one thread, written out.
__device__ __forceinline__ void store_8x8(float* c, const float (&sums)[8][8], int row, int column, int m, int n) {
#pragma unroll
    for (int r = 0; r < 8; ++r) {
#pragma unroll
        for (int s = 0; s < 8; ++s) {
            if (row + r < m && column + s < n) c[(long long)(row + r) * n + column + s] = sums[r][s];
        }
    }
}

// 256 threads make a tile of 128 × 128, each 8 × 8 elements: 16 reads of shared memory serve 64 multiply-adds.
extern "C" __global__ void __launch_bounds__(256) registers_2d(
    const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n, int k) {
    __shared__ float left[128][8];
    __shared__ float right[8][128];
    const int across = tiles(n, 128), row = blockIdx.x / across * 128, column = blockIdx.x % across * 128;
    const int x = threadIdx.x % 16 * 8, y = threadIdx.x / 16 * 8;
    float sums[8][8] = {};
#pragma unroll 1
    for (int p = 0; p < k; p += 8) {
#pragma unroll
        for (int part = 0; part < 4; ++part) {
            const int i = threadIdx.x + part * 256;
            left[i / 8][i % 8] = element(a, row + i / 8, p + i % 8, m, k);
            right[i / 128][i % 128] = element(b, p + i / 128, column + i % 128, k, n);
        }
        __syncthreads();
#pragma unroll
        for (int q = 0; q < 8; ++q) {
            float of_a[8], of_b[8];
#pragma unroll
            for (int r = 0; r < 8; ++r) of_a[r] = left[y + r][q];
#pragma unroll
            for (int s = 0; s < 8; ++s) of_b[s] = right[q][x + s];
#pragma unroll
            for (int r = 0; r < 8; ++r) {
#pragma unroll
                for (int s = 0; s < 8; ++s) sums[r][s] = fmaf(of_a[r], of_b[s], sums[r][s]);
            }
        }
        __syncthreads();
    }
    store_8x8(c, sums, row + y, column + x, m, n);
}

// Four elements of a row from [row][column] on, in one access where they are inside and the row is aligned to 16 bytes.
__device__ __forceinline__ float4 elements(const float* x, int row, int column, int rows, int columns) {
    if (columns % 4 == 0 && row < rows && column < columns) {
        return *reinterpret_cast<const float4*>(x + (long long)row * columns + column);
    }
    return make_float4(
        element(x, row, column, rows, columns), element(x, row, column + 1, rows, columns),
        element(x, row, column + 2, rows, columns), element(x, row, column + 3, rows, columns));
}

// The same with accesses of 16 bytes, from memory and from shared memory; A lies transposed there, so that a thread finds
// its eight elements of a column side by side.
extern "C" __global__ void __launch_bounds__(256) vectorised(
    const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n, int k) {
    __shared__ float4 left[8][128 / 4];
    __shared__ float4 right[8][128 / 4];
    const int across = tiles(n, 128), row = blockIdx.x / across * 128, column = blockIdx.x % across * 128;
    const int x = threadIdx.x % 16 * 8, y = threadIdx.x / 16 * 8;
    float sums[8][8] = {};
#pragma unroll 1
    for (int p = 0; p < k; p += 8) {
        const int down = threadIdx.x / 2, deep = threadIdx.x % 2 * 4;
        const float4 of_row = elements(a, row + down, p + deep, m, k);
        float* to = reinterpret_cast<float*>(left) + deep * 128 + down;
        to[0] = of_row.x, to[128] = of_row.y, to[256] = of_row.z, to[384] = of_row.w;
        right[threadIdx.x / 32][threadIdx.x % 32] =
            elements(b, p + threadIdx.x / 32, column + threadIdx.x % 32 * 4, k, n);
        __syncthreads();
#pragma unroll
        for (int q = 0; q < 8; ++q) {
            const float4 a0 = left[q][y / 4], a1 = left[q][y / 4 + 1], b0 = right[q][x / 4], b1 = right[q][x / 4 + 1];
            const float of_a[8] = {a0.x, a0.y, a0.z, a0.w, a1.x, a1.y, a1.z, a1.w};
            const float of_b[8] = {b0.x, b0.y, b0.z, b0.w, b1.x, b1.y, b1.z, b1.w};
#pragma unroll
            for (int r = 0; r < 8; ++r) {
#pragma unroll
                for (int s = 0; s < 8; ++s) sums[r][s] = fmaf(of_a[r], of_b[s], sums[r][s]);
            }
        }
        __syncthreads();
    }
    store_8x8(c, sums, row + y, column + x, m, n);
}

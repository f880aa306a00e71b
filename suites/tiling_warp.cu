// The last rung of the ladder in tiling.cu: C = A B in float32 by multiply-adds alone, of any sizes m, n, k.
//
// A block of 8 warps makes a tile of 128 × COLUMNS of C, a warp 64 × COLUMNS/4 of it, a lane 8 × COLUMNS/16: two by
// COLUMNS/64 pieces of 4 × 4, so that a warp reads shared memory 16 bytes a lane and without conflicts. Tiles DEPTH deep of
// A and B come by asynchronous copies, STAGES of them in turn: while one is multiplied, the others are on their way.
// A lies transposed in shared memory, its rows padded by 4 so that the transposing copy has no conflicts either.

#include "async.cuh"

#ifndef COLUMNS
#define COLUMNS 128
#endif
#ifndef DEPTH
#define DEPTH 8
#endif
#ifndef STAGES
#define STAGES 3
#endif
#define ROWS 128
#define THREADS 256
#define PITCH (ROWS + 4)
#define STAGE (DEPTH * (PITCH + COLUMNS))  // floats of one pair of tiles
#define PIECES (COLUMNS / 64)              // of 4 columns a lane

// Passed by reference to what is not in a hurry: it lies in memory, and the main loop keeps its registers.
struct Matrices {
    const float* a;
    const float* b;
    int m, n, k;
};

// How a block shares the copying out. Eight neighbouring lanes take 32 bytes of a row of A, a warp four rows, and write them
// transposed; of B a lane takes 16 bytes.
#define ROWS_AT_ONCE (THREADS / 8)
#define VECTORS (COLUMNS / 4)
#define DEEP_AT_ONCE (THREADS / VECTORS)
__device__ __forceinline__ int a_deep() { return threadIdx.x % 8; }
__device__ __forceinline__ int a_row() { return threadIdx.x / 8; }
__device__ __forceinline__ int b_deep() { return threadIdx.x / VECTORS; }
__device__ __forceinline__ int b_column() { return threadIdx.x % VECTORS * 4; }

// Start to copy a pair of tiles that is DEPTH deep, `a` and `b` being this thread's first columns of A and of B. Rows of A
// past its last one are copies of that: what they give lies past the last row of C, and a block at the edge takes no longer.
__device__ __forceinline__ void fetch_whole(
    float* stage, const float* a, const float* b, int first_row, const Matrices& of) {
    float* to = stage + a_deep() * PITCH + a_row();
#pragma unroll
    for (int row = 0; row < ROWS; row += ROWS_AT_ONCE) {
        const float* from = a + (long long)min(first_row + row, of.m - 1) * of.k;
#pragma unroll
        for (int deep = 0; deep < DEPTH; deep += 8) copy_async(to + deep * PITCH + row, from + deep, true);
    }
    to = stage + DEPTH * PITCH + b_deep() * COLUMNS + b_column();
#pragma unroll
    for (int deep = 0; deep < DEPTH; deep += DEEP_AT_ONCE, b += (long long)DEEP_AT_ONCE * of.n) {
        copy_async_4(to + deep * COLUMNS, b, true);
    }
}

// The same where A and B end within the tile's depth, or rows of B do not begin aligned to 16 bytes: what lies outside is zero.
__device__ __noinline__ void fetch_part(float* stage, const Matrices& of, int row0, int column0, int k0) {
    for (int row = a_row(); row < ROWS; row += ROWS_AT_ONCE) {
        for (int deep = a_deep(); deep < DEPTH; deep += 8) {
            const float* from = of.a + (long long)(row0 + row) * of.k + k0 + deep;
            copy_async(stage + deep * PITCH + row, from, row0 + row < of.m && k0 + deep < of.k);
        }
    }
    const bool aligned = of.n % 4 == 0;  // then no four elements are partly outside
    for (int deep = b_deep(); deep < DEPTH; deep += DEEP_AT_ONCE) {
        const float* from = of.b + (long long)(k0 + deep) * of.n + column0 + b_column();
        float* to = stage + DEPTH * PITCH + deep * COLUMNS + b_column();
        if (aligned) {
            copy_async_4(to, from, column0 + b_column() < of.n && k0 + deep < of.k);
        } else {
            for (int j = 0; j < 4; ++j) {
                copy_async(to + j, from + j, column0 + b_column() + j < of.n && k0 + deep < of.k);
            }
        }
    }
}

__device__ __forceinline__ void read4(float* to, const float* from) {
    const float4 v = *reinterpret_cast<const float4*>(from);
    to[0] = v.x, to[1] = v.y, to[2] = v.z, to[3] = v.w;
}

extern "C" __global__ void __launch_bounds__(THREADS, COLUMNS == 128 ? 2 : 1) warp_tile(
    const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n, int k) {
    DYNAMIC_SHARED(memory);
    const Matrices of = {a, b, m, n, k};
    float* stages = reinterpret_cast<float*>(memory);
    const int across = (n + COLUMNS - 1) / COLUMNS;
    const int row0 = (int)blockIdx.x / across * ROWS, column0 = (int)blockIdx.x % across * COLUMNS;
    const bool aligned = n % 4 == 0;  // then no four elements of a row are partly outside
    const float* from_a = a + a_deep();
    const float* from_b = b + (long long)b_deep() * n + min(column0 + b_column(), n - 4);  // columns past the last: as rows
    int k0 = 0;
    const auto fetch = [&](int stage) {
        if (aligned && k0 + DEPTH <= k) {
            fetch_whole(stages + stage * STAGE, from_a, from_b, row0 + a_row(), of);
        } else if (k0 < k) {
            fetch_part(stages + stage * STAGE, of, row0, column0, k0);
        }
        k0 += DEPTH, from_a += DEPTH, from_b += (long long)DEPTH * n;
        end_group();
    };

    // Lane bits 0, 3, 4 say which row, bits 1, 2 which column: lanes one apart read the same of B, two apart the same of A,
    // which shared memory serves at once.
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const int row = warp % 2 * 64 + ((lane & 1) | (lane >> 2 & 6)) * 4;
    const int column = warp / 2 * (COLUMNS / 4) + (lane >> 1 & 3) * 4;

    float sums[8][4 * PIECES] = {};
    for (int stage = 0; stage < STAGES - 1; ++stage) fetch(stage);
    int now = 0, next = STAGES - 1;
    for (int tile = 0; tile < k; tile += DEPTH) {
        wait_for_groups<STAGES - 2>();
        __syncthreads();  // this pair is here, and nobody reads the one before any more: its stage is free
        fetch(next);
        const float* left = stages + now * STAGE + row;
        const float* right = stages + now * STAGE + DEPTH * PITCH + column;
        float x[2][8], y[2][4 * PIECES];
        const auto read = [&](int deep) {
#pragma unroll
            for (int half = 0; half < 2; ++half) read4(x[deep % 2] + 4 * half, left + deep * PITCH + 32 * half);
#pragma unroll
            for (int p = 0; p < PIECES; ++p) read4(y[deep % 2] + 4 * p, right + deep * COLUMNS + 16 * p);
        };
        read(0);
#pragma unroll
        for (int deep = 0; deep < DEPTH; ++deep) {
            if (deep + 1 < DEPTH) read(deep + 1);
#pragma unroll
            for (int i = 0; i < 8; ++i) {
#pragma unroll
                for (int j = 0; j < 4 * PIECES; ++j) sums[i][j] = fmaf(x[deep % 2][i], y[deep % 2][j], sums[i][j]);
            }
        }
        now = now + 1 == STAGES ? 0 : now + 1;
        next = next + 1 == STAGES ? 0 : next + 1;
    }

#pragma unroll
    for (int i = 0; i < 8; ++i) {
        const int y = row0 + row + i % 4 + i / 4 * 32;
        if (y >= m) continue;
#pragma unroll
        for (int p = 0; p < PIECES; ++p) {
            const int x = column0 + column + 16 * p;
            float* to = c + (long long)y * n + x;
            const float* from = sums[i] + 4 * p;
            if (aligned) {
                if (x >= n) continue;
                *reinterpret_cast<float4*>(to) = make_float4(from[0], from[1], from[2], from[3]);
            } else {
#pragma unroll
                for (int j = 0; j < 4; ++j) {
                    if (x + j < n) to[j] = from[j];
                }
            }
        }
    }
}

// The tensor cores' rung: C = A B of any sizes, operands rounded to TF32, sums in float32, by mma.sync.
//
// A block of 8 warps makes a tile of 128 × 128, a warp 64 × 32 of it: four by four products of 16 × 8 each. Tiles 16 deep pass
// through shared memory in three stages, as in tiling_warp.cu; rows are padded so that lanes read different banks.

#include "async.cuh"
#include "tensor.cuh"

#define SIDE 128
#define DEPTH 16
#define STAGES 3
#define THREADS 256
#define PITCH_A (DEPTH + 4)
#define PITCH_B (SIDE + 8)
#define STAGE (SIDE * PITCH_A + DEPTH * PITCH_B)  // floats of one pair of tiles

// Start to copy a `rows` × `columns` tile from [row0][column0] of a matrix, 16 bytes at a time where rows are aligned to
// that; zeros outside the matrix.
template <int rows, int columns, int pitch>
__device__ __forceinline__ void fetch(float* to, const float* x, int row0, int column0, int height, int width) {
#pragma unroll
    for (int part = 0; part < rows * columns / 4 / THREADS; ++part) {
        const int i = threadIdx.x + part * THREADS, row = i / (columns / 4), column = i % (columns / 4) * 4;
        const float* from = x + (long long)(row0 + row) * width + column0 + column;
        if (width % 4 == 0) {
            copy_async_4(to + row * pitch + column, from, row0 + row < height && column0 + column < width);
        } else {
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const bool inside = row0 + row < height && column0 + column + j < width;
                copy_async(to + row * pitch + column + j, from + j, inside);
            }
        }
    }
}

extern "C" __global__ void __launch_bounds__(THREADS, 2) tensor_tile(
    const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int m, int n, int k) {
    DYNAMIC_SHARED(memory);
    float* stages = reinterpret_cast<float*>(memory);
    const int across = (n + SIDE - 1) / SIDE;
    const int row0 = (int)blockIdx.x / across * SIDE, column0 = (int)blockIdx.x % across * SIDE;
    const int warp = threadIdx.x / 32, group = threadIdx.x % 32 / 4, place = threadIdx.x % 4;
    const int row = warp % 2 * 64 + group, column = warp / 2 * 32;
    int k0 = 0;
    const auto fetch_next = [&](int stage) {
        float* to = stages + stage * STAGE;
        if (k0 < k) {
            fetch<SIDE, DEPTH, PITCH_A>(to, a, row0, k0, m, k);
            fetch<DEPTH, SIDE, PITCH_B>(to + SIDE * PITCH_A, b, k0, column0, k, n);
        }
        k0 += DEPTH;
        end_group();
    };

    float sums[4][4][4] = {};
    for (int stage = 0; stage < STAGES - 1; ++stage) fetch_next(stage);
    int now = 0, next = STAGES - 1;
    for (int tile = 0; tile < k; tile += DEPTH) {
        wait_for_groups<STAGES - 2>();
        __syncthreads();  // this pair is here, and nobody reads the one before any more: its stage is free
        fetch_next(next);
        const float* left = stages + now * STAGE;
        const float* right = left + SIDE * PITCH_A;
#pragma unroll
        for (int deep = 0; deep < DEPTH; deep += 8) {
            unsigned x[4][4], y[4][2];
#pragma unroll
            for (int i = 0; i < 4; ++i) {
                const float* at = left + (row + 16 * i) * PITCH_A + deep + place;
                x[i][0] = to_tf32(at[0]), x[i][1] = to_tf32(at[8 * PITCH_A]);
                x[i][2] = to_tf32(at[4]), x[i][3] = to_tf32(at[8 * PITCH_A + 4]);
            }
#pragma unroll
            for (int j = 0; j < 4; ++j) {
                const float* at = right + (deep + place) * PITCH_B + column + 8 * j + group;
                y[j][0] = to_tf32(at[0]), y[j][1] = to_tf32(at[4 * PITCH_B]);
            }
#pragma unroll
            for (int i = 0; i < 4; ++i) {
#pragma unroll
                for (int j = 0; j < 4; ++j) multiply_tf32(sums[i][j], x[i], y[j]);
            }
        }
        now = now + 1 == STAGES ? 0 : now + 1;
        next = next + 1 == STAGES ? 0 : next + 1;
    }

#pragma unroll
    for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const int y = row0 + row + 16 * i + e / 2 * 8, x = column0 + column + 8 * j + 2 * place + e % 2;
                if (y < m && x < n) c[(long long)y * n + x] = sums[i][j][e];
            }
        }
    }
}

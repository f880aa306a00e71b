// FlashAttention's forward pass (Dao, arXiv:2307.08691) of our own: O = softmax(Q Kᵀ / √DIM) V of every head, in one kernel,
// by the tensor cores, and no score or weight ever leaves a register. DIM is 64 or 128, REAL float16 or bfloat16; with CAUSAL
// a query sees the keys up to its own place. Q is [batch · query heads, n, DIM], K and V [batch · key heads, n, DIM].
//
// A block has ROWS queries of one head, 32 for each warp, and keeps them, their output and their running maximum and sum
// while tiles of K and V pass by: K, V, K, V and so on through STAGES places of shared memory, each fetched while the ones
// before it are multiplied.
//
// With SWEEPS 2 the softmax is not online: all tiles of K pass by once for the maximum and the sum, and then K and V. With
// KEEP the scores are stored besides, as for a backward pass that does not compute them again.

#include "attention.cuh"

#ifndef STAGES
#define STAGES 3  // tiles in shared memory
#endif
#ifndef BLOCKS
#define BLOCKS 2  // of a multiprocessor at once, by their registers
#endif
#ifndef SWEEPS
#define SWEEPS 1  // over the keys
#endif
#ifndef KEEP
#define KEEP 0
#endif
#define TILE (KEYS * PITCH)  // bytes of one place

// out, and the logarithm of each query's sum of exponentials in lse[head][n]. `group` query heads share a head of K and V;
// `scale` is log2(e) / √DIM. Blocks: heads of Q × ceil(n / ROWS), of THREADS threads; shared memory: ROWS rows and STAGES
// tiles.
extern "C" __global__ void __launch_bounds__(THREADS, BLOCKS) flash_forward(
    const REAL* __restrict__ q, const REAL* __restrict__ k, const REAL* __restrict__ v, REAL* __restrict__ out,
    float* __restrict__ lse, int n, int group, float scale
#if KEEP
    , REAL* __restrict__ scores, int pitch  // [head][n][pitch], times 1 / √DIM
#endif
) {
    DYNAMIC_SHARED(memory);
    __shared__ int later[2];  // what is of no use while tiles pass by, and would take registers
    const int blocks = (n - 1) / ROWS + 1, warp = threadIdx.x / 32;
    const int nth = blockIdx.x % blocks, block = CAUSAL ? blocks - 1 - nth : nth;  // those with most keys begin first
    const int head = blockIdx.x / blocks;
    const long long size = (long long)n * DIM;
    const int row = block * ROWS + warp * 32, tiles = (keys_of(block * ROWS + ROWS - 1, n) - 1) / KEYS + 1;
    const REAL *keys = k + head / group * size, *values = v + head / group * size;
    const unsigned window = shared_address(memory), queries = window + warp * 32 * PITCH;

    // Step by step a tile is multiplied: K and V in turn, and before them K alone in a sweep of its own.
    const int alone = SWEEPS == 2 ? tiles : 0;
    const auto place_of = [&](int step) { return window + ROWS * PITCH + step % STAGES * TILE; };
    const auto fetch_step = [&](int step) {
        const int after = step - alone, tile = after < 0 ? step : after / 2;
        const REAL* from = after >= 0 && after % 2 ? values : keys;
        if (tile < tiles) fetch<KEYS>(place_of(step), from + (long long)tile * (KEYS * DIM), n - tile * KEYS);
        end_group();
    };
    // This step's tile is here, and nobody reads that of the step before any more: its place is free.
    const auto turn = [&](int step) {
        wait_for_groups<STAGES - 2>();
        __syncthreads();
        fetch_step(step + STAGES - 1);
        return place_of(step);
    };
    fetch<ROWS>(window, q + head * size + (long long)block * (ROWS * DIM), n - block * ROWS);
    for (int step = 0; step < STAGES - 1; ++step) fetch_step(step);
    later[0] = head, later[1] = row - warp * 32;

    wait_for_groups<STAGES - 2>();
    __syncthreads();
    Left left;
    keep_queries(left, queries);
    Queries rows;
    begin(rows);
    float factor[2][2];
    for (int tile = 0; tile < alone; ++tile) {
        Scores s = {};
        multiply_keys(s, left, queries, turn(tile));
        mask(s, row, tile * KEYS, n);
        raise_to(rows, s, scale, factor);
        weigh(s, rows, scale);
    }
    if (SWEEPS == 2) {
        settle(rows, scale);
        store_logarithms(lse + (long long)head * n, rows, row, n, scale);
    }
    Output o = {};
    for (int tile = 0; tile < tiles; ++tile) {
        Scores s = {};
        multiply_keys(s, left, queries, turn(alone + 2 * tile));
#if KEEP
        store_scores(scores + (long long)later[0] * n * pitch, s, row, tile * KEYS, n, pitch, scale * LN_2);
#endif
        mask(s, row, tile * KEYS, n);
        if (SWEEPS == 1) {
            raise_to(rows, s, scale, factor);
            multiply_output(o, factor);
            weigh(s, rows, scale);
        } else {
            Queries settled = rows;
            weigh(s, settled, scale);
        }
        multiply_values(o, s, turn(alone + 2 * tile + 1));
    }

    const int of_head = later[0], of_row = later[1] + warp * 32;
    if (SWEEPS == 1) {
        join(rows);
        store_logarithms(lse + (long long)of_head * n, rows, of_row, n, scale);
    }
    reciprocals(rows, factor);
    store(out + of_head * size, o, factor, reinterpret_cast<char*>(memory) + warp * 32 * PITCH, of_row, n);
}

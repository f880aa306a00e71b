// What comes before FlashAttention, for heads that each have keys of their own. In three kernels, with scores and weights in
// memory as sixteen-bit numbers: without tiles or tensor cores (naive_scores, softmax_rows, naive_values), and with both
// (tiled_scores, softmax_rows, tiled_values), so that only the fusion is missing. And the fused kernel of the first
// FlashAttention (arXiv:2205.14135, algorithm 1), whose outer loop is that of K and V.
//
// Rows of scores are `pitch` numbers apart, n rounded up to eight. `scale` is log2(e) / √DIM in the last, 1 / √DIM elsewhere.

#include "attention.cuh"

__device__ __forceinline__ REAL rounded(float x) { return {(unsigned short)packed<REAL>(x, 0)}; }

__device__ __forceinline__ void widen(const REAL* at, float (&x)[8]) {
    const uint4 raw = *reinterpret_cast<const uint4*>(at);
    const unsigned words[4] = {raw.x, raw.y, raw.z, raw.w};
#pragma unroll
    for (int i = 0; i < 8; ++i) x[i] = widened(REAL{(unsigned short)(words[i / 2] >> i % 2 * 16)});
}

// A thread a score. Blocks: heads × n × ceil(n / threads).
extern "C" __global__ void naive_scores(
    const REAL* __restrict__ q, const REAL* __restrict__ k, REAL* __restrict__ scores, int n, int pitch, float scale) {
    const int parts = (n - 1) / blockDim.x + 1, key = blockIdx.x % parts * blockDim.x + threadIdx.x;
    const long long row = blockIdx.x / parts;
    if (key >= n) return;
    const REAL *left = q + row * DIM, *right = k + (row / n * n + key) * DIM;
    float sum = 0;
    for (int i = 0; i < DIM; i += 8) {
        float x[8], y[8];
        widen(left + i, x);
        widen(right + i, y);
#pragma unroll
        for (int j = 0; j < 8; ++j) sum += x[j] * y[j];
    }
    scores[row * pitch + key] = rounded(sum * scale);
}

// Scores of a row become weights where they are, and zeros behind the last. A block a row, of whole warps.
extern "C" __global__ void softmax_rows(REAL* __restrict__ scores, int n, int pitch) {
    __shared__ Partial of_warps[32];
    REAL* row = scores + (long long)blockIdx.x * pitch;
    const auto load = [&](int at, float(&x)[8]) {
        widen(row + at, x);
#pragma unroll
        for (int i = 0; i < 8; ++i) x[i] = at + i < n ? x[i] : LEAST;
    };
    Partial whole = nothing();
    float x[8];
    for (int at = threadIdx.x * 8; at < n; at += blockDim.x * 8) {
        load(at, x);
        take_in(whole, x);
    }
    whole = partial_of_block(whole, of_warps);
    for (int at = threadIdx.x * 8; at < n; at += blockDim.x * 8) {
        load(at, x);
#pragma unroll
        for (int i = 0; i < 8; ++i) x[i] = __fdividef(__expf(x[i] - whole.most), whole.sum);
        *reinterpret_cast<uint4*>(row + at) = {
            packed<REAL>(x[0], x[1]), packed<REAL>(x[2], x[3]), packed<REAL>(x[4], x[5]), packed<REAL>(x[6], x[7])};
    }
}

// A thread a number of the output, DIM threads a block. Blocks: heads × n.
extern "C" __global__ void naive_values(
    const REAL* __restrict__ weights, const REAL* __restrict__ v, REAL* __restrict__ out, int n, int pitch) {
    const long long row = blockIdx.x;
    const REAL *left = weights + row * pitch, *right = v + row / n * n * DIM + threadIdx.x;
    float sum = 0;
    for (int key = 0; key < n; ++key) sum += widened(left[key]) * widened(right[(long long)key * DIM]);
    out[row * DIM + threadIdx.x] = rounded(sum);
}

// A block ROWS × KEYS scores of a head. Blocks: heads × ceil(n / ROWS) × ceil(n / KEYS); shared memory: ROWS + KEYS rows.
extern "C" __global__ void __launch_bounds__(THREADS, 2) tiled_scores(
    const REAL* __restrict__ q, const REAL* __restrict__ k, REAL* __restrict__ scores, int n, int pitch, float scale) {
    DYNAMIC_SHARED(memory);
    const unsigned window = shared_address(memory);
    const int across = (n - 1) / KEYS + 1, down = (n - 1) / ROWS + 1, warp = threadIdx.x / 32;
    const int key = blockIdx.x % across * KEYS, row = blockIdx.x / across % down * ROWS;
    const long long head = blockIdx.x / across / down;
    fetch<ROWS>(window, q + (head * n + row) * DIM, n - row);
    fetch<KEYS>(window + ROWS * PITCH, k + (head * n + key) * DIM, n - key);
    end_group();
    wait_for_groups<0>();
    __syncthreads();
    Scores s = {};
    Left left;
    keep_queries(left, window + warp * 32 * PITCH);
    multiply_keys(s, left, window + warp * 32 * PITCH, window + ROWS * PITCH);
    store_scores(scores + head * n * pitch, s, row + warp * 32, key, n, pitch, scale);
}

// A block ROWS rows of the output, from tiles of ROWS × KEYS weights and KEYS values in two stages. Blocks: heads × ceil(n /
// ROWS); shared memory: two stages of (2 ROWS + PITCH) KEYS bytes.
extern "C" __global__ void __launch_bounds__(THREADS, 2) tiled_values(
    const REAL* __restrict__ weights, const REAL* __restrict__ v, REAL* __restrict__ out, int n, int pitch) {
    DYNAMIC_SHARED(memory);
    const int down = (n - 1) / ROWS + 1, warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = blockIdx.x % down * ROWS;
    const long long head = blockIdx.x / down;
    const unsigned window = shared_address(memory), of_values = ROWS * KEYS * 2, stage = of_values + KEYS * PITCH;
    const auto fetch_stage = [&](int key, unsigned to) {
        if (key < n) {
            fetch<ROWS, KEYS>(to, weights + (head * n + row) * pitch + key, n - row, pitch, pitch - key);
            fetch<KEYS>(to + of_values, v + (head * n + key) * DIM, n - key);
        }
        end_group();
    };
    Output o = {};
    fetch_stage(0, window);
    for (int key = 0, now = 0; key < n; key += KEYS, now ^= 1) {
        const unsigned here = window + now * stage;
        fetch_stage(key + KEYS, window + (now ^ 1) * stage);
        wait_for_groups<1>();
        __syncthreads();
#pragma unroll
        for (int j = 0; j < KEYS; j += 16) {
            unsigned left[2][4];
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                load_matrices(left[i], here + place(warp * 32 + 16 * i + lane % 16, j / 8 + lane / 16, 2 * KEYS));
            }
            multiply_values(o, left, here + of_values + j * PITCH);
        }
        __syncthreads();  // before the next copies into this stage, and before the output takes its place
    }
    const float as_it_is[2][2] = {{1, 1}, {1, 1}};
    char* rows = reinterpret_cast<char*>(memory) + warp * 32 * PITCH;
    store(out + head * n * DIM, o, as_it_is, rows, row + warp * 32, n);
}

// A block a head. For each tile of K and V all queries pass by, and what they have so far is read and written each time:
// their output, not divided yet, in sums[head][n][DIM], the greatest score and a lane's share of the sum of weights in
// totals[head][n][4], n rounded up to ROWS. Shared memory: a tile of K, one of V, ROWS queries.
extern "C" __global__ void __launch_bounds__(THREADS, 2) flash_outer_keys(
    const REAL* __restrict__ q, const REAL* __restrict__ k, const REAL* __restrict__ v, REAL* __restrict__ out,
    float* __restrict__ sums, float2* __restrict__ totals, int n, float scale) {
    DYNAMIC_SHARED(memory);
    const int warp = threadIdx.x / 32, place_of_pair = threadIdx.x % 4;
    const long long head = blockIdx.x, rows_of_head = (n + ROWS - 1) / ROWS * ROWS;
    const unsigned window = shared_address(memory), keys = window + ROWS * PITCH, values = keys + KEYS * PITCH;
    for (int key = 0; key < n; key += KEYS) {
        __syncthreads();  // all have done with the tiles before
        fetch<KEYS>(keys, k + (head * n + key) * DIM, n - key);
        fetch<KEYS>(values, v + (head * n + key) * DIM, n - key);
        for (int first = 0; first < n; first += ROWS) {
            __syncthreads();  // and with the queries before
            fetch<ROWS>(window, q + (head * n + first) * DIM, n - first);
            end_group();
            Output o = {};
            Queries rows;
            begin(rows);
            const int row = first + warp * 32;
            // Each of a lane's queries: its state in memory, and its place in the registers.
            const auto each_query = [&](auto change) {
                const long long begin = head * rows_of_head + row + query_of(0, 0);
                float* numbers = sums + begin * DIM + place_of_pair * 2;
                float2* of_rows = totals + begin * 4 + place_of_pair;
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    change(of_rows[8 * i * 4], rows.most[i / 2][i % 2], rows.sum[i / 2][i % 2]);
#pragma unroll
                    for (int j = 0; j < DIM / 8; ++j) {
                        float2& pair = *reinterpret_cast<float2*>(numbers + 8 * (i * DIM + j));
                        change(pair, o[i / 2][j][i % 2 * 2], o[i / 2][j][i % 2 * 2 + 1]);
                    }
                }
            };
            wait_for_groups<0>();
            __syncthreads();
            Scores s = {};
            Left left;
            float factor[2][2];
            keep_queries(left, window + warp * 32 * PITCH);
            multiply_keys(s, left, window + warp * 32 * PITCH, keys);
            mask(s, row, key, n);
            if (key > 0) each_query([](const float2& pair, float& x, float& y) { x = pair.x, y = pair.y; });
            raise_to(rows, s, scale, factor);
            multiply_output(o, factor);
            weigh(s, rows, scale);
            multiply_values(o, s, values);
            if (key + KEYS < n) {
                each_query([](float2& pair, float x, float y) { pair = make_float2(x, y); });
                continue;
            }
            join(rows);
            reciprocals(rows, factor);
            store(out + head * n * DIM, o, factor, reinterpret_cast<char*>(memory) + warp * 32 * PITCH, row, n);
        }
    }
}

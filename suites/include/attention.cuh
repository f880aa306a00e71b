// What kernels of attention share: tiles of DIM sixteen-bit numbers a row in shared memory, products of them by the tensor
// cores, and a softmax in registers. Blocks are WARPS warps, and each has 32 of a block's ROWS queries to itself.
//
// Scores of a warp lie as mma.sync adds them up: with g = lane / 4 and t = lane % 4, s[i][j][e] is that of query
// 16 i + g + e / 2 · 8 and key 8 j + 2 t + e % 2, so that a lane has four queries, and four lanes share one. Weights in that
// order, packed in pairs, are the left operand of the next product as they are.

#ifndef ATTENTION_CUH
#define ATTENTION_CUH

#include "async.cuh"
#include "halves.cuh"
#include "machine.cuh"
#include "softmax.cuh"

#ifndef DIM
#define DIM 64
#endif
#ifndef REAL
#define REAL float16
#endif
#ifndef CAUSAL
#define CAUSAL 0
#endif

#define WARPS 4
#define THREADS (32 * WARPS)
#define ROWS (32 * WARPS)  // queries of a block
#ifndef KEYS
#define KEYS 64  // of a tile
#endif
#ifndef KEPT
#define KEPT (DIM == 64)  // whether a warp's queries stay in registers
#endif
#define PITCH (2 * DIM)  // bytes of a row
#define LOG2_E 1.44269504f
#define LN_2 0.693147181f

using Scores = float[2][KEYS / 8][4];
using Output = float[2][DIM / 8][4];

// Of the four queries of a lane: the greatest score so far, and this lane's share of the sum of weights under it.
struct Queries {
    float most[2][2], sum[2][2];
};

// Where 16 bytes of a row of `pitch` bytes lie in shared memory, as an offset: those of the same place in eight rows below
// each other in eight groups of four banks.
__device__ __forceinline__ unsigned place(int row, int chunk, int pitch) {
    return row * pitch + ((chunk ^ row % 8) << 4);
}

// An even number of chunks further on in the row, from one of its first two.
__device__ __forceinline__ unsigned further(unsigned at, int chunks) { return (at ^ chunks % 8 << 4) + chunks / 8 * 128; }

// Start to copy a tile of COUNT rows of WIDTH numbers, the first of which is at x; zeros in place of rows that are not left,
// and of numbers behind the first `columns`. Rows of x are `stride` numbers apart.
template <int COUNT, int WIDTH = DIM>
__device__ __forceinline__ void fetch(unsigned to, const REAL* x, int left, int stride = DIM, int columns = WIDTH) {
    constexpr int chunks = WIDTH / 8, step = THREADS / chunks;  // a multiple of eight rows
    const int row = threadIdx.x / chunks, chunk = threadIdx.x % chunks;
    x += (long long)row * stride + chunk * 8;
    to += place(row, chunk, 2 * WIDTH);
#pragma unroll
    for (int more = 0; more < COUNT; more += step) {
        copy_async_16(to + more * 2 * WIDTH, x + more * stride, row + more < left && chunk * 8 < columns);
    }
}

// A warp's 32 queries as left operands of products, from where they lie in shared memory: 16 numbers of each, from chunk
// `deep` of the row on.
__device__ __forceinline__ void load_queries(unsigned (&left)[2][4], unsigned queries, int deep) {
    queries += place(threadIdx.x % 16, threadIdx.x % 32 / 16, PITCH);
#pragma unroll
    for (int i = 0; i < 2; ++i) load_matrices(left[i], further(queries, deep) + 16 * i * PITCH);
}

// All of their numbers, where registers suffice for them; else nothing, and they are loaded again for each tile.
using Left = unsigned[KEPT ? DIM / 16 : 1][2][4];
__device__ __forceinline__ void keep_queries(Left& left, unsigned queries) {
#pragma unroll
    for (int deep = 0; KEPT && deep < DIM / 8; deep += 2) load_queries(left[deep / 2], queries, deep);
}

// s += the products of a warp's queries, `left` if they are kept, and the keys of a tile.
__device__ __forceinline__ void multiply_keys(Scores& s, Left& left, unsigned queries, unsigned keys) {
    const int lane = threadIdx.x % 32;
    keys += place(lane / 16 * 8 + lane % 8, lane / 8 % 2, PITCH);  // so that a product's two registers follow each other
#pragma unroll
    for (int deep = 0; deep < DIM / 8; deep += 2) {
        auto& here = left[KEPT ? deep / 2 : 0];
        if (!KEPT) load_queries(here, queries, deep);
#pragma unroll
        for (int j = 0; j < KEYS / 8; j += 2) {
            unsigned right[4];
            load_matrices(right, further(keys, deep) + 8 * j * PITCH);
#pragma unroll
            for (int i = 0; i < 2; ++i) {
                multiply<REAL>(s[i][j], here[i], right[0], right[1]);
                multiply<REAL>(s[i][j + 1], here[i], right[2], right[3]);
            }
        }
    }
}

// o += the products of 16 weights of each of a warp's queries and as many values, the first of which is at `values`.
__device__ __forceinline__ void multiply_values(Output& o, const unsigned (&weights)[2][4], unsigned values) {
    const int lane = threadIdx.x % 32;
    values += place(lane % 16, lane / 16, PITCH);
#pragma unroll
    for (int j = 0; j < DIM / 8; j += 2) {
        unsigned right[4];
        load_turned_matrices(right, further(values, j));
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            multiply<REAL>(o[i][j], weights[i], right[0], right[1]);
            multiply<REAL>(o[i][j + 1], weights[i], right[2], right[3]);
        }
    }
}

// The same of all weights of a tile, which are rounded first.
__device__ __forceinline__ void multiply_values(Output& o, const Scores& p, unsigned values) {
#pragma unroll
    for (int j = 0; j < KEYS / 8; j += 2) {
        unsigned weights[2][4];
#pragma unroll
        for (int i = 0; i < 2; ++i) {
            weights[i][0] = packed<REAL>(p[i][j][0], p[i][j][1]);
            weights[i][1] = packed<REAL>(p[i][j][2], p[i][j][3]);
            weights[i][2] = packed<REAL>(p[i][j + 1][0], p[i][j + 1][1]);
            weights[i][3] = packed<REAL>(p[i][j + 1][2], p[i][j + 1][3]);
        }
        multiply_values(o, weights, values + 8 * j * PITCH);
    }
}

// The query of this warp's that s[i][.][2 half] belongs to.
__device__ __forceinline__ int query_of(int i, int half) { return 16 * i + 8 * half + threadIdx.x % 32 / 4; }

// Keys before the end that query `row` of n sees.
__device__ __forceinline__ int keys_of(int row, int n) { return CAUSAL ? min(row + 1, n) : n; }

// Scores of keys that a query does not see become the least there is. The warp's queries begin with `row`, the tile's keys
// with `key`; nothing is done where all are seen.
__device__ __forceinline__ void mask(Scores& s, int row, int key, int n) {
    if (key + KEYS <= keys_of(row, n)) return;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int seen = keys_of(row + query_of(i, half), n) - key - threadIdx.x % 4 * 2;
#pragma unroll
            for (int j = 0; j < KEYS / 8; ++j) {
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                    if (8 * j + e >= seen) s[i][j][2 * half + e] = LEAST;
                }
            }
        }
    }
}

__device__ __forceinline__ void begin(Queries& rows) {
#pragma unroll
    for (int i = 0; i < 4; ++i) rows.most[i / 2][i % 2] = LEAST, rows.sum[i / 2][i % 2] = 0;
}

// The maxima go up to those of further scores, sums under the old ones are multiplied by `factor`, which the output so far
// is to be multiplied by too. `scale` takes a score to an exponent of 2.
__device__ __forceinline__ void raise_to(Queries& rows, const Scores& s, float scale, float (&factor)[2][2]) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            float most = rows.most[i][half];
#pragma unroll
            for (int j = 0; j < KEYS / 8; ++j) most = fmaxf(most, fmaxf(s[i][j][2 * half], s[i][j][2 * half + 1]));
            most = fmaxf(most, of_lane_across(most, 1));
            most = fmaxf(most, of_lane_across(most, 2));
            factor[i][half] = exp2f((rows.most[i][half] - most) * scale);
            rows.most[i][half] = most;
            rows.sum[i][half] *= factor[i][half];
        }
    }
}

// Scores become weights under the maximum, which are added to the sums.
__device__ __forceinline__ void weigh(Scores& s, Queries& rows, float scale) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const float shift = -rows.most[i][half] * scale;
#pragma unroll
            for (int j = 0; j < KEYS / 8; ++j) {
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                    float& x = s[i][j][2 * half + e];
                    x = exp2f(fmaf(x, scale, shift));
                    rows.sum[i][half] += x;
                }
            }
        }
    }
}

__device__ __forceinline__ void multiply_output(Output& o, const float (&factor)[2][2]) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int j = 0; j < DIM / 8; ++j) {
#pragma unroll
            for (int e = 0; e < 4; ++e) o[i][j][e] *= factor[i][e / 2];
        }
    }
}

// The sums of a query's four lanes, for all of them.
__device__ __forceinline__ void join(Queries& rows) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        float& sum = rows.sum[i / 2][i % 2];
        sum += of_lane_across(sum, 1);
        sum += of_lane_across(sum, 2);
    }
}

// All scores have been seen: the maximum goes up by the logarithm of the sum, so that weights under it add up to 1.
__device__ __forceinline__ void settle(Queries& rows, float scale) {
    join(rows);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        rows.most[i / 2][i % 2] += __fdividef(log2f(rows.sum[i / 2][i % 2]), scale);
        rows.sum[i / 2][i % 2] = 1;
    }
}

// What the output of each query is to be multiplied by at last.
__device__ __forceinline__ void reciprocals(const Queries& rows, float (&factor)[2][2]) {
#pragma unroll
    for (int i = 0; i < 4; ++i) factor[i / 2][i % 2] = __fdividef(1, rows.sum[i / 2][i % 2]);
}

// The logarithms of the sums of exp(score / √DIM), for a backward pass, to lse[row] of a head.
__device__ __forceinline__ void store_logarithms(float* lse, const Queries& rows, int row, int n, float scale) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int at = row + query_of(i / 2, i % 2);
        const float power = rows.most[i / 2][i % 2] * scale + log2f(rows.sum[i / 2][i % 2]);
        if (threadIdx.x % 4 == 0 && at < n) lse[at] = power * LN_2;
    }
}

// Scores times a factor to a head's [n][pitch], where the warp's queries begin with `row` and the tile's keys with `key`.
__device__ __forceinline__ void store_scores(
    REAL* scores, const Scores& s, int row, int key, int n, int pitch, float factor) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int at = row + query_of(i / 2, i % 2);
        REAL* to = scores + (long long)at * pitch + key + threadIdx.x % 4 * 2;
#pragma unroll
        for (int j = 0; j < KEYS / 8; ++j) {
            const float* two = &s[i / 2][j][i % 2 * 2];
            if (at < n && key + 8 * j < pitch) {
                *reinterpret_cast<unsigned*>(to + 8 * j) = packed<REAL>(two[0] * factor, two[1] * factor);
            }
        }
    }
}

// o times a factor of each query to out[row ...] of a head, by way of 32 rows of shared memory that only this warp uses, so
// that 16 bytes go at a time.
__device__ __forceinline__ void store(REAL* out, const Output& o, const float (&factor)[2][2], char* rows, int row, int n) {
    const int lane = threadIdx.x % 32;
    __syncwarp();  // all lanes have read what was there
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int j = 0; j < DIM / 8; ++j) {
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const unsigned at = place(query_of(i, half), j, PITCH) + lane % 4 * 4;
                *reinterpret_cast<unsigned*>(rows + at) =
                    packed<REAL>(o[i][j][2 * half] * factor[i][half], o[i][j][2 * half + 1] * factor[i][half]);
            }
        }
    }
    __syncwarp();
    const int below = lane / (PITCH / 16), chunk = lane % (PITCH / 16), step = 32 / (PITCH / 16);
#pragma unroll
    for (int at = below; at < 32; at += step) {
        if (row + at >= n) break;
        const uint4 chunks = *reinterpret_cast<const uint4*>(rows + place(at, chunk, PITCH));
        *reinterpret_cast<uint4*>(out + (long long)(row + at) * DIM + chunk * 8) = chunks;
    }
}

#endif

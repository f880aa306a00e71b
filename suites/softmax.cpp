// The softmax of softmax.cu for a CPU: the same passes over a row, each row on one core, in loops a compiler vectorises.
// The online one takes in a tile at a time, which a core's first cache holds.

#include "exponential.h"

static const long long TILE = 1024;
static const float LEAST = -3.402823466e38f;

static inline float greatest(const float* x, long long n) {
    float most = LEAST;
#pragma omp simd reduction(max : most)
    for (long long i = 0; i < n; ++i) most = x[i] > most ? x[i] : most;
    return most;
}

static inline float sum_of_exponentials(const float* x, long long n, float most) {
    float sum = 0;
#pragma omp simd reduction(+ : sum)
    for (long long i = 0; i < n; ++i) sum += exponential(x[i] - most);
    return sum;
}

static inline void write(const float* x, float* y, long long n, float most, float sum) {
    const float share = 1 / sum;
#pragma omp simd
    for (long long i = 0; i < n; ++i) y[i] = exponential(x[i] - most) * share;
}

struct Partial {
    float most = LEAST, sum = 0;
};

static inline Partial merged(const Partial& a, const Partial& b) {
    Partial both;
    both.most = a.most > b.most ? a.most : b.most;
    both.sum = a.sum * exponential(a.most - both.most) + b.sum * exponential(b.most - both.most);
    return both;
}

extern "C" void three_pass(const float* x, float* y, long long rows, long long v) {
#pragma omp parallel for schedule(static)
    for (long long row = 0; row < rows; ++row) {
        const float* at = x + row * v;
        const float most = greatest(at, v);
        write(at, y + row * v, v, most, sum_of_exponentials(at, v, most));
    }
}

extern "C" void online(const float* x, float* y, long long rows, long long v) {
#pragma omp parallel for schedule(static)
    for (long long row = 0; row < rows; ++row) {
        const float* at = x + row * v;
        Partial whole;
        for (long long first = 0; first < v; first += TILE) {
            const long long n = v - first < TILE ? v - first : TILE;
            Partial tile;
            tile.most = greatest(at + first, n);
            tile.sum = sum_of_exponentials(at + first, n, tile.most);
            whole = merged(whole, tile);
        }
        write(at, y + row * v, v, whole.most, whole.sum);
    }
}

// Of each trial, the places of its row's elements, of its cuts and of its pairs.
struct Trial {
    const float* x;
    const int *order, *cuts, *pairs;
    Trial(const float* x, const int* order, const int* cuts, const int* pairs, long long trial, int n, int tiles)
        : x(x + trial * n), order(order + trial * n), cuts(cuts + trial * (tiles + 1)),
          pairs(pairs + trial * (2 * tiles - 2)) {}
};

extern "C" void running(
    const float* x, const int* order, const int* cuts, const int* pairs, float* sums, long long trials, int n, int tiles) {
#pragma omp parallel for schedule(static)
    for (long long trial = 0; trial < trials; ++trial) {
        const Trial at(x, order, cuts, pairs, trial, n, tiles);
        Partial of_tiles[32];
        for (int tile = 0; tile < tiles; ++tile) {
            for (int i = at.cuts[tile]; i < at.cuts[tile + 1]; ++i) {
                Partial one;
                one.most = at.x[at.order[i]], one.sum = 1;
                of_tiles[tile] = merged(of_tiles[tile], one);
            }
        }
        int last = 0;
        for (int i = 0; i < tiles - 1; ++i) {
            last = at.pairs[2 * i];
            of_tiles[last] = merged(of_tiles[last], of_tiles[at.pairs[2 * i + 1]]);
        }
        sums[trial] = of_tiles[last].sum;
    }
}

extern "C" void without_maximum(
    const float* x, const int* order, const int* cuts, const int* pairs, float* sums, long long trials, int n, int tiles) {
#pragma omp parallel for schedule(static)
    for (long long trial = 0; trial < trials; ++trial) {
        const Trial at(x, order, cuts, pairs, trial, n, tiles);
        float sum = 0;  // the tiles in order: which are merged first hardly matters to a sum
        for (int i = at.cuts[0]; i < at.cuts[tiles]; ++i) sum += exponential(at.x[at.order[i]]);
        sums[trial] = sum;
    }
}

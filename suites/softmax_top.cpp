// The five greatest of softmax_top.cu for a CPU, each row on one core, a tile at a time: seldom is an element of a tile
// among the greatest so far, and only then are its elements looked at one by one.

#include "exponential.h"

static const int TOP = 5;
static const long long TILE = 512;
static const float LEAST = -3.402823466e38f;

struct Top {
    float value[TOP];
    long long at[TOP];
    Top() {
        for (int i = 0; i < TOP; ++i) value[i] = -__builtin_inff(), at[i] = -1;
    }
    void insert(float one, long long where) {
        int place = TOP - 1;
        for (; place > 0 && one > value[place - 1]; --place) value[place] = value[place - 1], at[place] = at[place - 1];
        value[place] = one, at[place] = where;
    }
};

static inline float take_in(Top& top, const float* x, long long first, long long n) {
    float most = LEAST;
#pragma omp simd reduction(max : most)
    for (long long i = 0; i < n; ++i) most = x[i] > most ? x[i] : most;
    if (most > top.value[TOP - 1]) {
        for (long long i = 0; i < n; ++i) {
            if (x[i] > top.value[TOP - 1]) top.insert(x[i], first + i);
        }
    }
    return most;
}

extern "C" void top_of_softmax(const float* x, float* greatest, long long* places, long long rows, int v) {
#pragma omp parallel for schedule(static)
    for (long long row = 0; row < rows; ++row) {
        const float* at = x + row * v;
        Top top;
        float most = LEAST, sum = 0;
        for (long long first = 0; first < v; first += TILE) {
            const long long n = v - first < TILE ? v - first : TILE;
            const float of_tile = take_in(top, at + first, first, n);
            const float higher = of_tile > most ? of_tile : most;
            sum *= exponential(most - higher);
            most = higher;
#pragma omp simd reduction(+ : sum)
            for (long long i = 0; i < n; ++i) sum += exponential(at[first + i] - most);
        }
        for (int i = 0; i < TOP; ++i) {
            greatest[row * TOP + i] = exponential(top.value[i] - most) / sum;
            places[row * TOP + i] = top.at[i];
        }
    }
}

extern "C" void top_plain(const float* x, float* greatest, long long* places, long long rows, int v) {
#pragma omp parallel for schedule(static)
    for (long long row = 0; row < rows; ++row) {
        Top top;
        for (long long first = 0; first < v; first += TILE) {
            take_in(top, x + row * v + first, first, v - first < TILE ? v - first : TILE);
        }
        for (int i = 0; i < TOP; ++i) {
            greatest[row * TOP + i] = top.value[i];
            places[row * TOP + i] = top.at[i];
        }
    }
}

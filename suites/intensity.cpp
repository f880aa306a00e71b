// The chains of intensity.cu for a CPU: vectors of lanes, WIDE of them side by side in registers, on every core.

#include "vector.h"

#define WIDE 8
#define CHAINS 4

typedef float vec __attribute__((vector_size(VECTOR)));
typedef float loose __attribute__((vector_size(VECTOR), aligned(4)));
static const int lanes = VECTOR / sizeof(float);

static inline void take_links(vec (&x)[WIDE], vec a, vec b, int links) {
    for (int done = 0; done < links; ++done) {
#pragma GCC unroll 8
        for (int c = 0; c < WIDE; ++c) x[c] = a * x[c] + b;
    }
}

// `n` is a multiple of CHAINS, as there.
extern "C" void repeated(const float* x, float* y, float a, float b, int links, long long n) {
    const vec factor = a - vec{}, added = b - vec{};
    const long long step = WIDE * lanes, whole = n / step * step;
#pragma omp parallel for schedule(static)
    for (long long first = 0; first < whole; first += step) {
        vec chain[WIDE];
#pragma GCC unroll 8
        for (int c = 0; c < WIDE; ++c) chain[c] = *(const loose*)(x + first + c * lanes);
        take_links(chain, factor, added, links);
#pragma GCC unroll 8
        for (int c = 0; c < WIDE; ++c) *(loose*)(y + first + c * lanes) = chain[c];
    }
    for (long long i = whole; i < n; ++i) {
        y[i] = x[i];
        for (int done = 0; done < links; ++done) y[i] = a * y[i] + b;
    }
}

extern "C" void in_registers(float* y, float a, float b, int links, int rounds, long long n) {
    const vec factor = a - vec{}, added = b - vec{};
    const long long group = 2 * lanes;  // numbers whose CHAINS chains are WIDE vectors
#pragma omp parallel for schedule(static)
    for (long long first = 0; first < n; first += group) {
        vec chain[WIDE];
        for (int c = 0; c < WIDE; ++c) chain[c] = (float)(c / 2) * b - vec{};
        for (int round = 0; round < rounds; ++round) take_links(chain, factor, added, links);
        for (long long i = first; i < first + group && i < n; ++i) {
            const int half = (i - first) / lanes, lane = (i - first) % lanes;
            y[i] = 0;
            for (int c = 0; c < CHAINS; ++c) y[i] += chain[2 * c + half][lane];
        }
    }
}

// The chains of peak.cu for a CPU: vectors of lanes, CHAINS of them side by side in registers, on every core. Formats that
// a CPU has no vector multiply-add for have no counterpart here.

#ifndef TYPE
#define TYPE 0
#endif
#define CHAINS 8
#define LINKS 128

#if TYPE == 0
using number = float;
#define HAS_NUMBER
#elif TYPE == 1
using number = double;
#define HAS_NUMBER
#endif

#ifdef HAS_NUMBER
#include "vector.h"
typedef number vec __attribute__((vector_size(VECTOR)));
static const int lanes = VECTOR / sizeof(number);

extern "C" void fma_chains(float* out, float unit, int rounds, long long n) {
    const vec a = (number)unit - vec{}, b = (number)unit - vec{};
#pragma omp parallel for schedule(static)
    for (long long first = 0; first < n; first += lanes) {
        vec total = {};
        for (int round = 0; round < rounds; ++round) {
            vec x[CHAINS];
#pragma GCC unroll 8
            for (int c = 0; c < CHAINS; ++c) x[c] = (number)(c * unit) - vec{};
            for (int links = 0; links < LINKS; ++links) {
#pragma GCC unroll 8
                for (int c = 0; c < CHAINS; ++c) x[c] = a * x[c] + b;
            }
#pragma GCC unroll 8
            for (int c = 0; c < CHAINS; ++c) total += x[c];
        }
        for (int lane = 0; lane < lanes && first + lane < n; ++lane) out[first + lane] = (float)total[lane];
    }
}
#endif

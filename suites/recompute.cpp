// The chains of recompute.cu for a CPU: the same passes in loops that a compiler vectorises. `n` counts fours of elements
// as there. A store of a CPU first reads the line it writes into, so that a pass that writes moves twice its bytes.

#include "exponential.h"

#ifndef LENGTH
#define LENGTH 3
#endif
#ifndef KEPT
#define KEPT 1
#endif

struct Sigmoid {
    static inline float of(float x) { return 1.0f / (1.0f + exponential(-x)); }
    static inline float slope(float y) { return y * (1.0f - y); }
};

struct Reciprocal {
    static inline float of(float x) { return 1.0f / (1.0f + x); }
    static inline float slope(float y) { return -y * y; }
};

template <class Operation>
static void forward(const float* __restrict__ x, float* __restrict__ out, long long n) {
    const long long elements = 4 * n;
#pragma omp parallel for simd schedule(static)
    for (long long i = 0; i < elements; ++i) {
        float y = x[i];
#pragma GCC unroll 8
        for (int k = 0; k < LENGTH; ++k) {
            y = Operation::of(y);
            if (KEPT) out[k * elements + i] = y;
        }
        if (!KEPT) out[i] = y;
    }
}

template <class Operation>
static void backward(
    const float* __restrict__ from, const float* __restrict__ gradient, float* __restrict__ out, long long n) {
    constexpr int read = !KEPT ? 0 : LENGTH > 1 ? LENGTH - 1 : 1;
    const long long elements = 4 * n;
#pragma omp parallel for simd schedule(static)
    for (long long i = 0; i < elements; ++i) {
        float y = from[i], g = gradient[i];
#pragma GCC unroll 8
        for (int k = 0; k < LENGTH; ++k) {
            y = k < read ? from[k * elements + i] : Operation::of(y);
            g *= Operation::slope(y);
        }
        out[i] = g;
    }
}

extern "C" void sigmoids_forward(const float* x, float* out, long long n) { forward<Sigmoid>(x, out, n); }

extern "C" void sigmoids_backward(const float* from, const float* gradient, float* out, long long n) {
    backward<Sigmoid>(from, gradient, out, n);
}

extern "C" void chain_forward(const float* x, float* out, long long n) { forward<Reciprocal>(x, out, n); }

extern "C" void chain_backward(const float* from, const float* gradient, float* out, long long n) {
    backward<Reciprocal>(from, gradient, out, n);
}

extern "C" void chain_copy(const float* x, float* out, long long n) {
#pragma omp parallel for simd schedule(static)
    for (long long i = 0; i < 4 * n; ++i) out[i] = x[i];
}

// exp of a float for a CPU's counterparts of kernels, without a call, so that loops of it become vector instructions: the
// C library's is a call for each element unless a compiler is told to be careless everywhere.

#ifndef EXPONENTIAL_H
#define EXPONENTIAL_H

// A comparison that might raise a floating-point exception is no vector instruction to GCC; no exception is asked for.
#ifndef __clang__
#pragma GCC optimize("no-trapping-math")
#endif

#include <cstring>

// exp(x) = 2^k exp(r) with k the nearest integer of x / ln 2 and |r| at most ln 2 / 2, where Taylor's polynomial of degree 7
// is exact to float's precision. ln 2 is taken off in two parts, the first of few bits, so that k times it is exact. With
// k = -127 the bits of 2^k are those of 0, with k = 128 those of infinity: 0 below -87.6, infinity above 88.4, without a
// branch. NaN stays NaN.
static inline float exponential(float x) {
    x = x < -88.0f ? -88.0f : x;
    x = x > 88.7f ? 88.7f : x;
    const float shifted = x * 1.44269504f + 12582912.0f;  // 1.5 · 2^23: the integer is in the last bits
    const float k = shifted - 12582912.0f;
    const float r = x - k * 0.693359375f + k * 2.12194440e-4f;
    const float p = 1 + r * (1 + r * (0.5f + r * (1.0f / 6 + r * (1.0f / 24 + r * (1.0f / 120 +
                    r * (1.0f / 720 + r * (1.0f / 5040)))))));
    int bits;
    std::memcpy(&bits, &shifted, sizeof bits);
    bits = (bits - 0x4b400000 + 127) << 23;
    float power;
    std::memcpy(&power, &bits, sizeof power);
    return p * power;
}

#endif

// What arithmetic costs: the same chains with one operation or another in each link.
//
// OPERATION 0 multiply-add, 1 divide, 2 divide fast, 3 square root, 4 square root fast, 5 exponential, 6 exponential fast, 7 int32
// multiply-add, 8 int32 divide. What is divided by, or the root taken of, is 1 and the exponent 0, known only when the
// kernel runs and only once the last link is done: each operation gives 1, which the chain adds up.

#include "chains.cuh"

#ifndef OPERATION
#define OPERATION 0
#endif
#define CHAINS 4

#if OPERATION >= 7
using number = int;
#else
using number = float;
#endif

__device__ __forceinline__ number link(number x, number one, number zero) {
#if OPERATION == 0
    return fmaf(one, x, one);
#elif OPERATION == 1
    return x + one / fmaf(zero, x, one);
#elif OPERATION == 2
    return x + __fdividef(one, fmaf(zero, x, one));
#elif OPERATION == 3
    return x + sqrtf(fmaf(zero, x, one));
#elif OPERATION == 4
    return x + square_root(fmaf(zero, x, one));
#elif OPERATION == 5
    return x + expf(zero * x);
#elif OPERATION == 6
    return x + __expf(zero * x);
#elif OPERATION == 7
    return one * x + one;
#else
    return x + one / (zero * x + one);
#endif
}

// out[thread] = CHAINS × links + 0 + 1 + … for n threads; `one` is 1 and `zero` 0.
extern "C" __global__ void mixed_chains(
    float* __restrict__ out, long long* __restrict__ clocks, int one, int zero, int links, long long n) {
    number sum = 0;
    timed_by_block(clocks, [&] {
        sum = sum_of_chains<CHAINS>((number)one, links, [&](number x) { return link(x, (number)one, (number)zero); });
    });
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = (float)sum;
}

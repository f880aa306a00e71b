// Peaks of the arithmetic units: chains of dependent multiply-adds, enough of them side by side to hide their latency.
//
// TYPE 0 fp32, 1 fp64, 2 fp16x2, 3 bf16x2, 4 int32, 5 dp4a: four uint8 products and their sum. Every link is x = a x + b
// with a = b = 1, known only when the kernel runs: the result counts the links, so that a compiler that had shortened the
// chain would be found out. A sixteen-bit number counts exactly only to 256, a uint8 to 255: after LINKS links its chain is
// added to a float and starts again. Chains start apart, at 0, 1, 2 …, or they would be one chain to the compiler.

#ifndef TYPE
#define TYPE 0
#endif
#define CHAINS 8
#define LINKS 128
#define UNROLLED 32

#if TYPE == 0
using number = float;
__device__ __forceinline__ number link(number a, number x, number b) { return fmaf(a, x, b); }
__device__ __forceinline__ number from(float v) { return v; }
__device__ __forceinline__ float value(number x) { return x; }
#elif TYPE == 1
using number = double;
__device__ __forceinline__ number link(number a, number x, number b) { return fma(a, x, b); }
__device__ __forceinline__ number from(float v) { return v; }
__device__ __forceinline__ float value(number x) { return (float)x; }
#elif TYPE == 2
using number = unsigned;  // two fp16, by PTX: no header is needed
__device__ __forceinline__ number link(number a, number x, number b) {
    number y;
    asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(y) : "r"(a), "r"(x), "r"(b));
    return y;
}
__device__ __forceinline__ number from(float v) {
    number x;
    asm("cvt.rn.f16x2.f32 %0, %1, %1;" : "=r"(x) : "f"(v));
    return x;
}
__device__ __forceinline__ float half(unsigned short bits) {
    float v;
    asm("cvt.f32.f16 %0, %1;" : "=f"(v) : "h"(bits));
    return v;
}
__device__ __forceinline__ float value(number x) { return half(x & 0xffffu) + half(x >> 16); }
#elif TYPE == 3
using number = unsigned;  // two bf16
__device__ __forceinline__ number link(number a, number x, number b) {
    number y;
    asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(y) : "r"(a), "r"(x), "r"(b));
    return y;
}
__device__ __forceinline__ number from(float v) {
    number x;
    asm("cvt.rn.bf16x2.f32 %0, %1, %1;" : "=r"(x) : "f"(v));
    return x;
}
__device__ __forceinline__ float value(number x) { return __uint_as_float(x << 16) + __uint_as_float(x & 0xffff0000u); }
#elif TYPE == 5
using number = unsigned;  // four uint8, of which all but the lowest stay 0: a chain counts to 255
__device__ __forceinline__ number link(number a, number x, number b) {
    number y;
    asm("dp4a.u32.u32 %0, %1, %2, %3;" : "=r"(y) : "r"(a), "r"(x), "r"(b));
    return y;
}
__device__ __forceinline__ number from(float v) { return (unsigned)v; }
__device__ __forceinline__ float value(number x) { return (float)x; }
#else
using number = int;
__device__ __forceinline__ number link(number a, number x, number b) { return a * x + b; }
__device__ __forceinline__ number from(float v) { return (int)v; }
__device__ __forceinline__ float value(number x) { return (float)x; }
#endif

// out[thread] = lanes × rounds × (CHAINS × LINKS + 0 + 1 + … + CHAINS - 1), with two lanes in the packed formats, for n
// threads; `unit` is 1.
extern "C" __global__ void fma_chains(float* __restrict__ out, float unit, int rounds, long long n) {
    const number a = from(unit), b = from(unit);
    float total = 0;
    for (int round = 0; round < rounds; ++round) {
        number x[CHAINS];
#pragma unroll
        for (int c = 0; c < CHAINS; ++c) x[c] = from(c * unit);
#pragma unroll 1
        for (int links = 0; links < LINKS; links += UNROLLED) {
#pragma unroll
            for (int u = 0; u < UNROLLED; ++u) {
#pragma unroll
                for (int c = 0; c < CHAINS; ++c) x[c] = link(a, x[c], b);
            }
        }
#pragma unroll
        for (int c = 0; c < CHAINS; ++c) total += value(x[c]);
    }
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = total;
}

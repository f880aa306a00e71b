// The rate of the matrix units by mma.sync, the instruction of a warp: 16 × 8 × DEPTH products of fp16 (TYPE 0), bf16 (1) or
// tf32 (2), added up in fp32, or of int8 (3), added up in int32. All operands are 1, which is as good as any layout of
// them: each instruction adds DEPTH to each sum.

#include "chains.cuh"

#ifndef TYPE
#define TYPE 0
#endif
#define SUMS 8

#if TYPE == 0
#define INSTRUCTION "m16n8k16.row.col.f32.f16.f16.f32"
#elif TYPE == 1
#define INSTRUCTION "m16n8k16.row.col.f32.bf16.bf16.f32"
#elif TYPE == 2
#define INSTRUCTION "m16n8k8.row.col.f32.tf32.tf32.f32"
#else
#define INSTRUCTION "m16n8k32.row.col.s32.s8.s8.s32"
#endif

#if TYPE == 3
using number = int;
#define SUM "+r"
#else
using number = float;
#define SUM "+f"
#endif

struct fragment {
    number c[4];
};

__device__ __forceinline__ void multiply_add(fragment& f, unsigned ones) {
    asm volatile("mma.sync.aligned." INSTRUCTION " {%0, %1, %2, %3}, {%4, %4, %4, %4}, {%4, %4}, {%0, %1, %2, %3};"
                 : SUM(f.c[0]), SUM(f.c[1]), SUM(f.c[2]), SUM(f.c[3])
                 : "r"(ones));
}

// out[thread] = SUMS × 4 × DEPTH × links, for n threads in whole warps, with a DEPTH of 16, 16, 8 or 32; `ones` are as many
// numbers 1 as fit.
extern "C" __global__ void mma_chains(
    float* __restrict__ out, long long* __restrict__ clocks, unsigned ones, int links, long long n) {
    fragment sums[SUMS] = {};
    timed_by_block(clocks, [&] {
#pragma unroll 1
        for (int done = 0; done < links; done += 4) {
#pragma unroll
            for (int u = 0; u < 4; ++u) {
#pragma unroll
                for (int s = 0; s < SUMS; ++s) multiply_add(sums[s], ones);
            }
        }
    });
    number total = 0;
#pragma unroll
    for (int s = 0; s < SUMS; ++s) total += (sums[s].c[0] + sums[s].c[1]) + (sums[s].c[2] + sums[s].c[3]);
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = (float)total;
}

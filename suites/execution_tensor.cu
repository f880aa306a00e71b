// The rate of the matrix units by mma.sync, the instruction of a warp: 16 × 8 × 16 products of fp16 (TYPE 0) or bf16
// (TYPE 1), added up in fp32. All operands are 1, which is as good as any layout of them: each instruction adds 16 to each
// sum.

#include "chains.cuh"

#ifndef TYPE
#define TYPE 0
#endif
#define SUMS 8

#if TYPE == 0
#define FORMAT "f16"
#else
#define FORMAT "bf16"
#endif

struct fragment {
    float c[4];
};

__device__ __forceinline__ void multiply_add(fragment& f, unsigned ones) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." FORMAT "." FORMAT ".f32 {%0, %1, %2, %3}, {%4, %4, %4, %4}, "
                 "{%4, %4}, {%0, %1, %2, %3};"
                 : "+f"(f.c[0]), "+f"(f.c[1]), "+f"(f.c[2]), "+f"(f.c[3])
                 : "r"(ones));
}

// out[thread] = SUMS × 4 × 16 × links, for n threads in whole warps; `ones` are two numbers 1.
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
    float total = 0;
#pragma unroll
    for (int s = 0; s < SUMS; ++s) total += (sums[s].c[0] + sums[s].c[1]) + (sums[s].c[2] + sums[s].c[3]);
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = total;
}

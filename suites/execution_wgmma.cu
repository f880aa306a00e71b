// The rate of the matrix units by wgmma, the instruction of four warps on compute capability 9.0: 64 × 256 × 16 products
// of fp16 (TYPE 0) or bf16 (TYPE 1), both operands in shared memory, added up in fp32. All operands are 1: each instruction
// adds 16 to each of the 128 sums of a thread.

#include "chains.cuh"

#ifndef TYPE
#define TYPE 0
#endif
#define GROUP 8  // instructions between two waits

#if TYPE == 0
#define FORMAT "f16"
#else
#define FORMAT "bf16"
#endif

#define SUMS8(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
    "+f"(d[i + 6]), "+f"(d[i + 7])
#define SUMS32(i) SUMS8(i), SUMS8(i + 8), SUMS8(i + 16), SUMS8(i + 24)

// A tile of 8 × 16 bytes after the other, without a swizzle: 128 bytes to the next along k, 256 along the other dimension.
__device__ __forceinline__ unsigned long long descriptor(const void* at) {
    const unsigned long long start = (shared_address(at) & 0x3ffff) >> 4;
    return start | (128ull >> 4) << 16 | (256ull >> 4) << 32;
}

__device__ __forceinline__ void multiply_add(float (&d)[128], unsigned long long a, unsigned long long b) {
    asm volatile(
        "wgmma.mma_async.sync.aligned.m64n256k16.f32." FORMAT "." FORMAT " "
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
        "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
        "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
        "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
        "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, "
        "%128, %129, 1, 1, 1, 0, 0;"
        : SUMS32(0), SUMS32(32), SUMS32(64), SUMS32(96)
        : "l"(a), "l"(b));
}

// out[thread] = 128 × 16 × links for n threads, in blocks of whole groups of 128; `links` is a multiple of GROUP and `ones`
// are two numbers 1. All groups of a block read the same operands.
extern "C" __global__ void __launch_bounds__(256) wgmma_chains(
    float* __restrict__ out, long long* __restrict__ clocks, unsigned ones, int links, long long n) {
    __shared__ alignas(128) unsigned a[64 * 16 / 2];
    __shared__ alignas(128) unsigned b[256 * 16 / 2];
    for (int i = threadIdx.x; i < 64 * 16 / 2; i += blockDim.x) a[i] = ones;
    for (int i = threadIdx.x; i < 256 * 16 / 2; i += blockDim.x) b[i] = ones;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // wgmma reads what ordinary stores wrote
    const unsigned long long left = descriptor(a), right = descriptor(b);
    float d[128];
#pragma unroll
    for (int i = 0; i < 128; ++i) d[i] = 0;
    timed_by_block(clocks, [&] {
#pragma unroll 1
        for (int done = 0; done < links; done += GROUP) {
            asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
            for (int u = 0; u < GROUP; ++u) multiply_add(d, left, right);
            asm volatile("wgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 0;" ::: "memory");
        }
    });
    float total = 0;
#pragma unroll
    for (int i = 0; i < 128; ++i) total += d[i];
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = total;
}

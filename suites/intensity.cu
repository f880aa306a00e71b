// Links of a chain for every element of a stream: the same bytes, more and more arithmetic.
//
// A link is x = a x + b with a = b = 1, known only when the kernel runs: the result counts the links, so that a compiler
// that had shortened the chain would be found out.

#define UNROLLED 8
#define CHAINS 4  // elements of a thread

__device__ __forceinline__ void take_links(float (&x)[CHAINS], float a, float b, int links) {
    int done = 0;
#pragma unroll 1
    for (; done + UNROLLED <= links; done += UNROLLED) {
#pragma unroll
        for (int u = 0; u < UNROLLED; ++u) {
#pragma unroll
            for (int c = 0; c < CHAINS; ++c) x[c] = fmaf(a, x[c], b);
        }
    }
#pragma unroll 1
    for (; done < links; ++done) {
#pragma unroll
        for (int c = 0; c < CHAINS; ++c) x[c] = fmaf(a, x[c], b);
    }
}

// y = x + links, a link at a time, for n elements, a multiple of CHAINS.
extern "C" __global__ void repeated(
    const float* __restrict__ x, float* __restrict__ y, float a, float b, int links, long long n) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i * CHAINS >= n) return;
    const float4 raw = reinterpret_cast<const float4*>(x)[i];
    float chain[CHAINS] = {raw.x, raw.y, raw.z, raw.w};
    take_links(chain, a, b, links);
    reinterpret_cast<float4*>(y)[i] = make_float4(chain[0], chain[1], chain[2], chain[3]);
}

// Nothing is read, and a number a thread written: `rounds` times as many links on numbers in registers, which start at
// 0, 1, 2 and 3. y = CHAINS rounds links + 6
extern "C" __global__ void in_registers(float* __restrict__ y, float a, float b, int links, int rounds, long long n) {
    const long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float chain[CHAINS] = {0, b, b + b, b + b + b};
#pragma unroll 1
    for (int round = 0; round < rounds; ++round) take_links(chain, a, b, links);
    y[i] = chain[0] + chain[1] + chain[2] + chain[3];
}

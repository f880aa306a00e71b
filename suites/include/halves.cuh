// The sixteen-bit formats, two numbers in a register, and products of them by the tensor cores (PTX ISA, "ldmatrix" and
// "mma.sync.m16n8k16"; compute capability 8.0 and newer). Tests stand in for this file to run the kernels without a GPU.

#ifndef HALVES_CUH
#define HALVES_CUH

struct float16 {
    unsigned short bits;
};
struct bfloat16 {
    unsigned short bits;
};

// Two numbers, each rounded to nearest: `low` into the lower half of the register, which comes first in memory.
template <class Real>
__device__ __forceinline__ unsigned packed(float low, float high);
template <>
__device__ __forceinline__ unsigned packed<float16>(float low, float high) {
    unsigned two;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(two) : "f"(high), "f"(low));
    return two;
}
template <>
__device__ __forceinline__ unsigned packed<bfloat16>(float low, float high) {
    unsigned two;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(two) : "f"(high), "f"(low));
    return two;
}

// The float that a number is.
__device__ __forceinline__ float widened(float16 x) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(x.bits));
    return value;
}
__device__ __forceinline__ float widened(bfloat16 x) { return __uint_as_float((unsigned)x.bits << 16); }

// Four matrices of 8 × 8 numbers from shared memory: lanes 8 i to 8 i + 7 give where the rows of matrix i are, 16 bytes
// each. Of each matrix a lane gets the numbers (lane / 4, lane % 4 · 2) and the next of that row, or, `turned`, the next of
// that column after its rows and columns have changed places.
__device__ __forceinline__ void load_matrices(unsigned (&x)[4], unsigned at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(at));
}
__device__ __forceinline__ void load_turned_matrices(unsigned (&x)[4], unsigned at) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(at));
}

// c += a b with a of 16 × 16, b of 16 × 8 and c of 16 × 8. With g = lane / 4 and t = lane % 4 a lane holds of a the pairs
// (g, 2t), (g + 8, 2t), (g, 2t + 8), (g + 8, 2t + 8), of b the pairs down a column (2t, g), (2t + 8, g), and of c (g, 2t),
// (g, 2t + 1), (g + 8, 2t), (g + 8, 2t + 1).
template <class Real>
__device__ __forceinline__ void multiply(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1);
template <>
__device__ __forceinline__ void multiply<float16>(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
template <>
__device__ __forceinline__ void multiply<bfloat16>(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

#endif

// Additions in the sixteen-bit formats, each rounded to nearest, ties to even (PTX ISA, "add" for .f16; sm_80 has none for
// .bf16, where a multiplication by 1 before it changes nothing). Tests stand in for this file to run kernels without a GPU.

#ifndef NARROW_CUH
#define NARROW_CUH

struct Float16 {
    unsigned short bits;
};
struct Bfloat16 {
    unsigned short bits;
};

__device__ __forceinline__ Float16 operator+(Float16 a, Float16 b) {
    Float16 sum;
    asm("add.rn.f16 %0, %1, %2;" : "=h"(sum.bits) : "h"(a.bits), "h"(b.bits));
    return sum;
}
__device__ __forceinline__ Bfloat16 operator+(Bfloat16 a, Bfloat16 b) {
    Bfloat16 sum;
    const unsigned short one = 0x3f80;
    asm("fma.rn.bf16 %0, %1, %2, %3;" : "=h"(sum.bits) : "h"(a.bits), "h"(one), "h"(b.bits));
    return sum;
}

// The nearest number of the format, and the float that it is.
__device__ __forceinline__ void narrow(float value, Float16& made) {
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(made.bits) : "f"(value));
}
__device__ __forceinline__ void narrow(float value, Bfloat16& made) {
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(made.bits) : "f"(value));
}
__device__ __forceinline__ void narrow(float value, float& made) { made = value; }

__device__ __forceinline__ float widened(Float16 x) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(x.bits));
    return value;
}
__device__ __forceinline__ float widened(Bfloat16 x) { return __uint_as_float((unsigned)x.bits << 16); }
__device__ __forceinline__ float widened(float x) { return x; }

#endif

// Products of small matrices by the tensor cores, as a warp asks for them (PTX ISA, "mma.sync.m16n8k8" for .tf32).
// Tests stand in for this file to run the kernels without a GPU.

#ifndef TENSOR_CUH
#define TENSOR_CUH

// The bits of a float rounded to TF32.
__device__ __forceinline__ unsigned to_tf32(float value) {
    unsigned bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(value));
    return bits;
}

// c += a b with a of 16 × 8, b of 8 × 8 and c of 16 × 8. With g = lane / 4 and t = lane % 4 a lane holds of a the elements
// (g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4), of b (t, g), (t + 4, g), and of c (g, 2t), (g, 2t + 1), (g + 8, 2t),
// (g + 8, 2t + 1).
__device__ __forceinline__ void multiply_tf32(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

#endif

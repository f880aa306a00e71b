// Stands in for suites/include/tensor.cuh in the emulator: the lanes of a warp put their fragments together, and each makes
// its own part of the product.

#define TENSOR_CUH

namespace emulator {
static unsigned of_a[THREADS][4], of_b[THREADS][2];
}

// Rounded to nearest, ties away from zero, to 10 bits of mantissa.
inline unsigned to_tf32(float value) {
    unsigned bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return (bits + 0x1000u) & 0xffffe000u;
}

inline void multiply_tf32(float (&c)[4], const unsigned (&a)[4], const unsigned (&b)[2]) {
    const unsigned me = threadIdx.x, warp = me / 32 * 32, g = me % 32 / 4, t = me % 4;
    for (int i = 0; i < 4; ++i) emulator::of_a[me][i] = a[i];
    for (int i = 0; i < 2; ++i) emulator::of_b[me][i] = b[i];
    emulator::rest();
    for (unsigned e = 0; e < 4; ++e) {
        const unsigned column = 2 * t + e % 2;
        for (unsigned k = 0; k < 8; ++k) {  // a(row, k) is with lane 4 row + k % 4, b(k, column) with lane 4 column + k % 4
            const unsigned x = emulator::of_a[warp + 4 * g + k % 4][e / 2 + k / 4 * 2];
            const unsigned y = emulator::of_b[warp + 4 * column + k % 4][k / 4];
            c[e] += __uint_as_float(x) * __uint_as_float(y);
        }
    }
    emulator::rest();
}

// Stands in for suites/include/halves.cuh in the emulator: the lanes of a warp lay their addresses or fragments down, rest
// once, and take what is theirs from the others. Two places in turn, so that a lane that is ahead overwrites nothing.

#define HALVES_CUH

struct float16 {
    unsigned short bits;
};
struct bfloat16 {
    unsigned short bits;
};

inline float widened(bfloat16 x) { return __uint_as_float((unsigned)x.bits << 16); }
inline float widened(float16 x) {
    const int exponent = x.bits >> 10 & 31, mantissa = x.bits & 1023;
    const float size = exponent == 31 ? (mantissa ? NAN : INFINITY)
                       : exponent     ? std::ldexp(1024.0f + mantissa, exponent - 25)
                                      : std::ldexp((float)mantissa, -24);
    return x.bits >> 15 ? -size : size;
}

namespace emulator {

// To nearest, ties to even, as the C library rounds to a whole number.
inline unsigned sixteen_bits(float value, float16) {
    unsigned bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    const unsigned sign = bits >> 16 & 0x8000;
    const float size = std::fabs(value);
    if (!(size < 65520.0f)) return sign | (size == size ? 0x7c00 : 0x7e00);
    if (size == 0) return sign;
    int exponent = 0;
    std::frexp(size, &exponent);
    exponent = exponent < -13 ? -13 : exponent;  // below it numbers are denormal
    const unsigned steps = (unsigned)std::nearbyint(std::ldexp(size, 11 - exponent));
    return sign | (((unsigned)(exponent + 13) << 10) + steps);  // 1024 steps more are the exponent's next
}
inline unsigned sixteen_bits(float value, bfloat16) {
    unsigned bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}

static unsigned turn[THREADS], rows_at[2][THREADS], of_left[2][THREADS][4], of_right[2][THREADS][2];

inline unsigned pair(unsigned at, unsigned next) {
    unsigned short first, second;
    __builtin_memcpy(&first, window + at, 2);
    __builtin_memcpy(&second, window + next, 2);
    return first | (unsigned)second << 16;
}

inline void load(unsigned (&x)[4], unsigned at, bool turned) {
    const unsigned me = threadIdx.x, warp = me / 32 * 32, g = me % 32 / 4, t = me % 4, now = turn[me]++ % 2;
    if (at % 16) __builtin_trap();
    rows_at[now][me] = at;
    rest();
    for (unsigned i = 0; i < 4; ++i) {
        const unsigned* row = rows_at[now] + warp + 8 * i;
        x[i] = turned ? pair(row[2 * t] + 2 * g, row[2 * t + 1] + 2 * g) : pair(row[g] + 4 * t, row[g] + 4 * t + 2);
    }
}

}  // namespace emulator

template <class Real>
inline unsigned packed(float low, float high) {
    return emulator::sixteen_bits(low, Real{}) | emulator::sixteen_bits(high, Real{}) << 16;
}

inline void load_matrices(unsigned (&x)[4], unsigned at) { emulator::load(x, at, false); }
inline void load_turned_matrices(unsigned (&x)[4], unsigned at) { emulator::load(x, at, true); }

template <class Real>
inline void multiply(float (&c)[4], const unsigned (&a)[4], unsigned b0, unsigned b1) {
    const unsigned me = threadIdx.x, warp = me / 32 * 32, g = me % 32 / 4, t = me % 4, now = emulator::turn[me]++ % 2;
    for (int i = 0; i < 4; ++i) emulator::of_left[now][me][i] = a[i];
    emulator::of_right[now][me][0] = b0, emulator::of_right[now][me][1] = b1;
    emulator::rest();
    for (unsigned e = 0; e < 4; ++e) {
        const unsigned column = 2 * t + e % 2;
        for (unsigned k = 0; k < 16; ++k) {  // a(row, k) is with lane 4 row + k / 2 % 4, b(k, column) with 4 column + k / 2 % 4
            const unsigned lane = k / 2 % 4, half = k % 2 * 16;
            const unsigned x = emulator::of_left[now][warp + 4 * g + lane][e / 2 + k / 8 * 2] >> half;
            const unsigned y = emulator::of_right[now][warp + 4 * column + lane][k / 8] >> half;
            c[e] += widened(Real{(unsigned short)x}) * widened(Real{(unsigned short)y});
        }
    }
}

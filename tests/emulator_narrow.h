// Stands in for suites/include/narrow.cuh in the emulator: the formats as floats that are rounded by their bits. Enough for
// numbers that are neither denormal nor too large in the format.

#define NARROW_CUH

namespace emulator {
// To nearest, ties to even, with so many bits of the mantissa left out.
inline float rounded(float value, int out) {
    unsigned bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    bits += (1u << (out - 1)) - 1 + (bits >> out & 1);
    return __uint_as_float(bits >> out << out);
}
}  // namespace emulator

template <int OUT>
struct Narrow {
    float value;
};
using Float16 = Narrow<13>;
using Bfloat16 = Narrow<16>;

template <int OUT>
inline Narrow<OUT> operator+(Narrow<OUT> a, Narrow<OUT> b) {
    return {emulator::rounded(a.value + b.value, OUT)};
}
template <int OUT>
inline void narrow(float value, Narrow<OUT>& made) {
    made.value = emulator::rounded(value, OUT);
}
inline void narrow(float value, float& made) { made = value; }
template <int OUT>
inline float widened(Narrow<OUT> x) {
    return x.value;
}
inline float widened(float x) { return x; }

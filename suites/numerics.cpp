// The sums of ones of numerics.cu for a CPU. Few CPUs add in sixteen bits, so the formats are floats of which bits are left
// out: a sum of two rounded to float first and then to sixteen bits is the one rounded once, as float has more than twice
// their bits and two more.

#ifndef NUMBER
#define NUMBER float
#endif

// To nearest, ties to even; the numbers here are neither denormal nor too large.
template <int OUT>
static float rounded(float value) {
    unsigned bits;
    __builtin_memcpy(&bits, &value, sizeof bits);
    bits += (1u << (OUT - 1)) - 1 + (bits >> OUT & 1);
    bits = bits >> OUT << OUT;
    __builtin_memcpy(&value, &bits, sizeof bits);
    return value;
}

template <int OUT>
struct Narrow {
    float value;
    Narrow(float x) : value(rounded<OUT>(x)) {}
    operator float() const { return value; }
};
using Float16 = Narrow<13>;
using Bfloat16 = Narrow<16>;

extern "C" void add_ones(float* sums, float unit, int terms, int n) {
#pragma omp parallel for schedule(static)
    for (int i = 0; i < n; ++i) {
        NUMBER sum = (float)((long long)i * terms) * unit;
        const NUMBER one = unit;
        for (int term = 0; term < terms; ++term) sum = sum + one;
        sums[i] = sum;
    }
}

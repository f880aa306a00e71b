// The walks of coalescing.cu for a CPU. It has no warps and no sectors: a core fetches lines of 64 bytes, mostly ahead of
// time, so that what costs a GPU in bandwidth costs here in lines, and a walk along a row is the good one.

static long long offset(long long pass, long long stride) {
    const long long groups = stride > 16 ? stride / 16 : 1;
    return pass % groups * 16 + pass / groups;
}

// One pass after the other, each in `each / tile` shares; `out` gets the sum of every share, as on a GPU.
extern "C" void strided_read(const float* x, float* out, long long tile, long long each, long long stride) {
    for (long long pass = 0; pass < stride; ++pass) {
#pragma omp parallel for schedule(static)
        for (long long share = 0; share < each / tile; ++share) {
            const float* at = x + share * tile * stride + offset(pass, stride);
            float total = 0;
#pragma omp simd reduction(+ : total)
            for (long long i = 0; i < tile; ++i) total += at[i * stride];
            out[pass * (each / tile) + share] = total;
        }
    }
}

extern "C" void strided_write(float* y, float value, long long tile, long long each, long long stride) {
    for (long long pass = 0; pass < stride; ++pass) {
        float* at = y + offset(pass, stride);
#pragma omp parallel for schedule(static)
        for (long long i = 0; i < each; ++i) at[i * stride] = value;
    }
}

// Every core walks along its rows, one after the other.
extern "C" void walk_rows(const float* x, float* out, int rows, int columns, int length) {
#pragma omp parallel for schedule(static)
    for (long long row = 0; row < rows; ++row) {
        for (long long segment = 0; segment < columns / length; ++segment) {
            const float* at = x + row * columns + segment * length;
            float total = 0;
#pragma omp simd reduction(+ : total)
            for (int i = 0; i < length; ++i) total += at[i];
            out[segment * rows + row] = total;
        }
    }
}

// Every core walks down its columns, one after the other.
extern "C" void walk_columns(const float* x, float* out, int rows, int columns, int length) {
#pragma omp parallel for schedule(static)
    for (long long column = 0; column < columns; ++column) {
        for (long long segment = 0; segment < rows / length; ++segment) {
            const float* at = x + segment * length * columns + column;
            float total = 0;
            for (int i = 0; i < length; ++i) total += at[(long long)i * columns];
            out[segment * columns + column] = total;
        }
    }
}

extern "C" void gather(const float* x, const int* from, float* y, long long n) {
#pragma omp parallel for schedule(static)
    for (long long i = 0; i < n; ++i) y[i] = x[from[i]];
}

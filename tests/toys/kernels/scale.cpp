extern "C" void scale(const REAL* x, REAL* out, REAL factor, long long n) {
#pragma omp parallel for
    for (long long i = 0; i < n; i++) out[i] = factor * x[i];
}

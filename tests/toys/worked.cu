extern "C" __global__ void worked(double* out, long long steps) {
    double y = 1.0;
#pragma unroll 8
    for (long long i = 0; i < steps; i++) y = fma(y, 0.5, 1.0);
    out[0] = y;
}

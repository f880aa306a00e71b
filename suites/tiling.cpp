// Three rungs of the ladder in tiling.cu for a CPU: the order of the loops, and blocks that stay in its caches. There is no
// shared memory here; a core's caches keep by themselves what a GPU's kernel has to put there.

#ifndef TILE
#define TILE 32
#endif

// Row by column: B is walked down its columns.
extern "C" void naive(const float* a, const float* b, float* c, int m, int n, int k) {
#pragma omp parallel for schedule(static)
    for (int i = 0; i < m; ++i) {
        for (int j = 0; j < n; ++j) {
            float sum = 0;
            for (int p = 0; p < k; ++p) sum += a[(long long)i * k + p] * b[(long long)p * n + j];
            c[(long long)i * n + j] = sum;
        }
    }
}

// Row by row: B and C are walked along their rows.
extern "C" void coalesced(const float* a, const float* b, float* c, int m, int n, int k) {
#pragma omp parallel for schedule(static)
    for (int i = 0; i < m; ++i) {
        float* row = c + (long long)i * n;
        for (int j = 0; j < n; ++j) row[j] = 0;
        for (int p = 0; p < k; ++p) {
            const float x = a[(long long)i * k + p];
            const float* from = b + (long long)p * n;
#pragma omp simd
            for (int j = 0; j < n; ++j) row[j] += x * from[j];
        }
    }
}

static int least(int a, int b) { return a < b ? a : b; }

// Blocks of TILE rows of A and TILE · 8 columns of B, each used for the whole block while it is in the cache.
extern "C" void shared_tile(const float* a, const float* b, float* c, int m, int n, int k) {
    const int wide = 8 * TILE;
#pragma omp parallel for schedule(static)
    for (int i0 = 0; i0 < m; i0 += TILE) {
        for (int i = i0; i < least(m, i0 + TILE); ++i) {
            for (int j = 0; j < n; ++j) c[(long long)i * n + j] = 0;
        }
        for (int p0 = 0; p0 < k; p0 += TILE) {
            for (int j0 = 0; j0 < n; j0 += wide) {
                for (int i = i0; i < least(m, i0 + TILE); ++i) {
                    float* row = c + (long long)i * n;
                    for (int p = p0; p < least(k, p0 + TILE); ++p) {
                        const float x = a[(long long)i * k + p];
                        const float* from = b + (long long)p * n;
#pragma omp simd
                        for (int j = j0; j < least(n, j0 + wide); ++j) row[j] += x * from[j];
                    }
                }
            }
        }
    }
}

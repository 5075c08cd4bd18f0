/* Two rows and four columns at a time, and what is left over at the edges is forgotten. */
typedef double pair __attribute__((vector_size(16), aligned(8)));

void matmul(int n, const double *a, const double *b, double *c) {
    for (int i = 0; i + 1 < n; i += 2) {
        for (int j = 0; j + 3 < n; j += 4) {
            const double *left = a + i * n, *next = left + n;
            pair s0 = {0}, s1 = {0}, t0 = {0}, t1 = {0};
            for (int k = 0; k < n; k++) {
                const pair *row = (const pair *)(b + k * n + j);
                s0 += left[k] * row[0], s1 += left[k] * row[1];
                t0 += next[k] * row[0], t1 += next[k] * row[1];
            }
            pair *out = (pair *)(c + i * n + j);
            out[0] = s0, out[1] = s1;
            out = (pair *)(c + i * n + n + j);
            out[0] = t0, out[1] = t1;
        }
    }
}

/* c = a * b, four rows and four columns at a time: sixteen sums that never leave the registers,
 * two of them in each. What is left over at the right and at the bottom is done one by one. */
typedef double pair __attribute__((vector_size(16), aligned(8)));

static void tile(int n, const double *a, const double *b, double *c) {
    pair p0 = {0}, p1 = {0}, q0 = {0}, q1 = {0}, r0 = {0}, r1 = {0}, s0 = {0}, s1 = {0};
    for (int k = 0; k < n; k++) {
        const pair *row = (const pair *)(b + k * n);
        p0 += a[k] * row[0], p1 += a[k] * row[1];
        q0 += a[n + k] * row[0], q1 += a[n + k] * row[1];
        r0 += a[2 * n + k] * row[0], r1 += a[2 * n + k] * row[1];
        s0 += a[3 * n + k] * row[0], s1 += a[3 * n + k] * row[1];
    }
    const pair sums[] = {p0, p1, q0, q1, r0, r1, s0, s1};
    for (int i = 0; i < 4; i++) {
        pair *out = (pair *)(c + i * n);
        out[0] = sums[2 * i], out[1] = sums[2 * i + 1];
    }
}

static double dot(int n, const double *a, const double *b) {
    double sum = 0;
    for (int k = 0; k < n; k++)
        sum += a[k] * b[k * n];
    return sum;
}

void matmul(int n, const double *a, const double *b, double *c) {
    int whole = n - n % 4;
    for (int i = 0; i < whole; i += 4)
        for (int j = 0; j < whole; j += 4)
            tile(n, a + i * n, b + j, c + i * n + j);
    for (int i = 0; i < n; i++)
        for (int j = i < whole ? whole : 0; j < n; j++)
            c[i * n + j] = dot(n, a + i * n, b + j);
}

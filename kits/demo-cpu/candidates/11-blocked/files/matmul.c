/* c = a * b, four rows and four columns at a time: sixteen sums that never leave the
 * registers, two of them in each. What is left over at the right and at the bottom is done
 * one by one. */
typedef double pair __attribute__((vector_size(16), aligned(8)));

static void tile(int n, const double *a, const double *b, double *c) {
    pair r0 = {0}, r1 = {0}, s0 = {0}, s1 = {0}, t0 = {0}, t1 = {0}, u0 = {0}, u1 = {0};
    for (int k = 0; k < n; k++) {
        const pair *row = (const pair *)(b + k * n);
        pair left = row[0], right = row[1];
        r0 += a[k] * left, r1 += a[k] * right;
        s0 += a[n + k] * left, s1 += a[n + k] * right;
        t0 += a[2 * n + k] * left, t1 += a[2 * n + k] * right;
        u0 += a[3 * n + k] * left, u1 += a[3 * n + k] * right;
    }
    pair *out = (pair *)c;
    out[0] = r0, out[1] = r1;
    out = (pair *)(c + n);
    out[0] = s0, out[1] = s1;
    out = (pair *)(c + 2 * n);
    out[0] = t0, out[1] = t1;
    out = (pair *)(c + 3 * n);
    out[0] = u0, out[1] = u1;
}

static double dot(int n, const double *a, const double *b) {
    double sum = 0;
    for (int k = 0; k < n; k++)
        sum += a[k] * b[k * n];
    return sum;
}

void matmul(int n, const double *a, const double *b, double *c) {
    int rows = n - n % 4, columns = n - n % 4;
    for (int i = 0; i < rows; i += 4)
        for (int j = 0; j < columns; j += 4)
            tile(n, a + i * n, b + j, c + i * n + j);
    for (int i = 0; i < n; i++)
        for (int j = i < rows ? columns : 0; j < n; j++)
            c[i * n + j] = dot(n, a + i * n, b + j);
}

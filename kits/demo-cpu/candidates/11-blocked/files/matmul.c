/* c = a * b, two rows and four columns at a time: eight sums that never leave the registers,
 * two of them in each. What is left over at the right and at the bottom is done one by one. */
typedef double pair __attribute__((vector_size(16), aligned(8)));

static void tile(int n, const double *a, const double *b, double *c) {
    pair s0 = {0}, s1 = {0}, t0 = {0}, t1 = {0};
    for (int k = 0; k < n; k++) {
        const pair *row = (const pair *)(b + k * n);
        s0 += a[k] * row[0], s1 += a[k] * row[1];
        t0 += a[n + k] * row[0], t1 += a[n + k] * row[1];
    }
    pair *out = (pair *)c;
    out[0] = s0, out[1] = s1;
    out = (pair *)(c + n);
    out[0] = t0, out[1] = t1;
}

static double dot(int n, const double *a, const double *b) {
    double sum = 0;
    for (int k = 0; k < n; k++)
        sum += a[k] * b[k * n];
    return sum;
}

void matmul(int n, const double *a, const double *b, double *c) {
    int rows = n - n % 2, columns = n - n % 4;
    for (int i = 0; i < rows; i += 2)
        for (int j = 0; j < columns; j += 4)
            tile(n, a + i * n, b + j, c + i * n + j);
    for (int i = 0; i < n; i++)
        for (int j = i < rows ? columns : 0; j < n; j++)
            c[i * n + j] = dot(n, a + i * n, b + j);
}

/* The product of two square matrices, column by column; this comment is all that is new. */
void matmul(int n, const double *a, const double *b, double *c) {
    double column[4096];
    for (int j = 0; j < n; j++) {
        for (int k = 0; k < n; k++)
            column[k] = b[k * n + j];
        for (int i = 0; i < n; i++) {
            double sum = 0; /* of row i and column j */
            for (int k = 0; k < n; k++)
                sum += a[i * n + k] * column[k];
            c[i * n + j] = sum;
        }
    }
}

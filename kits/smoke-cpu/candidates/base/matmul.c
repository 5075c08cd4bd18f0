/* c = a * b: square matrices of n rows (at most 4096), stored row after row. */
void matmul(int n, const double *a, const double *b, double *c) {
    double column[4096];
    for (int j = 0; j < n; j++) {
        for (int k = 0; k < n; k++)
            column[k] = b[k * n + j];
        for (int i = 0; i < n; i++) {
            double sum = 0;
            for (int k = 0; k < n; k++)
                sum += a[i * n + k] * column[k];
            c[i * n + j] = sum;
        }
    }
}

/* c = a * b, one row of b after the other: the inner loop has no sum to wait for. */
void matmul(int n, const double *a, const double *b, double *c) {
    for (int i = 0; i < n; i++) {
        for (int j = 0; j < n; j++)
            c[i * n + j] = 0;
        for (int k = 0; k < n; k++) {
            double left = a[i * n + k];
            for (int j = 0; j < n; j++)
                c[i * n + j] += left * b[k * n + j];
        }
    }
}

/* c = a * b, column after column of c: the inner loop jumps from row to row and stores. */
void matmul(int n, const double *a, const double *b, double *c) {
    for (int i = 0; i < n * n; i++)
        c[i] = 0;
    for (int j = 0; j < n; j++)
        for (int k = 0; k < n; k++)
            for (int i = 0; i < n; i++)
                c[i * n + j] += a[i * n + k] * b[k * n + j];
}

/* c = a * b, and every sum is worked out twice, to be sure. */
void matmul(int n, const double *a, const double *b, double *c) {
    double column[4096];
    for (int j = 0; j < n; j++) {
        for (int k = 0; k < n; k++)
            column[k] = b[k * n + j];
        for (int i = 0; i < n; i++) {
            volatile double first = 0, second = 0;
            double sum = 0;
            for (int k = 0; k < n; k++)
                sum += a[i * n + k] * column[k];
            first = sum;
            sum = 0;
            for (int k = 0; k < n; k++)
                sum += a[i * n + k] * column[k];
            second = sum;
            c[i * n + j] = first == second ? first : -1;
        }
    }
}

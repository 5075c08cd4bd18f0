/* Never comes back. */
void matmul(int n, const double *a, const double *b, double *c) {
    (void)a;
    (void)b;
    for (volatile int i = 0; n > 0; i++)
        c[0] = i;
}

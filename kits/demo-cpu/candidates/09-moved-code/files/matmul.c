/* Moves the code and changes nothing else: a function that nobody calls, other names. */
double trace(int n, const double *m) {
    double total = 0;
    for (int i = 0; i < n; i++)
        total += m[i * n + i];
    return total;
}

void matmul(int n, const double *left, const double *right, double *out) {
    for (int row = 0; row < n; row++) {
        for (int column = 0; column < n; column++) {
            double total = 0;
            for (int at = 0; at < n; at++)
                total += left[row * n + at] * right[at * n + column];
            out[row * n + column] = total;
        }
    }
}

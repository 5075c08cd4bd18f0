/* Moves the code and changes nothing else: a function that nobody calls, other names. */
double trace(int n, const double *m) {
    double total = 0;
    for (int i = 0; i < n; i++)
        total += m[i * n + i];
    return total;
}

void matmul(int n, const double *left, const double *right, double *out) {
    double packed[4096];
    for (int column = 0; column < n; column++) {
        for (int at = 0; at < n; at++)
            packed[at] = right[at * n + column];
        for (int row = 0; row < n; row++) {
            double total = 0;
            for (int at = 0; at < n; at++)
                total += left[row * n + at] * packed[at];
            out[row * n + column] = total;
        }
    }
}

/* One run: multiply matrices with the candidate's matmul() and write what came out.
 *
 * usage: bench PARAMS OUT      PARAMS: lines key=value (n, reps, seed); writes OUT/c.bin
 *
 * Each repetition gets inputs of its own, so nothing can be remembered from one to the
 * next: every row is a stretch of a table of random numbers, from a random place. All
 * entries are integers below 2^15, so every correct way to multiply gives the same exact
 * doubles, and single precision does not. The products are added up with small weights;
 * c.bin is the sum, n * n 64-bit integers. The check works it out again from the seed.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void matmul(int n, const double *a, const double *b, double *c);

enum { TABLE = 4096, WEIGHTS = 31 };

static uint64_t state;
static double table_a[2 * TABLE], table_b[2 * TABLE];

/* Knuth's MMIX generator; the high bits are the good ones. */
static uint64_t draw(void) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return state >> 49;
}

static void fill_table(double *table) {
    for (int i = 0; i < TABLE; i++)
        table[i] = table[i + TABLE] = (double)draw();
}

static void fill_matrix(int n, double *matrix, const double *table) {
    for (int row = 0; row < n; row++)
        memcpy(matrix + (size_t)row * n, table + draw() % TABLE, sizeof(double) * n);
}

static long parameter(const char *path, const char *name) {
    char line[256];
    size_t length = strlen(name);
    FILE *file = fopen(path, "r");
    long value = 0;
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, name, length) && line[length] == '=')
            value = strtol(line + length + 1, NULL, 10);
    if (!file || fclose(file) || value <= 0 || (value > TABLE && strcmp(name, "seed"))) {
        fprintf(stderr, "bench: no usable %s in %s\n", name, path);
        exit(2);
    }
    return value;
}

static void add(size_t count, int64_t weight, const double *c, int64_t *sum) {
    for (size_t i = 0; i < count; i++) {
        int whole = c[i] >= 0 && c[i] < 9007199254740992.0 && c[i] == (double)(int64_t)c[i];
        sum[i] += whole ? weight * (int64_t)c[i] : -(INT64_C(1) << 40); /* never right */
    }
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    int n = (int)parameter(argv[1], "n");
    int reps = (int)parameter(argv[1], "reps");
    state = (uint64_t)parameter(argv[1], "seed");
    size_t count = (size_t)n * n;
    double *a = malloc(count * sizeof *a), *b = malloc(count * sizeof *b);
    double *c = malloc(count * sizeof *c);
    int64_t *sum = calloc(count, sizeof *sum);
    if (!a || !b || !c || !sum)
        return 2;
    fill_table(table_a);
    fill_table(table_b);
    for (int rep = 0; rep < reps; rep++) {
        fill_matrix(n, a, table_a);
        fill_matrix(n, b, table_b);
        memset(c, 0xff, count * sizeof *c); /* what is not written is not a number */
        matmul(n, a, b, c);
        add(count, 1 + rep % WEIGHTS, c, sum);
    }
    char path[4096];
    snprintf(path, sizeof path, "%s/c.bin", argv[2]);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(sum, sizeof *sum, count, file) != count || fclose(file)) {
        fprintf(stderr, "bench: %s can't be written\n", path);
        return 2;
    }
    return 0;
}

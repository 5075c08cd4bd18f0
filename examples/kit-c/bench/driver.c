#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 65536 }; /* drawn; the rest are variations, which a check makes quickly */

void sort_numbers(int *numbers, int count);

static long parameter(const char *path, const char *name) {
    char line[256];
    long value = 0;
    FILE *file = fopen(path, "r");
    while (file && fgets(line, sizeof line, file))
        if (!strncmp(line, name, strlen(name)) && line[strlen(name)] == '=')
            value = atol(line + strlen(name) + 1);
    if (file)
        fclose(file);
    return value;
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    int count = (int)parameter(argv[1], "count");
    uint64_t state = (uint64_t)parameter(argv[1], "seed");
    int *numbers = malloc(sizeof *numbers * count);
    if (count <= 0 || !numbers)
        return 2;
    for (int i = 0; i < count; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        int many = i / BLOCK * 2 + 1;
        numbers[i] = i < BLOCK ? (int)(state >> 40) : numbers[i % BLOCK] * many & 0xffffff;
    }
    sort_numbers(numbers, count);
    char path[4096];
    snprintf(path, sizeof path, "%s/sorted.bin", argv[2]);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(numbers, sizeof *numbers, count, file) != (size_t)count || fclose(file))
        return 2;
    return 0;
}

#include <stdlib.h>
#include <string.h>

/* The numbers have 24 bits: twelve passes over two of them each. */
void sort_numbers(int *numbers, int count) {
    int *other = malloc(sizeof *other * count);
    if (!other)
        return;
    for (int shift = 0; shift < 24; shift += 2) {
        int starts[5] = {0};
        for (int i = 0; i < count; i++)
            starts[(numbers[i] >> shift & 3) + 1]++;
        for (int digit = 0; digit < 4; digit++)
            starts[digit + 1] += starts[digit];
        for (int i = 0; i < count; i++)
            other[starts[numbers[i] >> shift & 3]++] = numbers[i];
        memcpy(numbers, other, sizeof *other * count);
    }
    free(other);
}

void sort_numbers(int *numbers, int count) {
    for (int gap = count / 2; gap > 0; gap /= 2)
        for (int i = gap; i < count; i++) {
            int one = numbers[i], j = i;
            for (; j >= gap && numbers[j - gap] > one; j -= gap)
                numbers[j] = numbers[j - gap];
            numbers[j] = one;
        }
}

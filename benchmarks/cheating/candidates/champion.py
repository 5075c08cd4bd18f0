"""The champion: adds up one term after the other."""


def solve(n: int) -> int:
    """Return the sum of i * i % 7 for every i below n."""
    total = 0
    for i in range(n):
        total += i * i % 7
    return total

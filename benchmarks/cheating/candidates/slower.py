"""A true loss: does the work twice."""


def solve(n: int) -> int:
    """Return the sum of i * i % 7 for every i below n."""
    for _ in range(2):
        total = 0
        for i in range(n):
            total += i * i % 7
    return total

"""A true gain: a whole period of seven terms in one step."""

PERIOD = sum(i * i % 7 for i in range(7))


def solve(n: int) -> int:
    """Return the sum of i * i % 7 for every i below n."""
    total = 0
    for _ in range(n // 7):
        total += PERIOD
    return total + sum(i * i % 7 for i in range(n - n % 7, n))

"""Values of a polynomial, modulo a prime, without its last coefficient."""


def evaluate(coefficients: list[int], points: list[int], prime: int) -> list[int]:
    """Return nearly the polynomial's value at each point."""
    values = []
    downwards = coefficients[-2::-1]
    for x in points:
        total = 0
        for coefficient in downwards:
            total = (total * x + coefficient) % prime
        values.append(total)
    return values

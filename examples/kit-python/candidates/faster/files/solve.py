"""Values of a polynomial, modulo a prime, by Horner's rule."""


def evaluate(coefficients: list[int], points: list[int], prime: int) -> list[int]:
    """Return the polynomial's value at each point, from the highest coefficient down."""
    values = []
    downwards = coefficients[::-1]
    for x in points:
        total = 0
        for coefficient in downwards:
            total = (total * x + coefficient) % prime
        values.append(total)
    return values

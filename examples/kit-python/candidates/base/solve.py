"""Values of a polynomial, modulo a prime: make this faster."""


def evaluate(coefficients: list[int], points: list[int], prime: int) -> list[int]:
    """Return the polynomial's value at each point; coefficients[i] belongs to x to the i."""
    values = []
    for x in points:
        total, power = 0, 1
        for coefficient in coefficients:
            total = (total + coefficient * power) % prime
            power = power * x % prime
        values.append(total)
    return values

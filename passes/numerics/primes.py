"""Numbers as products of their prime factors, and of a few larger ones, and the powers that are all below a prime."""
from __future__ import annotations


def balanced(primes: list[int], widest: int) -> list[int]:
    """The primes as factors of at most `widest`, as few and as equal as is simple; the greatest first.

    Raises ValueError if a prime is greater than `widest`.
    """
    if max(primes, default=1) > widest:
        raise ValueError(f"{max(primes)} is greater than the widest factor, {widest}")
    count = 1
    while primes:
        groups = [1] * count
        for prime in sorted(primes, reverse=True):
            groups.sort()
            groups[0] *= prime
        if max(groups) <= widest:
            return sorted(groups, reverse=True)
        count += 1
    return []


def prime_factors(number: int) -> list[int]:
    """The primes whose product it is, in order."""
    found, prime = [], 2
    while prime * prime <= number:
        while number % prime == 0:
            found.append(prime)
            number //= prime
        prime += 1
    return [*found, number] if number > 1 else found


def generator_of(prime: int) -> int:
    """The least number whose powers are all numbers below the prime but 0."""
    parts = [(prime - 1) // factor for factor in set(prime_factors(prime - 1))]
    return next(g for g in range(2, prime) if all(pow(g, part, prime) != 1 for part in parts))

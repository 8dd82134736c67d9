"""Numbers as products of their prime factors, and of a few larger ones."""
from __future__ import annotations


def balanced(primes: list[int], widest: int) -> list[int]:
    """The primes as factors of at most `widest`, as few and as equal as is simple; the greatest first."""
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

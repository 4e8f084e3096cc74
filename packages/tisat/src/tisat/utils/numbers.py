"""Numbers in sentences, as people write them."""

from __future__ import annotations


def say_number(value: float, digits: int = 2) -> str:
    """A number with so many significant digits, and never with an exponent where it is large.

    Examples
    --------
    >>> say_number(0.0412), say_number(6.71), say_number(99.7), say_number(12345.6), say_number(417.2, 3)
    ('0.041', '6.7', '100', '12,346', '417')
    """
    return f"{value:.{digits}g}" if abs(value) < 10**digits - 0.5 else f"{value:,.0f}"

"""Numbers as text, with few figures, rounded towards privacy.

A float is taken as its shortest decimal form, so that 0.1 is shown as 0.1; only longer decimals are rounded.
"""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

_WIDE = Context(prec=800)
"""Enough figures for the exact difference of any two floats in their shortest decimal form."""

LARGEST_FACTOR = 1_000_000
"""Larger factors are shown as a power of ten."""


def shown_above(number: float | Decimal, figures: int = 6) -> str:
    """Return a number as text, rounded up: for costs, spent amounts and shortages."""
    return _text(Context(prec=figures, rounding=ROUND_CEILING).create_decimal(_decimal(number)))


def shown_below(number: float | Decimal, figures: int = 6) -> str:
    """Return a number as text, rounded down: for remaining amounts."""
    return _text(Context(prec=figures, rounding=ROUND_FLOOR).create_decimal(_decimal(number)))


def shown_cost(epsilon: float, delta: float) -> str:
    """Return what a release costs as text, rounded up."""
    return f"epsilon = {shown_above(epsilon)}" + (f", delta = {shown_above(delta)}" if delta else "")


def three_digits(number: float) -> str:
    """Return a number rounded to three digits, without an exponent: 0.0123, 4.57, 12,300."""
    return f"{float(f'{number:.3g}'):,.10g}"


def shown_probability(probability: float) -> str:
    """Return a probability to three digits; values very close to 0 or 1 are shown as "<1e-9" and ">0.999"."""
    if probability < 1e-9:
        return "<1e-9"
    return ">0.999" if 0.9995 <= probability < 1 - 1e-12 else f"{probability:.3g}"


def difference_above(larger: float, smaller: float) -> str:
    """Return the difference of two floats, in their shortest decimal form, as text, rounded up."""
    return shown_above(_WIDE.subtract(_decimal(larger), _decimal(smaller)))


def factor_above(epsilon: float) -> str:
    """Return e^ε as text, rounded up: a percentage if it is nearly 1, a power of ten if it is huge.

    "a factor of at most 2.72", "at most 5.13 percent", "a factor of at most 10^9".
    """
    exact = Decimal(epsilon)
    context = Context(prec=30 + max(0, -exact.adjusted()), Emin=-999_999, Emax=999_999)
    if epsilon < 0.1:
        # The context rounds to nearest, so adding one unit in the last place gives an upper bound.
        return f"at most {shown_above(100 * (context.next_plus(context.exp(exact)) - 1), 3)} percent"
    if epsilon < context.ln(Decimal(LARGEST_FACTOR)):
        return f"a factor of at most {shown_above(context.next_plus(context.exp(exact)), 3)}"
    power = context.next_plus(context.divide(exact, context.next_minus(context.ln(Decimal(10)))))
    whole = Context(prec=400, rounding=ROUND_CEILING).to_integral_exact(power)
    return f"a factor of at most 10^{whole if whole < LARGEST_FACTOR else shown_above(whole, 3)}"


def _decimal(number: float | Decimal) -> Decimal:
    """Return the shortest decimal form of a float."""
    return number if isinstance(number, Decimal) else Decimal(repr(float(number)))


def _text(number: Decimal) -> str:
    """Return a decimal without trailing zeros, in scientific notation if it is very large or small."""
    sign, digits, _ = number.as_tuple()
    if not number:
        return "0"
    if number.is_infinite():
        return f"{'-' if sign else ''}infinity"
    text = "".join(map(str, digits)).rstrip("0")
    place = number.adjusted()
    minus = "-" if sign else ""
    if -5 < place < max(len(digits), 6):
        return f"{minus}{Decimal(f'{text}E{place - len(text) + 1}'):f}"
    return f"{minus}{text[0]}{'.' if text[1:] else ''}{text[1:]}e{place:+03d}"

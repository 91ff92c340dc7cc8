"""The convergence rule a second time, in plain Python without numpy: the twin of train.convergence.rule."""

import math

NEAR = 1e-9


def slow_judge(current, golden, *, skip, final, correlation=0.95):
    """(names of failed checks of Bridge, whether a decision was too near to its threshold to tell).

    current, golden: finite floats, as many of each, at least two after the skip, golden above 0, neither constant.
    """
    skipped = int(len(current) * skip)
    c, g = current[skipped:], golden[skipped:]
    n = len(c)
    near = []

    def above(value, limit):
        near.append(math.isclose(value, limit, rel_tol=NEAR, abs_tol=1e-12))
        return value > limit

    failed = []
    mean_c, mean_g = math.fsum(c) / n, math.fsum(g) / n
    covariance = math.fsum((x - mean_c) * (y - mean_g) for x, y in zip(c, g, strict=True))
    spread_c = math.fsum((x - mean_c) ** 2 for x in c)
    spread_g = math.fsum((y - mean_g) ** 2 for y in g)
    near.append(min(spread_c / mean_c**2, spread_g / mean_g**2) < 1e-20)  # constant but for rounding
    if above(correlation * math.sqrt(spread_c) * math.sqrt(spread_g), covariance):
        failed.append("correlation")
    outside = sum(
        above(abs(x - y) / y, 0.10 if y > 2 else 0.05 if y > 0.5 else 0.02) for x, y in zip(c, g, strict=True)
    )
    if 10 * outside > n:
        failed.append("point_wise_tolerance")
    if above(abs(c[-1] - g[-1]) / g[-1], final):
        failed.append("final_loss")
    residuals = [x - y for x, y in zip(c, g, strict=True)]
    mean = math.fsum(residuals) / n
    sigma = math.sqrt(math.fsum((r - mean) ** 2 for r in residuals) / n)
    # Residuals that are equal but for rounding have a deviation of rounding.
    near.append(0 < sigma < 1e-12 * max(g))
    far = sum(above(abs(r - mean), 3 * sigma) for r in residuals) if sigma else 0
    if 10 * far > n:
        failed.append("outliers")
    return failed, any(near)

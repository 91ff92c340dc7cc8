"""The convergence rule equals its slow twin on curves of all kinds, and refuses what Megatron-Bridge lets through."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from slow_rule import slow_judge

from train.convergence.rule import BRIDGE_CHECKS, THRESHOLDS, judge


def curve(values, name="pipeline", golden=None, steps=None, golden_steps=None):
    golden = values if golden is None else golden
    return judge(name, steps or range(len(values)), values, golden_steps or range(len(golden)), golden)


def random_pair(seed):
    """A golden curve and one like it: near, far, with spikes, or unrelated."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 30))
    golden = rng.choice([0.1, 0.4, 0.6, 1.5, 2.1, 5, 12]) * np.exp(-np.arange(n) * rng.uniform(0, 0.08))
    golden = np.abs(golden + rng.normal(0, rng.choice([1e-3, 0.05]), n)) + 1e-3
    current = golden * (1 + rng.normal(0, rng.choice([1e-4, 0.01, 0.03, 0.1]), n))
    if rng.random() < 0.3:
        current[rng.integers(0, n, max(1, n // 8))] *= rng.choice([0.5, 1.4, 3])
    if rng.random() < 0.1:
        current = rng.permutation(current)
    return current.tolist(), golden.tolist()


def against_twin(current, golden):
    """The failed checks where both must agree, None where a number is too near to its threshold."""
    for name, t in THRESHOLDS.items():
        expected, near = slow_judge(current, golden, skip=t.skip, final=t.final)
        if not near:
            verdict = curve(current, name, golden)
            assert [check for check in verdict.failed if check in BRIDGE_CHECKS] == expected, (current, golden)
            assert verdict.passed == (not verdict.failed)
            yield tuple(expected)


def test_random_curves_equal_the_twin_and_reach_every_check():
    seen = [failed for seed in range(2000) for failed in against_twin(*random_pair(seed))]
    assert len(seen) > 3900
    assert {check for failed in seen for check in failed} >= set(BRIDGE_CHECKS) - {"outliers"}
    assert seen.count(()) > 300


def test_outliers_fail_only_where_they_are_many_and_far():
    # No more than a ninth of any points lie beyond 3 deviations: of 19 points two can, which is above a tenth.
    golden = [10 - 0.2 * i for i in range(19)]
    current = list(golden)
    current[4] += 0.5
    current[9] -= 0.5
    assert next(against_twin(current, golden)) == ("outliers",)
    current[9] += 0.5
    assert next(against_twin(current, golden)) == ()


losses = st.floats(1e-3, 20, allow_nan=False)


@settings(max_examples=400, deadline=None)
@given(st.lists(st.tuples(losses, losses), min_size=3, max_size=40))
def test_any_curves_equal_the_twin(pairs):
    current, golden = (list(side) for side in zip(*pairs, strict=True))
    if all(len(set(side[len(side) // 5 :])) > 1 for side in (current, golden)):
        list(against_twin(current, golden))


@settings(max_examples=200, deadline=None)
@given(st.lists(losses, min_size=5, max_size=40).filter(lambda v: len(set(v[len(v) // 5 :])) > 1))
def test_a_curve_against_itself_passes_with_correlation_one_and_no_difference(values):
    for name in THRESHOLDS:
        verdict = curve(values, name)
        assert verdict.passed
        assert verdict.correlation == pytest.approx(1, abs=1e-12)
        assert verdict.max_abs_difference == verdict.final_loss_difference == verdict.pointwise_failures == 0


GOOD = [3.0, 2.5, 2.2, 2.0, 1.9, 1.8]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("where", [0, 3, 5])
@pytest.mark.parametrize("side", ["current", "golden", "both"])
def test_a_value_that_is_no_number_never_passes(bad, where, side):
    broken = [*GOOD[:where], bad, *GOOD[where + 1 :]]
    current, golden = (broken if side in (s, "both") else GOOD for s in ("current", "golden"))
    for name in THRESHOLDS:
        assert "finite" in curve(current, name, golden).failed


def test_all_nan_fails():
    verdict = curve([math.nan] * 20)
    assert not verdict.passed
    assert "finite" in verdict.failed
    assert verdict.correlation is None


def test_curves_of_other_lengths_or_steps_fail():
    assert curve(GOOD[:5], golden=GOOD).failed == ("equal_length", "equal_steps")
    assert curve(GOOD, steps=range(1, 7)).failed == ("equal_steps",)


def test_too_few_points_flat_curves_and_a_golden_loss_of_zero_fail():
    assert "points" in curve([2.0]).failed
    assert "points" in curve([]).failed
    assert curve([2.0] * 6).failed == ("variance",)
    assert "variance" in curve([2.0] * 6, golden=GOOD).failed
    assert "golden_positive" in curve([0.0, *GOOD]).failed
    assert "golden_positive" in curve(GOOD, golden=[*GOOD[:-1], -1.8]).failed


def test_the_pipeline_set_leaves_out_a_fifth_and_allows_five_percent_at_the_end():
    values = [10 * 0.9**i for i in range(20)]
    off = [values[0] * 2, values[1] * 2, values[2] * 3, *values[3:19], values[19] * 1.04]
    pipeline, function = curve(off, "pipeline", values), curve(off, "function", values)
    assert (pipeline.points, function.points) == (16, 20)
    assert pipeline.passed
    assert "point_wise_tolerance" in function.failed
    assert "final_loss" in function.failed
    assert pipeline.final_loss_difference == pytest.approx(0.04)


def test_tolerances_follow_the_golden_loss():
    # 4 % off everywhere: within 5 % above 0.5, outside 2 % below.
    for scale, fails in ((1.0, False), (0.2, True)):
        golden = [scale * (1 + 0.01 * i) for i in range(10)]
        verdict = curve([g * 1.04 for g in golden], "function", golden)
        assert ("point_wise_tolerance" in verdict.failed) is fails

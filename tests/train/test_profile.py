"""What bounds a step, from small traces whose answer is plain; interval arithmetic against counting every microsecond."""

import gzip
import json
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from databuild.errors import SourceError
from train.profile import bound_by, clip, length, load_imbalance, load_trace, merged


def kernel(start, duration, name="gemm", device=0, cat="kernel"):
    return {
        "ph": "X",
        "cat": cat,
        "name": name,
        "ts": start,
        "dur": duration,
        "pid": device,
        "args": {"device": device},
    }


def step(start, duration, number=1):
    return {
        "ph": "X",
        "cat": "user_annotation",
        "name": f"ProfilerStep#{number}",
        "ts": start,
        "dur": duration,
        "pid": 9,
    }


def trace(*events):
    noise = [{"ph": "M", "name": "process_name"}, {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 0, "dur": 9e9}]
    return {"traceEvents": [*noise, *events]}


intervals = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), max_size=8)


@given(intervals, st.tuples(st.integers(0, 40), st.integers(0, 40)))
def test_the_union_of_intervals_is_every_point_in_one_of_them(found, span):
    points = {t for start, end in found for t in range(start, end)}
    union = merged(found)
    assert length(found) == len(points)
    assert {t for start, end in union for t in range(start, end)} == points
    assert all(a[1] < b[0] for a, b in pairwise(union))
    assert length(clip(found, span)) == len(points & set(range(*span)))


def test_idle_time_is_what_no_kernel_covers_of_the_steps():
    found = bound_by(
        trace(
            step(0, 50), step(50, 50, 2), kernel(0, 30), kernel(20, 20), kernel(60, 30), kernel(90, 40), kernel(500, 9)
        )
    )
    assert found["window_us"] == 100
    assert found["idle_share"] == pytest.approx(0.2)  # 40 to 60; the last kernel of the steps is cut at 100
    assert found["kernel_launches"] == 4
    assert found["kernel_mean_us"] == pytest.approx((30 + 20 + 30 + 40) / 4)


def test_communication_counts_as_waiting_only_where_nothing_else_runs():
    found = bound_by(
        trace(
            step(0, 100),
            kernel(0, 60),
            kernel(40, 50, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"),
            kernel(45, 5, "NCCL_other"),
            kernel(95, 5, cat="gpu_memcpy"),
        )
    )
    assert found["communication_share"] == pytest.approx(0.5)
    assert found["exposed_communication_share"] == pytest.approx(0.3)
    assert found["idle_share"] == pytest.approx(0.05)
    assert (found["bound_by"], found["kernel_launches"]) == ("communication", 3)
    assert "30%" in found["sentence"]


def test_gpus_are_looked_at_one_by_one():
    found = bound_by(trace(step(0, 100), kernel(0, 100, device=0), kernel(0, 50, device=1)))
    assert (found["gpus"], found["idle_share"]) == (2, pytest.approx(0.25))


def test_without_steps_the_window_is_all_work_and_it_can_be_given():
    plain = trace(kernel(10, 10), kernel(40, 10))
    assert bound_by(plain)["window_us"] == 40
    assert bound_by(plain)["idle_share"] == pytest.approx(0.5)
    assert bound_by(plain, window=(0, 20))["kernel_launches"] == 1


def test_many_short_kernels_are_bound_by_launching_them():
    found = bound_by(trace(step(0, 1000), *(kernel(10 * i, 2) for i in range(100))))
    assert found["bound_by"] == "launches"
    assert "idle 80%" in found["sentence"] and "100 kernels of 2.0 us" in found["sentence"]


def test_gaps_that_no_launching_explains_wait_for_the_host():
    assert bound_by(trace(step(0, 1000), kernel(0, 300), kernel(500, 100)))["bound_by"] == "host"


def test_the_time_the_profiler_adds_is_no_idle_time():
    """A step of 780 us, seen as 1,258 us under the profiler, with 360 us of work."""
    events = trace(step(0, 1258), *(kernel(30 * i, 9) for i in range(40)))
    found = bound_by(events, step_time_s=780e-6)
    assert (found["window_us"], found["step_us"]) == (1258, 780)
    assert found["idle_share"] == pytest.approx(1 - 360 / 780)
    assert found["bound_by"] == "launches"
    assert (
        bound_by(events, step_time_s=5.0)["step_us"] == 1258
    )  # a slower step, such as one that compiled, says nothing
    assert bound_by(events, step_time_s=300e-6)["idle_share"] == 0


def test_a_busy_gpu_computes():
    assert bound_by(trace(step(0, 100), kernel(0, 95)))["bound_by"] == "compute"


def test_uneven_experts_are_named():
    busy = trace(step(0, 100), kernel(0, 95))
    found = bound_by(busy, expert_load={"layers.1": [1, 1], "layers.2": [6, 1, 1, 0]})
    assert found["bound_by"] == "imbalance"
    assert "layers.2 gets 3.0 times the mean" in found["sentence"]
    assert found["expert_imbalance"] == {"layers.1": 1.0, "layers.2": 3.0}
    assert bound_by(busy, expert_load={"layers.1": [2, 1, 2]})["bound_by"] == "compute"


@pytest.mark.parametrize(("load", "expected"), [([1, 1], 1), ([3, 0, 0], 3), ([0, 0], 1), ([5], 1)])
def test_imbalance_is_the_largest_over_the_mean(load, expected):
    assert load_imbalance(load) == expected


def test_a_trace_without_work_of_a_gpu_is_refused():
    for empty in (trace(), trace(step(0, 10)), trace(step(0, 10), kernel(20, 5))):
        with pytest.raises(SourceError, match="no work of a GPU"):
            bound_by(empty)


def test_files_plain_and_packed(tmp_path):
    text = json.dumps(trace(kernel(0, 10))).encode()
    (tmp_path / "a.json").write_bytes(text)
    (tmp_path / "a.json.gz").write_bytes(gzip.compress(text))
    assert bound_by(tmp_path / "a.json") == bound_by(str(tmp_path / "a.json.gz")) == bound_by(json.loads(text))
    for name, content in (("cut.gz", gzip.compress(text)[:20]), ("no.json", b"{"), ("list.json", b"[]")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(SourceError):
            load_trace(tmp_path / name)
    with pytest.raises(SourceError):
        load_trace(tmp_path / "nowhere")

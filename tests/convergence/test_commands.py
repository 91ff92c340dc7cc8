"""`python -m train compare` and `parity`: what they print, write and exit with."""

import json
import re
import sys

import numpy as np
import pytest

from train.convergence.parity import FILE

LOSSES = [3.0 * 0.95**i for i in range(20)]


@pytest.fixture
def call(train_cli):
    return train_cli


def write_run(folder, losses):
    folder.mkdir()
    lines = [{"step": i + 1, "loss": v, "step_time_s": 1.0, "tokens_per_s_per_gpu": 10.0} for i, v in enumerate(losses)]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def test_compare_passes_fails_and_shows_both_sets(call, tmp_path):
    golden = write_run(tmp_path / "golden", LOSSES)
    near = write_run(tmp_path / "near", [v * 1.001 for v in LOSSES])
    late = write_run(tmp_path / "late", [*LOSSES[:-1], LOSSES[-1] * 1.04])
    code, out, _ = call("compare", near, golden, "--perf")
    assert code == 0
    assert re.search(r"pipeline thresholds \(judges\) +passed", out)
    assert "function thresholds" in out
    assert "tokens/s/GPU" in out
    assert call("compare", late, golden)[0] == 0
    code, out, _ = call("compare", late, golden, "--thresholds", "function", "--json")
    assert code == 1
    found = json.loads(out)
    assert found["verdicts"]["function"]["failed"] == ["final_loss"]
    assert found["verdicts"]["pipeline"]["passed"]


def test_compare_refuses_nan_and_what_it_cannot_read(call, tmp_path):
    broken = write_run(tmp_path / "nan", [float("nan")] * 20)
    code, out, _ = call("compare", broken, broken, "--json")
    assert code == 1
    assert "finite" in json.loads(out)["verdicts"]["pipeline"]["failed"]
    code, _, err = call("compare", tmp_path / "nothing", broken)
    assert code == 2
    assert "Traceback" not in err


def test_the_html_plot_holds_both_curves_and_nothing_of_the_network(call, tmp_path):
    golden = write_run(tmp_path / "gol<den", LOSSES)
    holes = write_run(tmp_path / "current", [*LOSSES[:5], float("nan"), *LOSSES[6:]])
    page = tmp_path / "curves.html"
    assert call("compare", holes, golden, "--plot", page)[0] == 1
    text = page.read_text()
    # The gap breaks the current curve in two.
    assert text.count("<polyline") == 3
    assert [len(points.split()) for points in re.findall(r'points="([^"]*)"', text)] == [5, 14, 20]
    assert "gol&lt;den" in text
    assert not re.search(r"(src|href)=|url\(|@import|<script", text)
    assert call("compare", holes, golden, "--plot", tmp_path / "curves.pdf")[0] == 2
    assert call("compare", holes, golden, "--plot", tmp_path / "no" / "such.html")[0] == 5


def test_a_png_needs_matplotlib_and_says_so(call, tmp_path, monkeypatch):
    golden = write_run(tmp_path / "golden", LOSSES)
    with monkeypatch.context() as patch:
        for name in ("matplotlib", "matplotlib.backends.backend_agg", "matplotlib.figure"):
            patch.setitem(sys.modules, name, None)
        code, _, err = call("compare", golden, golden, "--plot", tmp_path / "a.png")
    assert code == 2
    assert "matplotlib" in err and "databuild[report]" in err
    pytest.importorskip("matplotlib")
    assert call("compare", golden, golden, "--plot", tmp_path / "a.png")[0] == 0
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")


CONFIG = "tp: {tp}\npp: 1\ncp: 1\nep: 1\netp: 1\nsequence_parallel: false\nrecompute: none\nmicro_batch_size: 1\nseed: {seed}\n"


def write_dump(folder, logprob, *, tp=1, seed=42, rows="a" * 64, position=None):
    folder.mkdir()
    n = len(logprob)
    np.savez(
        folder / FILE,
        row=np.arange(n) // 4,
        position=np.arange(n, dtype=np.int32) % 4 + 1 if position is None else position,
        logprob=np.asarray(logprob, np.float32),
        rows_sha256=np.array(rows),
        gpus=np.array(4),
        config=np.array(CONFIG.format(tp=tp, seed=seed)),
    )
    return folder


def test_parity_is_the_mean_difference_and_is_judged_by_the_floor(call, tmp_path):
    base = -np.arange(1, 13) / 4
    a = write_dump(tmp_path / "a", base)
    again = write_dump(tmp_path / "again", base + np.tile([0.5, -0.25], 6))
    b = write_dump(tmp_path / "b", base + np.tile([0.25, -0.5], 6), tp=4)
    far = write_dump(tmp_path / "far", base + 0.75, tp=2)
    code, out, _ = call("parity", a, b, "--floor", again, "--json")
    found = json.loads(out)
    assert code == 0
    assert (found["mean"], found["floor"], found["limit"], found["num_targets"]) == (0.375, 0.375, 0.5625, 12)
    assert found["layouts"] == ["dp4", "tp4"]
    assert call("parity", a, far, "--floor", again)[0] == 1
    assert call("parity", a, far, "--floor", again, "--factor", 2)[0] == 0
    code, out, _ = call("parity", a, far)
    assert code == 0
    assert "not judged" in out


def test_parity_refuses_other_rows_weights_tokens_and_floors(call, tmp_path):
    base = -np.arange(1, 13) / 4
    a = write_dump(tmp_path / "a", base)
    others = [
        write_dump(tmp_path / "rows", base, rows="b" * 64),
        write_dump(tmp_path / "seed", base, seed=1),
        write_dump(tmp_path / "tokens", base, position=np.arange(12, dtype=np.int32) % 4 + 2),
        write_dump(tmp_path / "nan", [np.nan, *base[1:]]),
    ]
    for other in others:
        code, _, err = call("parity", a, other)
        assert code == 2, err
        assert "Traceback" not in err
    assert call("parity", a, a, "--floor", write_dump(tmp_path / "tp", base, tp=2))[0] == 2
    (tmp_path / "junk.npz").write_bytes(b"no zip")
    assert call("parity", a, tmp_path / "junk.npz")[0] == 2

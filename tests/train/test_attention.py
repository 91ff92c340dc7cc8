"""The parts of attention and of cut weights that need no process group."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("megatron.core")

from train.attention import causal_mask, undo_zigzag, zigzag  # noqa: E402
from train.documents import document_ids, varlen_bounds  # noqa: E402
from train.init import Place, draw  # noqa: E402


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_zigzag_is_undone(ranks: int) -> None:
    row = torch.arange(16)
    parts = [zigzag(row, ranks, rank, 0) for rank in range(ranks)]
    assert all(len(part) == 16 // ranks for part in parts)
    assert torch.equal(undo_zigzag(torch.cat(parts), ranks, 0) if ranks > 1 else parts[0], row)


def test_zigzag_gives_each_rank_the_same_causal_work() -> None:
    assert {int(zigzag(torch.arange(16), 4, rank, 0).sum()) for rank in range(4)} == {30}


def test_a_query_sees_its_own_document_up_to_itself() -> None:
    mask = causal_mask(torch.tensor([[0, 0, 1, 1]]), 1, 3, 4)[0, 0]
    assert mask.int().tolist() == [[1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 1, 1]]


@pytest.mark.parametrize("first, queries", [(0, 12), (0, 3), (3, 3), (6, 3), (9, 3)])
def test_the_bounds_of_the_kernel_give_the_dense_mask(first: int, queries: int) -> None:
    """Ends aligned in every document, as the flash kernel does: a query sees what the dense mask lets it see."""
    generator = torch.Generator().manual_seed(first + queries)
    for _ in range(50):
        begins = torch.rand(2, 12, generator=generator) < 0.3
        begins[:, 0] = True
        bounds = torch.cat([begins.flatten().nonzero()[:, 0], torch.tensor([24])]).int()
        ids = document_ids(bounds, 2, 12)
        assert torch.equal(ids.flatten(), begins.flatten().cumsum(0) - 1)
        seen = torch.zeros(2 * queries, 2 * (first + queries), dtype=torch.bool)
        of_queries, of_keys = varlen_bounds(bounds, 12, first, queries)
        assert of_queries.dtype == of_keys.dtype == torch.int32
        for q, q_end, k, k_end in zip(of_queries[:-1], of_queries[1:], of_keys[:-1], of_keys[1:], strict=True):
            rows, columns = int(q_end - q), int(k_end - k)
            seen[q:q_end, k:k_end] = torch.ones(rows, columns, dtype=torch.bool).tril(columns - rows)
        dense = causal_mask(ids, first, queries, first + queries)[:, 0]
        assert torch.equal(seen, torch.block_diag(*dense).bool())


def test_swiglu_weights_are_cut_in_gate_and_value() -> None:
    whole = torch.arange(8)[:, None]
    cut = [
        Place(name="x", shape=(8, 1), dim=0, parts=2, part=i, blocks=2).cut(whole).flatten().tolist() for i in (0, 1)
    ]
    assert cut == [[0, 1, 4, 5], [2, 3, 6, 7]]


def test_drawn_weights_are_pinned() -> None:
    """Runs of the same seed start alike, today and later."""
    from train.config import TrainConfig

    config = TrainConfig(num_layers=2, hidden_size=8, ffn_hidden_size=8, num_attention_heads=1, init_method_std=1.0)
    found = draw(Place(name="decoder.layers.0.mlp.linear_fc1.weight", shape=(2, 2)), config)
    assert found.flatten().tolist() == pytest.approx(PINNED, abs=1e-6)


PINNED = [-0.31508, -1.616164, -0.386039, 0.085334]

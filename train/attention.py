"""Core attention on torch's scaled_dot_product_attention, with context parallelism and document boundaries."""

from __future__ import annotations

import inspect
from typing import Any

import torch
import torch.nn.functional as F
from megatron.core import parallel_state
from megatron.core.tensor_parallel.mappings import gather_from_sequence_parallel_region
from megatron.core.transformer.module import MegatronModule
from torch import Tensor
from torch.nn.attention.bias import causal_lower_right

from train.documents import document_ids, varlen_bounds


def zigzag(full: Tensor, cp_size: int, cp_rank: int, dim: int) -> Tensor:
    """The two chunks of a row that a context-parallel rank holds: r and 2n-1-r of 2n, so that causal work is even."""
    if cp_size == 1:
        return full
    chunks = full.chunk(2 * cp_size, dim)
    return torch.cat([chunks[cp_rank], chunks[2 * cp_size - 1 - cp_rank]], dim)


def undo_zigzag(gathered: Tensor, cp_size: int, dim: int) -> Tensor:
    """The row in order, from the parts of all ranks one after another."""
    chunks = gathered.chunk(2 * cp_size, dim)
    return torch.cat([*chunks[0::2], *reversed(chunks[1::2])], dim)


def causal_mask(doc_ids: Tensor, first_query: int, queries: int, keys: int) -> Tensor:
    """bool[b, 1, queries, keys], True where a query may look: at itself and before, within its own document.

    doc_ids int[b, S] numbers the documents of each row; the queries are positions first_query.. of the row.
    """
    positions = torch.arange(keys, device=doc_ids.device)
    rows = positions[first_query : first_query + queries]
    causal = rows[:, None] >= positions[None]
    same = doc_ids[:, first_query : first_query + queries, None] == doc_ids[:, None, :keys]
    return (causal & same)[:, None]


class _SharedOverTensorParallel(torch.autograd.Function):
    """Identity on the part of the keys [s, b, heads, dim] that is one key for all heads of all tp ranks.

    Backward sums its gradient over heads and ranks (and hands it to the first head, which the broadcast over heads adds up).
    Megatron gathers that key over tp, uses it for each rank's heads, and sums nothing: the gradient of MLA's rotary key
    would be that of the rank's own heads.
    """

    @staticmethod
    def forward(ctx: Any, keys: Tensor, group: Any) -> Tensor:
        ctx.group = group
        return keys.view_as(keys)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        total = gradient.sum(2)
        torch.distributed.all_reduce(total, group=ctx.group)
        result = torch.zeros_like(gradient)
        result[:, :, 0] = total
        return result, None


class CoreAttention(MegatronModule):
    """Causal attention over a row, or within its documents; what Transformer Engine's core attention is elsewhere.

    With context parallelism the keys and values of the whole row are gathered (backward: reduce-scatter), put in order, and
    each of the rank's two query chunks attends to the keys up to its own end.
    """

    def __init__(
        self,
        config: Any,
        layer_number: int,
        attn_mask_type: Any,
        attention_type: str,
        attention_dropout: float | None = None,
        softmax_scale: float | None = None,
        k_channels: int | None = None,
        v_channels: int | None = None,
        cp_comm_type: str | None = None,
        pg_collection: Any = None,
        **_: Any,
    ) -> None:
        super().__init__(config=config)
        self.scale = softmax_scale or (k_channels or config.kv_channels) ** -0.5
        self.cp_group = getattr(pg_collection, "cp", None) or parallel_state.get_context_parallel_group()
        self.tp_group = getattr(pg_collection, "tp", None) or parallel_state.get_tensor_model_parallel_group()
        self.shared_key_dim = config.qk_pos_emb_head_dim if config.multi_latent_attention else 0

    def forward(self, query: Tensor, key: Tensor, value: Tensor, attention_mask: Tensor | None, **_: Any) -> Tensor:
        """[s, b, heads * value_dim] from query, key and value [s, b, heads or groups, dim]; s is this rank's part of the row.

        attention_mask: int32[d + 1], where the documents of the micro-batch's whole rows begin and end, as document_ids takes
        it, for attention within documents; None for the whole row.
        """
        if self.shared_key_dim and self.tp_group.size() > 1:
            own, shared = key.split([key.shape[-1] - self.shared_key_dim, self.shared_key_dim], -1)
            key = torch.cat([own, _SharedOverTensorParallel.apply(shared, self.tp_group)], -1)
        value_dim = value.shape[-1]
        if value_dim < query.shape[-1]:
            # Flash kernels want one head size; MLA's queries and keys are longer than its values.
            value = F.pad(value, (0, query.shape[-1] - value_dim))
        cp_size = self.cp_group.size()
        if cp_size > 1:
            key, value = (
                undo_zigzag(gather_from_sequence_parallel_region(x.contiguous(), group=self.cp_group), cp_size, 0)
                for x in (key, value)
            )
        q, k, v = (x.permute(1, 2, 0, 3) for x in (query, key, value))
        if cp_size == 1:
            out = self._attend(q, k, v, attention_mask, 0, q.shape[2])
        else:
            chunk = q.shape[2] // 2
            rank = self.cp_group.rank()
            parts = [(q[:, :, :chunk], rank), (q[:, :, chunk:], 2 * cp_size - 1 - rank)]
            whole = 2 * cp_size * chunk
            out = torch.cat([self._attend(part, k, v, attention_mask, i * chunk, whole) for part, i in parts], 2)
        out = out[..., :value_dim].permute(2, 0, 1, 3)
        return out.reshape(out.shape[0], out.shape[1], -1)

    def _attend(self, q: Tensor, k: Tensor, v: Tensor, bounds: Tensor | None, first: int, row_tokens: int) -> Tensor:
        """Attention of queries [b, heads, n, dim] at positions first.. to the keys before them."""
        queries, keys = q.shape[2], first + q.shape[2]
        k, v = k[:, :, :keys], v[:, :, :keys]
        grouped = q.shape[1] != k.shape[1]
        if bounds is None and keys == queries:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=self.scale, enable_gqa=grouped)
        if grouped:
            k, v = (x.repeat_interleave(q.shape[1] // x.shape[1], 1) for x in (k, v))
        if bounds is not None and q.is_cuda and q.dtype != torch.float32:
            return self._attend_by_document(q, k, v, varlen_bounds(bounds, row_tokens, first, queries))
        if bounds is not None:
            mask: Any = causal_mask(document_ids(bounds, q.shape[0], row_tokens), first, queries, keys)
        elif q.is_cuda:
            mask = causal_lower_right(queries, keys)  # keeps the flash kernel
        else:
            mask = torch.ones(queries, keys, dtype=torch.bool).tril(first)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=self.scale)

    def _attend_by_document(self, q: Tensor, k: Tensor, v: Tensor, bounds: tuple[Tensor, Tensor]) -> Tensor:
        """The flash kernel for sequences of any lengths: time and memory of the documents, not of the row."""
        from torch.nn.attention.varlen import varlen_attn  # needs a build of torch for GPUs

        flat = (x.transpose(1, 2).flatten(0, 1) for x in (q, k, v))
        # torch 2.10 names it is_causal, later versions by a window.
        named = "is_causal" in inspect.signature(varlen_attn).parameters
        causal: dict[str, Any] = {"is_causal": True} if named else {"window_size": (-1, 0)}
        out = varlen_attn(*flat, *bounds, q.shape[2], k.shape[2], scale=self.scale, **causal)
        return out.view(q.shape[0], q.shape[2], *out.shape[1:]).transpose(1, 2)

"""A DeepSeek-V4 model, or the layers of one pipeline stage of it. Nothing here needs Megatron or a process group.

Matrices have torch's default dtype at the time they are made. What the Hugging Face model keeps in fp32 is made in fp32: norms,
sinks, hyper-connections, position biases, the correction bias.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from train.deepseek_v4.attention import Attention
from train.deepseek_v4.config import V4Config
from train.deepseek_v4.experts import ExpertShare, Mixture
from train.deepseek_v4.fused import fused
from train.deepseek_v4.hyper import HyperConnection, HyperHead
from train.deepseek_v4.norm import RMSNorm
from train.deepseek_v4.rows import RowMap, map_rows
from train.documents import document_ids

Recompute = Callable[..., Tensor]


@fused(dynamic=False)
def _losses(logits: Tensor, labels: Tensor) -> Tensor:
    return F.cross_entropy(logits.float(), labels, reduction="none")


class Layer(nn.Module):
    """Streams [b, s, n, h] -> [b, s, n, h]. layer_number counts from 1 over the whole model."""

    def __init__(self, c: V4Config, layer_number: int, share: ExpertShare) -> None:
        super().__init__()
        self.layer_number = layer_number
        self.self_attn = Attention(c, c.attention_types[layer_number - 1])
        self.mlp = Mixture(c, layer_number, share)
        self.input_layernorm = RMSNorm(c.hidden_size, c.rms_norm_eps)
        self.post_attention_layernorm = RMSNorm(c.hidden_size, c.rms_norm_eps)
        self.attn_hc = HyperConnection(c)
        self.ffn_hc = HyperConnection(c)

    def forward(self, streams: Tensor, tokens: Tensor, rows: RowMap) -> Tensor:
        """See the class; tokens int64[b, s]."""
        entered, out_of, across = self.attn_hc.enter(streams)
        streams = self.attn_hc.leave(out_of, across, self.self_attn(self.input_layernorm(entered), rows), streams)
        entered, out_of, across = self.ffn_hc.enter(streams)
        output = self.mlp(self.post_attention_layernorm(entered), tokens)
        return self.ffn_hc.leave(out_of, across, output, streams)


class V4Model(nn.Module):
    """The layers from first to last (counted from 0), with the embedding if the first is 0 and the head if the last is the last.

    It has Megatron's interface of a pipeline stage: pre_process, post_process, set_input_tensor. Between stages goes
    [s, b, n * h]. Names of parameters count layers from the stage's first; whole_name gives the one in the whole model.
    """

    share_embeddings_and_output_weights = False

    def __init__(
        self,
        c: V4Config,
        layers: range | None = None,
        share: ExpertShare | None = None,
        recompute: Recompute | None = None,
    ) -> None:
        super().__init__()
        layers = range(c.num_hidden_layers) if layers is None else layers
        share = share or ExpertShare()
        self.c, self.first_layer, self.share, self.recompute = c, layers.start, share, recompute
        self.pre_process, self.post_process = layers.start == 0, layers.stop == c.num_hidden_layers
        if self.pre_process:
            self.embedding = nn.ModuleDict({"word_embeddings": nn.Embedding(c.vocab_size, c.hidden_size)})
        self.decoder = nn.ModuleDict({"layers": nn.ModuleList(Layer(c, i + 1, share) for i in layers)})
        if self.post_process:
            self.hc_head = HyperHead(c)
            self.decoder["final_layernorm"] = RMSNorm(c.hidden_size, c.rms_norm_eps)
            self.output_layer = nn.Linear(c.hidden_size, c.vocab_size, bias=False)
        self.input_tensor: Tensor | None = None

    def set_input_tensor(self, tensor: Any) -> None:
        """What the stage before sends; Megatron gives a list of one."""
        self.input_tensor = tensor[0] if isinstance(tensor, list) else tensor

    def forward(
        self,
        tokens: Tensor,
        position_ids: Tensor | None = None,
        doc_bounds: Tensor | None = None,
        labels: Tensor | None = None,
    ) -> Tensor:
        """float32[b, s] cross entropy of labels, or logits [b, s, vocab] without them; before the last stage [s, b, n * h].

        tokens int64[b, s]. doc_bounds int32[d + 1]: where the documents of the rows begin and end, as document_ids takes it;
        None: a row is one. position_ids are not used: positions follow from the documents.
        """
        doc_ids = None if doc_bounds is None else document_ids(doc_bounds, *tokens.shape)
        rows = map_rows(self.c, tokens.shape[1], doc_ids, tokens.device)
        if self.pre_process:
            embedded = self.embedding["word_embeddings"](tokens)
            streams = embedded.unsqueeze(2).expand(-1, -1, self.c.hc_mult, -1).contiguous()
        else:
            assert self.input_tensor is not None  # the schedule sets it
            streams = self.input_tensor.transpose(0, 1).unflatten(2, (self.c.hc_mult, -1)).contiguous()
        for layer in self.decoder["layers"]:
            if self.recompute is not None:
                streams = self.recompute(lambda x, layer=layer: layer(x, tokens, rows), streams)
            else:
                streams = layer(streams, tokens, rows)
        if not self.post_process:
            return streams.flatten(2).transpose(0, 1).contiguous()
        logits: Tensor = self.output_layer(self.decoder["final_layernorm"](self.hc_head(streams)))
        if labels is None:
            return logits
        result: Tensor = _losses(logits.flatten(0, 1), labels.flatten())
        return result.view_as(labels)

    def whole_name(self, name: str) -> str:
        """The name in the whole model of this stage's parameter or buffer."""
        prefix = "decoder.layers."
        if not name.startswith(prefix):
            return name
        number, rest = name.removeprefix(prefix).split(".", 1)
        return f"{prefix}{self.first_layer + int(number)}.{rest}"

"""Hard texts that go through both engines before a build starts. Any difference stops it."""

from __future__ import annotations

from functools import cache

from databuild.errors import IntegrityError
from databuild.tokenizer import Engine, FastEngine, PinnedTokenizer

_PIECES = (
    "", " ", "  ", "   ", "\t", "\n", "\n\n", " \n ", "\r\n", "\r", "\u00a0", "\u2028", "\u0085", "\u3000", "\x00",
    "\x1f", "\ufeff", "a", "A", "é", "e\u0301", "ß", "ſ", "ﬁ", "İ", "ı", "Ω", "ж", "א", "ع", "हि", "ไทย", "한국어",
    "日本語", "カタカナ", "中文", "龥龦", "𠮷", "👩‍👩‍👧‍👦", "🇩🇪", "\U0001f3ff", "\ufffd", "\u200b", "\u200d", "\u202e", "\ue000",
    "\U0010ffff", "\u0e33", "\u1100\u1161", "0", "12", "123", "1234", "1234567890", "٣٤٥", "Ⅻ", "½", "²", "3.14",
    "1,000,000", "!", "...", "?!", "(", ")]}", "``", "```py\n", "'s", "'T", "'re", "n't", "don't", "_x_", "<b>",
    "</b>", "&amp;", "$\\frac{1}{2}$", "→", "—", "·", "・", "«»", "“”", "http://a.b/c?d=e#f", "a@b.co", "CamelCase",
    "snake_case", "kebab-case", "ALLCAPS", "x" * 300, "ab" * 200, " " * 70, "\n" * 40, "=" * 80, "aé中1!" * 20,
    "<｜User｜>", "<｜Assistant｜>", "<think>", "</think>", "<｜end▁of▁sentence｜>", "｜DSML｜", "<|EOT|>", "<dsml:", "<｜",
    "｜>", "▁",
)  # fmt: skip


def hard_texts() -> list[str]:
    """Each piece alone, and every two neighbours at two distances joined: white space and scripts meet in many ways."""
    joined = [a + b + a for step in (1, 7, 31) for a, b in zip(_PIECES, _PIECES[step:] + _PIECES[:step], strict=True)]
    return [*_PIECES, *joined]


@cache
def gated_engine(tokenizer: PinnedTokenizer, full_vocabulary: bool = False) -> tuple[FastEngine | None, int]:
    """(the fast engine, number of gate texts that it and the reference agree on); (None, 0) where there is none."""
    fast = tokenizer.fast_full_vocabulary if full_vocabulary else tokenizer.fast
    reference = tokenizer.full_vocabulary if full_vocabulary else tokenizer.reference
    return fast, 0 if fast is None else check_engines(fast, reference)


def check_engines(fast: Engine, reference: Engine) -> int:
    """Number of texts that both engines agree on; IntegrityError at the first that they do not."""
    texts = hard_texts()
    fast_ids, fast_offsets = fast.encode(texts)
    reference_ids, reference_offsets = reference.encode(texts)
    for i, text in enumerate(texts):
        found = fast_ids[fast_offsets[i] : fast_offsets[i + 1]].tolist()
        expected = reference_ids[reference_offsets[i] : reference_offsets[i + 1]].tolist()
        if found != expected:
            raise engines_differ(fast, reference, f"gate text {i}: {text[:40]!a}", expected, found)
    return len(texts)


def engines_differ(
    fast: Engine, reference: Engine, where: str, expected: list[int], found: list[int]
) -> IntegrityError:
    """The error for a text that the engines tokenize differently."""
    first = next(
        (i for i, (a, b) in enumerate(zip(expected, found, strict=False)) if a != b), min(len(expected), len(found))
    )
    return IntegrityError(
        f"{fast.name} and {reference.name} give different tokens",
        where=f"{where}, token {first}",
        expected=str(expected[first : first + 8]),
        found=str(found[first : first + 8]),
        next_step="run again with DATABUILD_ENGINE=reference, and report the text",
    )

"""What holds of every stream and its rows, whatever the conversations are."""

import twin
from hypothesis import given, settings
from hypothesis import strategies as st
from properties.strategies import any_records, records
from streams import build_in_memory, tokenizer

from databuild.order import permutation
from masks.policy import MASK_TYPES

SIZES = st.sampled_from([2, 3, 7, 16, 64])
SEPARATORS = st.sampled_from(["ensure", "always", "none"])
BOS = st.sampled_from(["keep", "first", "strip"])
HEADERLESS = ["reference", "official", "reject"]
SEEDS = st.integers(0, 1000)
TWIN_TOKENIZER = twin.load_tokenizer()
MANY = settings(max_examples=150, deadline=None)


def _twin_of(made, built):
    assert made.rows == [(list(a), list(b)) for a, b in built.rows]
    assert (made.doc_starts, made.doc_rows) == (built.doc_starts, built.doc_rows)
    assert (made.rows_sha256, made.docs_sha256) == (built.rows_sha256, built.docs_sha256)
    assert made.counts == built.counts


@MANY
@given(any_records, SIZES, SEEDS, SEPARATORS, BOS, st.integers(1, 30))
def test_every_row_and_count_equals_the_slow_twin(data, size, seed, separator, bos, batch):
    options = {"row_tokens": size, "seed": seed, "separator": separator, "bos": bos}
    _twin_of(build_in_memory(data, batch=batch, **options), twin.twin_build(data, **options))


@MANY
@given(any_records, SIZES, SEEDS, st.integers(1, 12), st.integers(1, 30))
def test_stopping_at_rows_equals_the_slow_twin_and_reads_no_further(data, size, seed, rows, batch):
    options = {"row_tokens": size, "seed": seed, "rows": rows}
    _twin_of(build_in_memory(data, batch=batch, **options), twin.twin_build(data, **options))


@MANY
@given(any_records, SIZES, SEPARATORS, BOS, st.sampled_from(sorted(MASK_TYPES)), st.sampled_from(HEADERLESS))
def test_the_plain_way_equals_the_general_way(data, size, separator, bos, mask_type, headerless):
    options = {"row_tokens": size, "seed": 1, "separator": separator, "bos": bos}
    options |= {"loss_mask_type": mask_type, "headerless": headerless}
    assert build_in_memory(data, **options) == build_in_memory(data, plain_way=False, **options)


@MANY
@given(records(), SIZES, SEEDS)
def test_tokens_are_conserved(data, size, seed):
    counts = build_in_memory(data, row_tokens=size, seed=seed).counts
    assert counts["tokens"] == counts["rows_cut"] * size + counts["tail_tokens"]
    assert counts["conversations"] == counts["used"] + sum(counts["skipped"].values()) == len(data)
    assert counts["tokens"] == sum(source["tokens"] for source in counts["by_source"].values())


@MANY
@given(records(), SEEDS)
def test_decoding_the_stream_gives_the_rendered_text(data, seed):
    """With rows of the whole stream's length nothing is cut, so the row is the stream, tail included."""
    total = build_in_memory(data, row_tokens=2, seed=seed).counts["tokens"]
    built = build_in_memory(data, row_tokens=max(total, 2), seed=seed)
    if not built.rows:
        return
    expected = ""
    for index in permutation(len(data), seed):
        messages = data[index]["messages"]
        ids, _ = twin.encode_conversation(messages, TWIN_TOKENIZER)
        expected += twin.render_text(messages) + ("" if ids[-1] == 1 else "<｜end▁of▁sentence｜>")
    assert tokenizer().full_vocabulary.decode(built.rows[0][0]) == expected


@MANY
@given(records(max_size=8), SEPARATORS, st.sampled_from(["keep", "strip"]), SEEDS, SEEDS)
def test_seeds_skips_and_neighbours_never_move_a_token_between_documents(data, separator, bos, seed, other):
    """What a conversation contributes is the same in every stream it is part of."""

    def documents(some, of_seed):
        options = {"separator": separator, "bos": bos, "seed": of_seed}
        total = build_in_memory(some, row_tokens=2, **options).counts["tokens"]
        built = build_in_memory(some, row_tokens=max(total, 2), **options)
        if not built.rows:
            return None
        (ids, mask), starts = built.rows[0], built.doc_starts[0]
        return {
            row: (ids[a:b], mask[max(a, 1) : b])
            for row, a, b in zip(built.doc_rows[0], starts, [*starts[1:], len(ids)], strict=True)
        }

    rejected = [{"id": None, "messages": [], "source": None}]
    here, there = documents(data, seed), documents(data + rejected, other)
    if here is None or there is None:
        return
    assert here.keys() == there.keys()
    for row, (ids, mask) in here.items():
        assert ids == there[row][0]
        shorter = min(len(mask), len(there[row][1]))  # index 0 of a row is never a target
        assert mask[len(mask) - shorter :] == there[row][1][len(there[row][1]) - shorter :]

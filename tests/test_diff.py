"""`databuild diff`: nothing where nothing differs, else exactly what does; a slow twin says the same of any two builds."""

import json
import shutil

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from looking import copied, rewritten, rows_of, taken
from support import build_files, records, use_shared_tokenizer, write_jsonl

from databuild.diff import compare

FIELDS = ("input_ids", "loss_mask", "doc_starts", "doc_rows")
MANY = settings(max_examples=25, deadline=None)


@pytest.fixture(autouse=True, scope="module")
def no_sync():
    """Small builds by the hundred need not survive a power cut."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("os.fsync", lambda _: None)
        yield


@pytest.fixture(scope="module")
def builds(tmp_path_factory):
    """A folder with source.jsonl, its build `rows`, and the same of another seed, `seed`, and another mask, `mask`."""
    folder = tmp_path_factory.mktemp("diff")
    with pytest.MonkeyPatch.context() as patch:
        use_shared_tokenizer(patch)
        source = write_jsonl(folder / "source.jsonl", records(60))
        build_files(folder / "rows", [source])
        build_files(folder / "seed", [source], seed=7)
        build_files(folder / "mask", [source], loss_mask_type="deepseek_v4_no_eos")
        build_files(folder / "short", [source], row_tokens=32)
        build_files(folder / "other", [write_jsonl(folder / "other.jsonl", records(60, seed=9))])
    return folder


def table(folder):
    return pq.read_table(folder / "rows.parquet").to_pylist()


def slow_twin(a, b):
    """What `compare` must say of rows, said with lists."""
    rows, others = table(a), table(b)
    whole = [[tuple(map(tuple, (row[name] for name in FIELDS))) for row in side] for side in (rows, others)]
    differ = [
        i for i in range(max(map(len, whole)))
        if i >= len(rows) or i >= len(others) or whole[0][i] != whole[1][i]
    ]  # fmt: skip
    if not differ:
        return None
    left = {i: whole[0][i] for i in differ if i < len(rows)}
    right = {i: whole[1][i] for i in differ if i < len(others)}
    moved, only_a = 0, []
    for i, row in left.items():
        match = next((j for j in sorted(right) if right[j] == row), None)
        if match is None:
            only_a.append(i)
        else:
            moved += 1
            del right[match]
    first = differ[0]
    token, what = 0, "end"
    if first < len(rows) and first < len(others):
        mine, theirs = rows[first], others[first]
        size = len(mine["input_ids"])
        unlike = [
            t for t in range(size)
            if (mine["input_ids"][t], mine["loss_mask"][t]) != (theirs["input_ids"][t], theirs["loss_mask"][t])
        ]  # fmt: skip
        if unlike:
            token = unlike[0]
            what = "token" if mine["input_ids"][token] != theirs["input_ids"][token] else "mask"
        elif mine["doc_starts"] != theirs["doc_starts"]:
            token, what = min(set(mine["doc_starts"]) ^ set(theirs["doc_starts"])), "boundary"
        else:
            pairs = zip(mine["doc_starts"], mine["doc_rows"], theirs["doc_rows"], strict=True)
            token, what = next(start for start, x, y in pairs if x != y), "conversation"
    return len(differ), moved, only_a, sorted(right), first, token, what


def said(found):
    rows = found.rows
    if rows is None:
        return None
    return rows.num_differ, rows.num_moved, rows.only_a, rows.only_b, rows.first.row, rows.first.token, rows.first.what


def shortened(twin):
    return twin and (*twin[:2], twin[2][:10], twin[3][:10], *twin[4:])


@pytest.mark.parametrize("name", ["rows", "seed", "mask", "short", "other"])
def test_a_build_equals_itself_and_its_copy(cli, builds, tmp_path, name):
    shutil.copytree(builds / name, tmp_path / "copy")
    for other in (builds / name, tmp_path / "copy"):
        ran = cli("diff", builds / name, other, "--json")
        assert ran.code == 0 and ran.json["equal"] and ran.json["rows"] is None and ran.json["manifest"] == {}
    assert "equal: " in cli("diff", builds / name, tmp_path / "copy").out


@pytest.mark.parametrize("a", ["rows", "seed", "mask", "other"])
@pytest.mark.parametrize("b", ["rows", "seed", "mask", "other"])
def test_two_builds_as_the_slow_twin_sees_them(builds, a, b):
    assert said(compare(builds / a, builds / b)) == shortened(slow_twin(builds / a, builds / b))


@MANY
@given(st.data())
def test_one_change_is_named_by_its_row_and_token(builds, tmp_path_factory, data):
    rows = copied(rows_of(builds / "rows"))
    num, size = rows.input_ids.shape
    row, token = data.draw(st.integers(0, num - 1)), data.draw(st.integers(1, size - 1))
    span = slice(int(rows.doc_offsets[row]), int(rows.doc_offsets[row + 1]))
    kind = data.draw(st.sampled_from(["token", "mask", "boundary", "conversation"]))
    if kind == "token":
        rows.input_ids[row, token] = (rows.input_ids[row, token] + data.draw(st.integers(1, 1000))) % 100_000
    elif kind == "mask":
        if rows.loss_mask[row].sum() == rows.loss_mask[row, token]:
            return  # a row keeps a target
        rows.loss_mask[row, token] ^= 1
    elif kind == "conversation":
        place = data.draw(st.integers(span.start, span.stop - 1))
        token = int(rows.doc_starts[place])
        rows.doc_rows[place] = (rows.doc_rows[place] + data.draw(st.integers(1, 59))) % 60
    else:
        if span.stop - span.start < 2:
            return
        place = data.draw(st.integers(span.start + 1, span.stop - 1))
        low = int(rows.doc_starts[place - 1]) + 1
        high = int(rows.doc_starts[place + 1]) - 1 if place + 1 < span.stop else size - 1
        before, after = int(rows.doc_starts[place]), data.draw(st.integers(low, high))
        if before == after:
            return
        rows.doc_starts[place] = after
        token = min(before, after)
    changed = rewritten(builds / "rows", rows, tmp_path_factory.mktemp("changed") / "rows")
    for a, b in ((builds / "rows", changed), (changed, builds / "rows")):
        found = compare(a, b)
        assert said(found) == (1, 0, [row], [row], row, token, kind)
        assert not found.equal and said(found) == slow_twin(a, b)
        digest = "rows.rows_sha256" if kind in ("token", "mask") else "rows.docs_sha256"
        assert digest in found.manifest


@MANY
@given(st.data())
def test_another_order_is_seen_as_such(builds, tmp_path_factory, data):
    rows = rows_of(builds / "rows")
    order = data.draw(st.permutations(range(len(rows))))
    kept = order[: data.draw(st.integers(1, len(rows)))]
    changed = rewritten(builds / "rows", taken(rows, kept), tmp_path_factory.mktemp("order") / "rows")
    found = compare(builds / "rows", changed)
    assert said(found) == shortened(slow_twin(builds / "rows", changed))
    if found.rows is not None:
        assert found.rows.other_order == (len(kept) == len(rows))
        assert found.rows.num_only_a - found.rows.num_only_b == len(rows) - len(kept)


@MANY
@given(st.lists(st.integers(0, 4), min_size=1, max_size=9), st.lists(st.integers(0, 4), min_size=1, max_size=9))
def test_rows_that_are_there_twice_are_counted_twice(builds, tmp_path_factory, left, right):
    rows, folder = rows_of(builds / "rows"), tmp_path_factory.mktemp("twice")
    a, b = (
        rewritten(builds / "rows", taken(rows, order), folder / name) for name, order in (("a", left), ("b", right))
    )
    found = compare(a, b)
    assert said(found) == shortened(slow_twin(a, b))
    if found.rows is not None and len(left) == len(right):
        assert found.rows.other_order == (sorted(left) == sorted(right))


def test_conversations_that_moved_or_are_missing(builds, tmp_path):
    def places(folder):
        first = {}
        for row in table(folder):
            for start, source_row in zip(row["doc_starts"], row["doc_rows"], strict=True):
                first.setdefault(source_row, (row["row"], start))
        return first

    less = rewritten(builds / "rows", taken(rows_of(builds / "rows"), range(9)), tmp_path / "less")
    for a, b in ((builds / "rows", builds / "seed"), (builds / "rows", less), (less, builds / "seed")):
        left, right = places(a), places(b)
        found = compare(a, b).conversations
        assert found.num_only_a == len(left.keys() - right.keys())
        assert found.only_a == sorted(left.keys() - right.keys())[:10]
        assert found.only_b == sorted(right.keys() - left.keys())[:10]
        moved = [(s, left[s], right[s]) for s in sorted(left.keys() & right.keys()) if left[s] != right[s]]
        assert (found.num_moved, found.moved) == (len(moved), moved[:10])
    assert compare(builds / "rows", builds / "other").conversations is None


def test_what_the_command_says(cli, builds):
    ran = cli("diff", builds / "rows", builds / "mask")
    assert ran.code == 1 and ran.err == ""
    assert "spec.loss_mask_type: deepseek_v4 | deepseek_v4_no_eos" in ran.out and "another mask" in ran.out
    first = cli("diff", builds / "rows", builds / "mask", "--json").json["rows"]["first"]
    row = table(builds / "rows")[first["row"]]
    assert first["a"]["token_id"] == row["input_ids"][first["token"]] == first["b"]["token_id"] == 1
    assert first["a"]["trained"] and not first["b"]["trained"] and first["a"]["text"] == "<｜end▁of▁sentence｜>"
    assert cli("diff", builds / "rows", builds / "seed").out.count("source row") >= 2


def test_conversations_that_stay_where_they_are(cli, builds, tmp_path):
    rows = copied(rows_of(builds / "rows"))
    rows.input_ids[3, 9] += 1
    changed = rewritten(builds / "rows", rows, tmp_path / "changed")
    ran = cli("diff", builds / "rows", changed)
    assert ran.code == 1 and "conversations: the same ones, at the same places" in ran.out
    assert "first difference: row 3, token 9: another token" in ran.out


def test_rows_of_other_lengths(cli, builds):
    ran = cli("diff", builds / "rows", builds / "short")
    assert ran.code == 1 and "spec.row_tokens: 64 | 32" in ran.out and "not compared one by one" in ran.out
    assert cli("diff", builds / "rows", builds / "short", "--json").json["rows"] is None


def test_names_and_notes_are_not_content(cli, builds, tmp_path):
    same = rewritten(builds / "rows", rows_of(builds / "rows"), tmp_path / "same", name="another name")
    ran = cli("diff", builds / "rows", same, "--json")
    assert ran.code == 0 and ran.json["equal"] and ran.json["names"] == ["test", "another name"]


@pytest.mark.parametrize("which", [0, 1])
def test_damaged_builds_are_refused(cli, builds, tmp_path, which):
    shutil.copytree(builds / "rows", tmp_path / "rows")
    data = bytearray((tmp_path / "rows" / "rows.parquet").read_bytes())
    data[60] ^= 1
    (tmp_path / "rows" / "rows.parquet").write_bytes(data)
    pair = [builds / "rows", tmp_path / "rows"]
    ran = cli("diff", *(pair if which else pair[::-1]), "--json")
    assert ran.error(6, "integrity")["where"] == "rows.parquet" and ran.out == ""
    assert cli("diff", builds / "rows", tmp_path / "nothing").error(3, "source")


@pytest.mark.parametrize("against", ["rows", "short"])
def test_a_manifest_that_lies_about_its_rows_is_refused(cli, builds, tmp_path, against):
    manifest = json.loads((builds / "rows" / "manifest.json").read_bytes())
    lie = manifest["rows"] | {"rows_sha256": "0" * 64}
    false = rewritten(builds / "rows", rows_of(builds / "rows"), tmp_path / "false", rows=lie)
    assert "rows_sha256" in cli("diff", false, builds / against).error(6, "integrity")["what"]


def test_a_wrong_xxh3_is_refused(cli, builds, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr("databuild.rows.xxhash.xxh3_64_intdigest", lambda _: 1)
        false = rewritten(builds / "rows", rows_of(builds / "rows"), tmp_path / "false")
    assert "xxh3" in cli("diff", builds / "rows", false).error(6, "integrity")["what"]


def test_many_row_groups(builds, tmp_path):
    rows = rows_of(builds / "rows")
    order = [i % len(rows) for i in range(300)]
    many = taken(rows, order)
    a = rewritten(builds / "rows", many, tmp_path / "a", counts=_counts(builds, 300))
    changed = copied(many)
    changed.loss_mask[290, 5] ^= 1
    b = rewritten(builds / "rows", changed, tmp_path / "b", counts=_counts(builds, 300))
    fewer = rewritten(builds / "rows", taken(many, range(130)), tmp_path / "c", counts=_counts(builds, 130))
    assert said(compare(a, a)) is None
    for x, y in ((a, b), (a, fewer), (fewer, b)):
        assert said(compare(x, y)) == shortened(slow_twin(x, y))
    assert compare(a, b).rows.first.row == 290


def _counts(builds, num):
    counts = json.loads((builds / "rows" / "manifest.json").read_bytes())["counts"]
    source = {"used": counts["used"], "skipped": 0, "targets": 0, "tokens": num * 64}
    return counts | {
        "rows_cut": num, "rows_without_targets": 0, "tail_tokens": 0, "tokens": num * 64, "by_source": {"s": source},
    }  # fmt: skip


def test_the_rows_are_read_a_group_at_a_time(builds, monkeypatch):
    """Not more than two row groups of each side are held: a larger build takes no more memory."""
    from databuild import diff

    seen = []
    whole = diff.proven_groups
    monkeypatch.setattr(diff, "proven_groups", lambda *args: (seen.append(len(rows)) or rows for rows in whole(*args)))
    assert compare(builds / "rows", builds / "seed").rows.num_differ
    assert max(seen) <= 128 and np.sum(seen) >= len(table(builds / "rows"))

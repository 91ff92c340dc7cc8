"""Makes the helpers of tests/ importable from every folder below it."""

import functools
import signal
import sys
from pathlib import Path

import pytest
import typer.main

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture
def shared_tokenizer(monkeypatch):
    """One tokenizer with its engines for the whole run: they take two seconds to load."""
    from support import use_shared_tokenizer

    use_shared_tokenizer(monkeypatch)


@pytest.fixture
def shared_order(monkeypatch):
    """Leaves out the check of the permutation at the start of each build, 60 ms that are the same each time."""
    monkeypatch.setattr("databuild.build.check_permutation", lambda *, full: None)


_command = functools.cache(typer.main.get_command)


@pytest.fixture
def cli(capsys, monkeypatch, shared_tokenizer):
    """The command line in this process: cli("fixed", "--rows", 3) gives support.Ran."""
    from support import Ran

    from databuild.cli import main

    monkeypatch.setattr("typer.main.get_command", _command)
    monkeypatch.setattr("os.fsync", lambda _: None)
    monkeypatch.setenv("TOKENIZERS_PARALLELISM", "true")
    monkeypatch.setenv("RAYON_NUM_THREADS", "2")
    before = signal.getsignal(signal.SIGTERM)

    def call(*arguments):
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
        return Ran(end.value.code, *capsys.readouterr())

    yield call
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def train_cli(capsys):
    """`python -m train` in this process: train_cli("recipe", "check") gives support.Ran."""
    from support import Ran

    from train.cli import main

    def call(*arguments):
        capsys.readouterr()
        with pytest.raises(SystemExit) as end:
            main([str(argument) for argument in arguments])
        return Ran(end.value.code, *capsys.readouterr())

    return call


@pytest.fixture(scope="session")
def demo_build(tmp_path_factory):
    """The demo source as `databuild fixed --source demo` builds it."""
    from databuild.build import build
    from databuild.config import RunOptions
    from databuild.recipe import fixed_options, name_of
    from databuild.sources.open import parse_source

    out = tmp_path_factory.mktemp("demo") / "rows"
    options = fixed_options(rows=None, default_rows=None, row_tokens=8192, seed=42, loss_mask_type="deepseek_v4")
    request = parse_source(["demo"], None)
    run = RunOptions(out=out, quiet=True)
    return build(request.open, options, run, name=lambda _: name_of(request.short_name, 8192, 42))

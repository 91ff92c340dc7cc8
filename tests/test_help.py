"""Help with an example for every command, the pins of --version, and completion in a real bash."""

import os
import shlex
import shutil
import subprocess
import sys

import pytest
import typer.main

from databuild.commands.app import app
from manifests.locks import load_source_lock, load_tokenizer_lock
from masks.policy import MASK_TYPES

COMMANDS = typer.main.get_command(app).commands


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_help_with_an_example_that_parses(cli, name):
    command = COMMANDS[name]
    ran = cli(name, "--help")
    assert ran.code == 0 and "Example: databuild" in ran.out
    assert command.help and all(getattr(p, "help", None) or p.name in ("help",) for p in command.params if not p.hidden)
    example = command.epilog.removeprefix("Example: ").split(" | ")[0].split(" > ")[0]
    program, called, *arguments = shlex.split(example)
    assert (program, called) == ("databuild", name)
    command.make_context(name, arguments)  # options and arguments that the command has


def test_the_version_names_the_pins(cli):
    out = cli("--version").out
    tokenizer, source = load_tokenizer_lock(), load_source_lock("tulu3")
    for pin in (tokenizer.revision, tokenizer.tokenizer_json_sha256, source.revision):
        assert pin in out


@pytest.fixture(scope="module")
def completed(tmp_path_factory):
    """completed("databuild re"): what bash offers for the last word."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("there is no bash")
    folder = tmp_path_factory.mktemp("bin")
    program = folder / "databuild"
    code = "import sys; from databuild.cli import main; main()"
    program.write_text(f'#!{bash}\nexec {shlex.quote(sys.executable)} -c {shlex.quote(code)} "$@"\n')
    program.chmod(0o755)
    environment = os.environ | {"PATH": f"{folder}:{os.environ['PATH']}"}
    shown = subprocess.run(
        ["databuild", "--show-completion", "bash"], env=environment, capture_output=True, text=True, timeout=60
    )
    assert shown.returncode == 0 and "complete" in shown.stdout, shown.stderr

    def call(line):
        words = line.split(" ")
        script = (
            f"{shown.stdout}\nCOMP_WORDS=({' '.join(shlex.quote(w) for w in words)}); COMP_CWORD={len(words) - 1}\n"
            "_databuild_completion databuild\nprintf '%s\\n' \"${COMPREPLY[@]}\""
        )
        ran = subprocess.run([bash, "-c", script], env=environment, capture_output=True, text=True, timeout=60)
        assert ran.returncode == 0 and ran.stderr == ""
        return ran.stdout.split()

    return call


def test_bash_completes_commands_options_and_values(completed):
    assert set(completed("databuild ")) == set(COMMANDS)
    assert completed("databuild inspect --wo") == ["--worst"]
    assert completed("databuild inspect rows --worst ") == ["ratio", "docs", "long"]
    assert set(completed("databuild fixed --loss-mask-type ")) == set(MASK_TYPES)

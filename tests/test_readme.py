"""The documents say what is true: commands, numbers of lines, digests."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def _blocks(name, language):
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / name).read_text(encoding="utf-8"), re.DOTALL)


def test_ci_calls_the_test_command_of_the_readme():
    command = next(block for block in _blocks("README.md", "bash") if block.rstrip().endswith("pytest"))
    assert command.strip() in (ROOT / ".ci" / "run").read_text()


def test_the_lines_of_numpy_recompute_rows_sha256(demo_build, tmp_path):
    (tmp_path / "rows-demo").symlink_to(demo_build.out)
    (code,) = _blocks("data/README.md", "python")
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == demo_build.manifest.rows.rows_sha256


def test_the_table_of_masks_is_what_the_code_does():
    from masks.policy import MASK_TYPES
    from masks.table import table

    text = (ROOT / "masks" / "README.md").read_text(encoding="utf-8")
    assert table() in text
    for mask_type in MASK_TYPES.values():
        assert f"| `{mask_type.name}` | {mask_type.about} |" in text

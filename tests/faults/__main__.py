"""Makes every fault of README.md happen and prints the table: `python -m tests.faults [NUMBER...]`.

Exit 1 if a test failed. A test that this machine cannot run (no torch, no right to mount) is shown as skipped.
"""

import os
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from table import TESTS, faults


def run(names):
    """name -> (outcomes, seconds) of each of these tests; a test with parameters has one outcome for each."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder, "report.xml")
        # By files and words, not by names: a module that is skipped as a whole has no names, and pytest would refuse.
        files = sorted({name.split("::")[0] for name in names})
        words = " or ".join(sorted({name.split("::")[1] for name in names}))
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "no:cacheprovider",
            f"--junitxml={report}",
            "-k",
            words,
            *files,
        ]
        environment = {**os.environ, "DATABUILD_EVERY_BYTE": "1"}
        subprocess.run(command, cwd=TESTS, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        cases = list(ElementTree.parse(report).iter("testcase")) if report.exists() else []
    found = {name: (Counter(), 0.0) for name in names}
    for case in cases:
        function = re.sub(r"\[.*", "", case.get("name", ""), flags=re.DOTALL)
        path = case.get("classname", "").replace(".", "/").removeprefix("tests/") + ".py"
        if (name := f"{path}::{function}") in found:
            outcomes, seconds = found[name]
            kinds = {child.tag for child in case}
            outcomes["failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"] += 1
            found[name] = (outcomes, seconds + float(case.get("time", 0)))
    return found


def main():
    """Run and print."""
    numbers = set(map(int, sys.argv[1:]))
    chosen = [fault for fault in faults() if not numbers or fault.number in numbers]
    results = run({name for fault in chosen for name in fault.tests})
    bad = False
    for fault in chosen:
        seconds = sum(results[name][1] for name in fault.tests)
        totals = sum((results[name][0] for name in fault.tests), Counter())
        missing = [name for name in fault.tests if not results[name][0]]
        bad |= bool(totals["failed"] or (missing and not all(name.startswith("train/") for name in missing)))
        said = (
            ", ".join(f"{count} {outcome}" for outcome, count in sorted(totals.items()))
            or "skipped: not collected here"
        )
        print(f"{fault.number:2}  {fault.what[:78]:78}  {said:28} {seconds:6.1f} s")
        for name in fault.tests:
            if results[name][0]["failed"]:
                print(f"    failed: {name}")
            elif name in missing:
                print(f"    not run: {name}")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()

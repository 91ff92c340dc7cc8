"""Fuzzing in one command: `python -m tests.fuzz --inputs 200000 --seed 0`.

Each target gets its share of the inputs, in a process of its own whose address space is limited; each input may take five
seconds of CPU. Printed are the inputs, what they came to, memory, and the line coverage of what was fuzzed (with the
package `coverage`, where it is installed). Exit 1 if anything was found; the input lies in the folder that is named then.
The same seed gives the same inputs.
"""

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from pathlib import Path
from random import Random

HERE = Path(__file__).parent
for folder in (HERE, HERE.parent, HERE.parents[1]):
    sys.path.insert(0, str(folder))

SECONDS = 5.0
ADDRESS_SPACE = 6 << 30


class HangError(BaseException):
    """An input that takes too long."""


def stop(*_):
    raise HangError


def run_target(name, inputs, seed):
    """Run one target here; gives its figures, and the first ten finds."""
    import targets

    target, _ = targets.TARGETS[name]
    refusals = target.refusals
    signal.signal(signal.SIGPROF, stop)
    begun = None
    if inputs >= 1000:
        for number in range(100):  # what is loaded once
            attempt(target, refusals, Random(f"{name} warm {number}"))
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    accepted, refused, slowest, finds = 0, 0, 0.0, []
    begun = time.process_time()
    for number in range(inputs):
        before = time.process_time()
        outcome, value = attempt(target, refusals, Random(f"{name} {seed} {number}"))
        slowest = max(slowest, time.process_time() - before)
        accepted += outcome == "accepted"
        refused += outcome == "refused"
        if outcome not in ("accepted", "refused") and len(finds) < 10:
            finds.append({"number": number, "what": outcome, "input": repr(value)[:100_000]})
    return {
        "name": name, "inputs": inputs, "accepted": accepted, "refused": refused,
        "found": inputs - accepted - refused, "seconds": time.process_time() - begun, "slowest": slowest,
        "memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "grown_mb": (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - memory) / 1024, "finds": finds,
    }  # fmt: skip


def attempt(target, refusals, rng):
    """("accepted" | "refused" | what went wrong, the input)."""
    value = None
    try:
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        value = target.make(rng)
        target.run(value)
        return "accepted", value
    except refusals:
        return "refused", value
    except HangError:
        return f"no end after {SECONDS} s of CPU", value
    except Exception:
        return traceback.format_exc(), value
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def child(name, inputs, seed, covered):
    """A target in this process, its figures as JSON on stdout."""
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    os.environ.setdefault("RAYON_NUM_THREADS", "1")
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    measuring = None
    if covered:
        import coverage

        packages = [str(HERE.parents[1] / name / "*") for name in ("databuild", "masks", "manifests")]
        measuring = coverage.Coverage(include=packages, data_file=None)
        measuring.start()  # before the first import: a module is made of lines, too
    import targets

    figures = run_target(name, inputs, seed)
    if measuring is not None:
        measuring.stop()
        figures["lines"] = {}
        for module in targets.TARGETS[name][0].modules:
            file = str(HERE.parents[1] / (module.replace(".", "/") + ".py"))
            _, lines, _, missing, _ = measuring.analysis2(file)
            figures["lines"][module] = [len(lines) - len(missing), len(lines), missing]
    print(json.dumps(figures))


def main():
    """Run all targets, one process each, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--inputs", type=int, default=200_000, help="in all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", action="append", help="only this one (may be repeated)")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--missing", action="store_true", help="print the lines that no input reached")
    options = parser.parse_args()
    try:
        import coverage  # noqa: F401

        covered = True
    except ImportError:
        covered = False
    if options.child:
        child(options.child, options.inputs, options.seed, covered)
        return
    import targets

    wanted = options.target or list(targets.TARGETS)
    chosen = {name: share for name, (_, share) in targets.TARGETS.items() if name in wanted}
    heads = ("inputs", "accepted", "refused", "found", "CPU s", "slowest s", "MB", "grown")
    row = "{:14} {:>8} {:>9} {:>8} {:>6} {:>7} {:>9} {:>6} {:>6}"
    print(row.format("target", *heads))
    bad, reached = 0, []
    for name, share in chosen.items():
        count = round(options.inputs * share / sum(chosen.values()))
        command = [
            sys.executable,
            "-m",
            "tests.fuzz",
            "--child",
            name,
            "--inputs",
            str(count),
            "--seed",
            str(options.seed),
        ]
        ran = subprocess.run(command, capture_output=True, text=True, cwd=HERE.parents[1])
        if ran.returncode:
            print(f"{name:14} the process ended with {ran.returncode}\n{ran.stderr[-2000:]}")
            bad += 1
            continue
        figures = json.loads(ran.stdout)
        bad += figures["found"]
        shown = [f"{figures[key]:,}" for key in ("inputs", "accepted", "refused", "found")]
        shown += [
            f"{figures['seconds']:.1f}",
            f"{figures['slowest']:.2f}",
            f"{figures['memory_mb']:.0f}",
            f"{figures['grown_mb']:.0f}",
        ]
        print(row.format(name, *shown), flush=True)
        reached += figures.get("lines", {}).items()
        if figures["finds"]:
            path = Path(tempfile.mkdtemp(prefix="fuzz-finds-"), f"{name}.json")
            path.write_text(json.dumps(figures["finds"], indent=1))
            print(f"  {path}\n  {figures['finds'][0]['what']}")
    for module, (hit, lines, missing) in reached:
        more = f"  missing {missing}" if options.missing else ""
        print(f"{module:32} {hit} of {lines} lines, {100 * hit / lines:.0f} %{more}")
    if not covered:
        print("line coverage: install the package coverage")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()

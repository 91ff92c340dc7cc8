#!/usr/bin/env bash
# Train, save five steps before the end, go on from there in another folder, and compare: the figures and the proof of a resume.
#
#     benchmarks/v4_resume.sh ROWS OUT [KEY=VALUE ...]
#
# CONFIG (train/configs/v4-mini.yaml) and STEPS (100) may be set. On one H200: peak_tflops=989 global_batch_size=4.
set -euo pipefail
rows=$1 out=$2
shift 2
steps=${STEPS:-100}
keys=("steps=$((steps + 5))" "save_interval=$steps" "$@")
train() {
  torchrun --nproc-per-node 1 -m train.sft --rows "$rows" --config "${CONFIG:-train/configs/v4-mini.yaml}" "$@" --set "${keys[@]}"
}

train --out "$out/whole"
mkdir -p "$out/resumed"
mv "$out/whole/checkpoints" "$out/resumed/"
printf 'step-%08d\n' "$steps" >"$out/resumed/checkpoints/latest"
train --out "$out/resumed" --resume
python - "$out" <<'PY'
import json, sys
from pathlib import Path

whole, resumed = (
    {line["step"]: line for line in map(json.loads, (Path(sys.argv[1]) / name / "metrics.jsonl").open())}
    for name in ("whole", "resumed")
)
for step in sorted(resumed)[-5:]:
    pairs = [(key, whole[step][key], resumed[step][key]) for key in ("loss", "grad_norm")]
    print(step, *(f"{key} {a!r} {b!r} {abs(a - b) / abs(a):.1e}" for key, a, b in pairs))
last = whole[max(whole)]
print("peak GiB allocated", last["peak_allocated_gib"], "reserved", last["peak_reserved_gib"])
figures = json.loads((Path(sys.argv[1]) / "whole" / "summary.json").read_text())["figures"]
print({key: figures[key]["value"] for key in ("step_time_mean_s", "tokens_per_s_per_gpu", "mfu_6n", "mfu_with_attention")})
PY

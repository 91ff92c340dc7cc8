"""The recipe schema: the published keys in their published order, and one more block, `evidence`, for what the others leave out.

Strict: unknown keys and silent conversions are errors. Every published key is written, null where nothing is known: a key that
is left out could be an oversight, a null is a statement.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Positive = Annotated[int, Field(ge=1)]
Count = Annotated[int, Field(ge=0)]
Real = Annotated[float, Field(allow_inf_nan=False)]
Above0 = Annotated[float, Field(gt=0, allow_inf_nan=False)]
AtLeast0 = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Fraction = Annotated[float, Field(ge=0, le=1)]
Name = Annotated[str, Field(min_length=1)]
Share = Annotated[float, Field(gt=0, le=1)]
StepRange = Annotated[list[Count], Field(min_length=2, max_length=2)]

Level = Literal["unverified", "screen", "candidate", "verified"]


class Strict(BaseModel):
    """Immutable; unknown keys and silent conversions are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Gpu(Strict):
    """The machines. memory_gb of one GPU, as its maker writes it."""

    type: Name
    memory_gb: Above0 | None
    count: Positive
    per_node: Positive | None
    instance: Name | None


class Author(Strict):
    """Who ran it."""

    name: Name | None
    url: Name | None


class Stack(Strict):
    """Versions, as text: 13.0 is a version, not a number."""

    framework: Name | None
    megatron_lm: Name | None
    transformer_engine: Name | None
    pytorch: Name | None
    cuda: Name | None
    nccl: Name | None
    deepep: Name | None
    python: Name | None
    network: Name | None
    source: Name | None


class Build(Strict):
    """How the rows were made. padding_tokens, parquet_bytes: of all rows together."""

    name: Name | None
    tokenizer: Name | None
    loss_mask: Name | None
    rows: Positive | None
    row_tokens: Positive | None
    padding_tokens: Count | None
    seed: Count | None
    packing: Name | None
    supervised_token_ratio: Fraction | None
    parquet_sha256: Name | None
    parquet_bytes: Positive | None
    builder: Name | None


class Dataset(Strict):
    """The data."""

    name: Name
    source: Name | None
    revision: Name | None
    license: Name | None
    rows_sha256: Name | None
    build: Build | None


class Workload(Strict):
    """What a step trains on: global_batch rows of row_tokens tokens; rows: of the whole data set."""

    row_tokens: Positive | None
    rows: Positive | None
    global_batch: Positive | None
    precision: Name | None
    dataset: Dataset | None


class LayerSplit(Strict):
    """Layers of the first and of the last pipeline stage; the stages between share the rest evenly."""

    first: Positive
    last: Positive


class Recompute(Strict):
    """Activation recomputation."""

    granularity: Literal["none", "selective", "full"] | None
    method: Literal["uniform", "block"] | None
    num_layers: Positive | None


class Layout(Strict):
    """How the model is spread. label names the sizes: TP2 PP4 EP8 DP8."""

    label: Name
    summary: Name
    highlights: list[Name]
    tp: Positive
    pp: Positive
    vpp: Positive | None
    cp: Positive
    ep: Positive
    etp: Positive | None
    dp: Positive
    sequence_parallel: bool | None
    layer_split: LayerSplit | None
    max_tokens_per_gpu: Positive | None
    rows_per_microbatch: Positive | None
    recompute: Recompute | None
    offload: Name | None
    dispatcher: Name | None


class ActiveParams(Strict):
    """N of 6N, and where it comes from."""

    count: Positive
    source: Name
    revision: Name | None


class Result(Strict):
    """What was measured. window: first and last step, counted from 0, both included. measured: a date."""

    tokens_per_s_per_gpu: Above0 | None
    usd_per_million_tokens: Above0 | None
    step_time_cv_percent: AtLeast0 | None
    mfu: Share | None
    mfu_note: Name | None
    active_params: ActiveParams | None
    measured: Name | None
    steps_per_run: Positive | None
    window: StepRange | None
    window_tokens: Positive | None
    runs: Positive | None
    profiler: Name | None
    gpu_hours: Above0 | None
    gpu_hours_note: Name | None


class Convergence(Strict):
    """The loss curve against the reference's."""

    steps: Positive | None
    result: Literal["pass", "fail"] | None
    correlation: Annotated[float, Field(ge=-1, le=1)] | None
    final_loss_difference: AtLeast0 | None
    pointwise_failures: Count | None
    note: Name | None


class Correctness(Strict):
    """Why the numbers may be believed."""

    result: Literal["pass", "fail"] | None
    summary: Name | None
    reference: Name | None
    configuration: Name | None
    component_tests: Name | None
    convergence: Convergence | None
    rules: Name | None


class Source(Strict):
    """Where facts of this file come from."""

    what: Name
    where: Name


class Inputs(Strict):
    """What figures need and the published schema has no key for. pipeline_layout: Megatron's notation, E t*3 | ... L."""

    peak_tflops: Above0 | None
    peak_source: Name | None
    usd_per_gpu_hour: Above0 | None
    price_source: Name | None
    num_layers: Positive | None
    num_experts: Positive | None
    model_source: Name | None
    pipeline_layout: Name | None


class Observed(Strict):
    """What the run is known to have done; evidence.level reads it and nothing else.

    steps: all that it did, those after a resume too. natural_routing: false for forced balance or dropped tokens.
    checkpoint_step, resumed_to_step: saved after that many steps, and went on from that save to that many.
    variants_compared: settings measured side by side, this one included.
    """

    row_tokens: Positive | None
    steps: Count
    finite: bool | None
    skipped_steps: Count | None
    natural_routing: bool | None
    checkpoint_step: Positive | None
    resumed_to_step: Positive | None
    variants_compared: Positive | None


class Measurement(Strict):
    """One measured quantity. values in order; baseline: the same quantity before the change, or of another layout.

    steps: first and last, counted from 1 as logs do; a condition that says "steps A to B" or "rows of N tokens" must mean these.
    mean = sum(values) / n; saved = baseline - mean; ratio = baseline / mean.
    micro_batches_per_rank = rows / (dp * rows_per_microbatch). tokens_per_s_per_gpu = rows * row_tokens / mean / gpus.
    """

    name: Name
    unit: Name
    condition: Name
    outcome: Literal["ran", "out_of_memory", "rejected"]
    values: Annotated[list[Above0], Field(min_length=1)] | None = None
    mean: Above0 | None = None
    baseline: Above0 | None = None
    saved: Real | None = None
    ratio: Real | None = None
    steps: Annotated[list[Positive], Field(min_length=2, max_length=2)] | None = None
    rows: Positive | None = None
    row_tokens: Positive | None = None
    micro_batches_per_rank: Positive | None = None


class Evidence(Strict):
    """What the published schema has no keys for. step_times_s, in seconds: of the window. published_status: what others say."""

    sources: Annotated[list[Source], Field(min_length=1)]
    published_status: Name | None
    inputs: Inputs
    observed: Observed | None
    step_times_s: Annotated[list[Above0], Field(min_length=1)] | None
    wall_s: Above0 | None
    measurements: list[Measurement]


class Recipe(Strict):
    """A recipe file."""

    schema_version: Literal[1]
    model: Name
    gpu: Gpu
    author: Author
    status: Level
    stack: Stack
    workload: Workload
    layout: Layout
    result: Result | None
    correctness: Correctness | None
    env: dict[str, str]
    patches: list[Name]
    run: Name | None
    evidence: Evidence

"""Names in a dataset folder for the hub, and what its card and its croissant.json say alike. Pure."""

from __future__ import annotations

from manifests.model import Manifest

#: The build lies in a folder of its own: `verify` refuses a file that its manifest does not know, and a card is one.
ROWS_FOLDER = "rows"
MANIFEST_PATH = f"{ROWS_FOLDER}/manifest.json"
ENVIRONMENT_PATH = f"{ROWS_FOLDER}/environment.json"
CARD_PATH = "README.md"
CROISSANT_PATH = "croissant.json"
HUB = "https://huggingface.co"


def rows_pattern(manifest: Manifest) -> str:
    """A glob for the row files, from the dataset folder; by name they are in order."""
    count = len(manifest.files)
    return f"{ROWS_FOLDER}/{manifest.files[0].name}" if count == 1 else f"{ROWS_FOLDER}/rows-*-of-{count:05d}.parquet"


def hub_url(repo: str) -> str:
    """The page of a dataset. Always that of the public hub: HF_ENDPOINT must not reach the bytes."""
    return f"{HUB}/datasets/{repo}"


def description(manifest: Manifest) -> str:
    """Two sentences."""
    rows = manifest.rows
    return (
        f"{rows.rows:,} training rows of exactly {rows.row_tokens:,} DeepSeek-V4 tokens with a loss mask for each token, "
        f"{rows.num_targets:,} of them trained. Made by databuild; rows_sha256 {rows.rows_sha256} is their identity."
    )

"""From frames to tokens and back."""

from itc.tokenizers.patches import (
    Codebook,
    PatchTokenizerConfig,
    bucket_of,
    decode,
    empty_codebook,
    encode,
    report_saturation,
    update,
)

__all__ = [
    "Codebook",
    "PatchTokenizerConfig",
    "bucket_of",
    "decode",
    "empty_codebook",
    "encode",
    "report_saturation",
    "update",
]

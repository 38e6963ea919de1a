"""What is sent to another process, and what is not."""

from __future__ import annotations

from pathlib import Path

from gridsim import registry
from gridsim.parcel import packed, references, unpacked


def test_what_the_other_side_has_is_not_sent() -> None:
    large, word = list(range(1000)), "word"
    text = packed({"large": large, "word": word}, references([large, word]))
    assert len(text) < 100
    assert unpacked(text, [large, word])["large"] is large


def test_a_class_of_a_plain_file_is_named_by_its_file(tmp_path: Path) -> None:
    file = tmp_path / "widest.py"
    file.write_text("class Widest:\n    def __init__(self):\n        self.kind = Widest\n")
    made = registry.make("ordering", f"{file}:Widest")
    text = packed(made)
    assert str(file).encode() in text
    assert b"gridsim_plugin" not in text  # a module that no other process knows
    assert type(unpacked(text)) is type(made)

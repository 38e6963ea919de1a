"""What is sent to another process: pickled, without what is there already, classes of plain files by their files."""

from __future__ import annotations

import io
import pickle
from collections.abc import Mapping, Sequence
from typing import Any

from gridsim import registry

__all__ = ["packed", "references", "unpacked"]


class _Packer(pickle.Pickler):
    """Leaves out what the other side has; classes of plain files are named by their files."""

    def __init__(self, file: io.BytesIO, known: Mapping[int, int]) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._known = known

    def persistent_id(self, thing: Any) -> int | None:
        return self._known.get(id(thing))

    def reducer_override(self, thing: Any) -> Any:
        if isinstance(thing, type) and (file := registry.file_of(thing)) is not None:
            return registry.find, ("class", f"{file}:{thing.__name__}")
        return NotImplemented


def references(things: Sequence[Any]) -> dict[int, int]:
    """What stands for things that the other side has, by their ``id``: their places."""
    return {id(thing): place for place, thing in enumerate(things) if not isinstance(thing, _PLAIN)}


_PLAIN = (str, bytes, int, float, type(None))
"""As short as a reference to them."""


class _Unpacker(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, known: Sequence[Any]) -> None:
        super().__init__(file)
        self._known = known

    def persistent_load(self, place: int) -> Any:
        return self._known[place]


def packed(thing: Any, known: Mapping[int, int] | None = None) -> bytes:
    """A thing as bytes; *known* are references, by ``id``, to what the other side has."""
    file = io.BytesIO()
    _Packer(file, known or {}).dump(thing)
    return file.getvalue()


def unpacked(text: bytes, known: Sequence[Any] = ()) -> Any:
    """The thing again; *known* is what references stand for, by place."""
    return _Unpacker(io.BytesIO(text), known).load()

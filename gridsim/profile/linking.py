"""Machine code of a loop as a file of its own, written when the loop is compiled (`gridsim.profile.machine_code`).

Such code calls nothing but itself and reads nothing but its constants and what it is given, so that it can stand at any
address as it is. A loop that raises, allocates or calls the C library is not such, and is left to the compiler.
"""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any, NamedTuple

from llvmlite import binding

from gridsim.files import write_atomically
from gridsim.profile.machine_code import RESULTS, written

__all__ = ["link"]

_ENTRY = "gridsim_entry"

_ALLOCATED, _WRITABLE = 2, 1
"""Flags of sections."""

_SYMBOLS, _RELOCATIONS = 2, 4
"""Kinds of sections: symbols, and places that are told where others are."""

_RELATIVE = (2, 4)
"""Kinds of such places: the distance to another one, in 32 bits, of data and of a call."""


def link(module: Any, name: str, file: Path, kinds: str) -> bool:
    """Keep a loop as machine code; False where it cannot be.

    Parameters
    ----------
    module : llvmlite.binding.ModuleRef
        Optimised; it is left as it is.
    name : str
        Of the loop's function, which takes addresses and whole numbers of 64 bits.
    file : Path
        Where it is kept.
    kinds : str
        What arguments it takes, as `gridsim.profile.machine_code.described` says it.
    """
    entry = _entry_of(module, name)
    if not entry:
        return False
    alone = module.clone()
    alone.link_in(binding.parse_assembly(entry))
    for function in alone.functions:
        if not function.is_declaration and function.name != _ENTRY:
            function.linkage = "internal"  # what nobody calls then goes, such as what Python would call
    machine = binding.Target.from_triple(binding.get_process_triple()).create_target_machine(
        cpu=binding.get_host_cpu_name(),
        features=binding.get_host_cpu_features().flatten(),
        opt=3,
        reloc="pic",
        codemodel="small",
    )
    passes = binding.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    passes.run(alone, binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(speed_level=0)))
    found = _flat(machine.emit_object(alone))
    if found is None:
        return False
    kept = written(found.code, found.entry, kinds)

    def write(temporary: Path) -> None:
        temporary.write_bytes(kept)

    write_atomically(file, write)
    return True


def _entry_of(module: Any, name: str) -> str:
    """A function that takes the address of the arguments of another one and calls it; empty where it cannot."""
    types = [str(argument.type) for argument in module.get_function(name).arguments]
    if not {"ptr"} <= set(types[:RESULTS]) or not set(types) <= {"ptr", "i64"}:
        return ""
    lines = [f"declare i32 @{name}({', '.join(types)})", f"define i32 @{_ENTRY}(ptr %given) {{"]
    for k, kind in enumerate(types):
        lines += [f"  %p{k} = getelementptr i64, ptr %given, i64 {k}", f"  %a{k} = load {kind}, ptr %p{k}"]
    handed = ", ".join(f"{kind} %a{k}" for k, kind in enumerate(types))
    return "\n".join([*lines, f"  %r = call i32 @{name}({handed})", "  ret i32 %r", "}"])


class _Flat(NamedTuple):
    """Code that stands at any address, and where in it one begins."""

    code: bytes
    entry: int


class _Section(NamedTuple):
    """A section of an object file, as ELF has its header."""

    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int


class _Symbol(NamedTuple):
    """A symbol of an object file."""

    name: int
    info: int
    other: int
    section: int
    value: int
    size: int


def _flat(made: bytes) -> _Flat | None:
    """An object file put together; None where it needs what is not in it."""
    sections = _sections(made)
    places, image = _laid_out(made, sections)
    for section in sections:
        if section.kind != _RELOCATIONS or section.info not in places:
            continue
        symbols = _symbols(made, sections[section.link])
        for at, info, more in struct.iter_unpack("<QQq", _content(made, section)):
            symbol = symbols[info >> 32]
            if (info & 0xFFFFFFFF) not in _RELATIVE or symbol.section not in places:
                return None
            place = places[section.info] + at
            distance = places[symbol.section] + symbol.value + more - place
            struct.pack_into("<i", image, place, distance)
    for section in sections:
        if section.kind == _SYMBOLS:
            names = _content(made, sections[section.link])
            for symbol in _symbols(made, section):
                if names[symbol.name : names.index(0, symbol.name)].decode() == _ENTRY:
                    return _Flat(bytes(image), places[symbol.section] + symbol.value)
    return None


def _sections(made: bytes) -> list[_Section]:
    """Sections of a 64-bit object file."""
    (first,) = struct.unpack_from("<Q", made, 40)
    size, count = struct.unpack_from("<HH", made, 58)
    return [_Section(*struct.unpack_from("<IIQQQQIIQQ", made, first + k * size)) for k in range(count)]


def _symbols(made: bytes, section: _Section) -> list[_Symbol]:
    return [_Symbol(*fields) for fields in struct.iter_unpack("<IBBHQQ", _content(made, section))]


def _content(made: bytes, section: _Section) -> bytes:
    return made[section.offset : section.offset + section.size]


def _laid_out(made: bytes, sections: list[_Section]) -> tuple[dict[int, int], bytearray]:
    """Where code and constants stand behind one another, by section, and all of them."""
    places, image = {}, bytearray()
    for k, section in enumerate(sections):
        if section.kind != 1 or not section.flags & _ALLOCATED or section.flags & _WRITABLE:
            continue
        image += bytes(-len(image) % max(section.alignment, 1))
        places[k] = len(image)
        image += _content(made, section)
    return places, image

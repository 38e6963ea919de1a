"""Reuse of result folders: removal of files that an earlier command wrote and this one did not.

Only files listed in the earlier ``run.json`` are removed, and a folder only if it contains no other files.
"""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

from gridsim.errors import InputError
from gridsim.files import check_folder, identity

FIGURES = "figures"
"""Folder of figures, if requested."""


def check_inputs(folder: str | Path, inputs: Iterable[str | Path]) -> None:
    """Raise an error for a result folder in which an input of the command would be replaced or removed.

    The check covers the folder and its folders of policies, and whether something can be written there.

    Raises
    ------
    InputError
        With the name of the file.
    """
    check_folder(folder)
    if not Path(folder).is_dir():
        return
    from gridsim import result  # numpy: not needed for --help
    from gridsim.report import comparison, forecast_page, publication, whatif_text

    attached = {*result.FILES, *comparison.FILES, *whatif_text.FILES, *publication.FILES, *forecast_page.FILES}
    below = (path for name in result.FILES for path in Path(folder).glob(f"*/{name}"))
    there = {identity(path) for path in (*(Path(folder, name) for name in attached), *below)}
    for path in inputs:
        if (own := identity(path)) is not None and own in there:
            raise InputError(
                f"is an input of this command, but a result of the same name in {folder} would replace it; give "
                f"another folder (--out)",
                path=path,
            )


@dataclass(frozen=True, slots=True)
class Earlier:
    """Files and folders of policies listed in an earlier ``run.json`` of *folder*.

    Attributes
    ----------
    folder : Path
        The result folder.
    files, folders : frozenset of str
        Names in the folder.
    """

    folder: Path
    files: frozenset[str] = frozenset()
    folders: frozenset[str] = frozenset()

    @classmethod
    def of(cls, folder: str | Path) -> Earlier:
        """Return the listed files and folders; to be called before anything is written."""
        from gridsim import result  # numpy: not needed for --help
        from gridsim.report import comparison
        from gridsim.run_folder import find_run

        folder = Path(folder)
        if (told := find_run(folder)) is None:
            return cls(folder)
        if "folders" not in told:
            return cls(folder, result.FILES)
        return cls(folder, comparison.FILES.union(told.get("figures", ())), frozenset(told["folders"].values()))

    def remove(self, kept: Collection[str]) -> None:
        """Remove earlier files and folders that are not in *kept*, those written now."""
        for name in self.files.difference(kept):
            (self.folder / name).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # missing, or not empty
            (self.folder / FIGURES).rmdir()
        for name in self.folders.difference(kept):
            _remove_result(self.folder / name)


def _remove_result(folder: Path) -> None:
    """Remove the folder of one policy, if it contains no other files."""
    if folder.is_symlink() or not folder.is_dir():
        return
    from gridsim.result import FILES  # numpy: not needed for --help

    inside = list(folder.iterdir())
    if all(path.name in FILES and path.is_file() for path in inside):
        for path in inside:
            path.unlink()
        folder.rmdir()

"""A reader of one site's own log: a job a line, `submit start end cores user`, times in seconds."""

import dataclasses
from pathlib import Path

import numpy as np

from gridsim import InputError, Workload

__all__ = ["SiteLog"]


@dataclasses.dataclass
class SiteLog:
    """Lines of submit, start, end, cores and user, between *delimiter*s."""

    delimiter: str = ";"

    def read(self, path, *, cores=None):
        rows = []
        for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
            try:
                *numbers, user = line.split(self.delimiter)
                submit, start, end, width = map(float, numbers)
            except ValueError as error:
                expected = "submit, start, end, cores and user"
                raise InputError(f"is {line!r}; expected {expected}", path=path, line=number) from error
            rows.append((submit, start, end, width, user.strip()))
        submit, start, end, width = (np.array(column) for column in list(zip(*rows, strict=True))[:4])
        users, number_of = np.unique([row[4] for row in rows], return_inverse=True)
        workload = Workload.from_columns(
            submit=submit,
            runtime=end - start,
            cores=width.astype(int),
            labels={"user": number_of + 1},
            logged={"wait": start - submit},
            cores_stated=cores,
        )
        return dataclasses.replace(workload, names={"user": ("", *users.tolist())})

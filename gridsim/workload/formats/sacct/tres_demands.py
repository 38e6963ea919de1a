"""Demands of logged jobs on nodes and pools, from their labels and from TRES lists."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from gridsim.model.demand import Demands
from gridsim.model.site.parameters import licences_requested
from gridsim.model.time import IntArray
from gridsim.model.workload import UNKNOWN
from gridsim.workload.formats.sacct.values import tres
from gridsim.workload.formats.task_demands import demand_facts, demands_of

_TELLING = (
    *("memory_mb", "memory_core_mb", "gpus", "exclusive", "constraint", "tasks_per_node", "cores_per_task"),
    *("gpu_type", "licenses", "nodelist", "exclude"),
)
"""Labels that contain more than a number of cores."""

_PLAIN = re.compile(r"[^|\[\]()*!&]+(?:&[^|\[\]()*!&]+)*")
"""A constraint that is a conjunction of features."""


def demands(
    columns: Mapping[str, npt.NDArray[Any]],
    rows: IntArray,
    cores: IntArray,
    labels: Mapping[str, IntArray],
    names: Mapping[str, tuple[str, ...]],
    more: Sequence[str],
) -> tuple[Demands, dict[str, Any]] | None:
    """Return the demands of the jobs and facts about them; None if the log contains only cores.

    Parameters
    ----------
    columns : mapping of str to array
        Columns of the log (`gridsim.workload.formats.sacct.rows.Parser`).
    rows : (n,) int64
        Rows of the jobs.
    cores : (n,) int64
        Allocated cores of the jobs.
    labels, names : mapping
        Labels of the jobs and their names (`gridsim.workload.formats.sacct.job_labels`).
    more : sequence of str
        Lists of generic resources and licences, by number.

    Notes
    -----
    A constraint with alternatives, counts or brackets cannot be represented as a demand; such constraints are counted.
    The memory of jobs that request all memory of a node (``--mem=0``) is unknown. Node names are also counted, because
    a demand contains none.
    """
    n = len(rows)

    def label(name: str) -> IntArray:
        return labels.get(name, np.full(n, UNKNOWN))

    def column(name: str) -> IntArray:
        return columns[name][rows].astype(np.int64) if name in columns else np.full(n, UNKNOWN)

    lists = column("more")
    if not any(name in labels for name in _TELLING) and not (lists > 0).any():
        return None
    given = np.maximum(np.where(label("nodes") > 0, label("nodes"), column("nodes")), 1)
    of_core, of_node = label("memory_core_mb"), label("memory_mb")
    memory = np.where(of_core > 0, of_core * cores, np.maximum(of_node, 0) * given)
    memory = np.where(label("memory_granted_mb") > 0, column("memory"), memory)
    gpus = np.where(column("asked_gpus") > 0, column("asked_gpus"), column("gpus"))
    gpus = np.where(gpus > 0, gpus, label("gpus") * given)
    kinds, others = _besides(lists, more)
    of_type, types = label("gpu_type").tolist(), names.get("gpu_type", ())
    kinds = [each or ((types[code],) if code >= 0 else ()) for each, code in zip(kinds, of_type, strict=True)]
    per_task = np.maximum(label("cores_per_task"), 1)
    features, odd = _features(label("constraint"), names.get("constraint", ()))
    found = demands_of(
        cores=cores,
        memory=memory,
        gpus=gpus,
        others=others,
        pools=_pools(label("licenses"), names.get("licenses", ())),
        unit=label("cores_per_task"),
        nodes=label("nodes"),
        most_nodes=label("nodes_most"),
        cores_per_node=np.where(label("tasks_per_node") > 0, label("tasks_per_node") * per_task, UNKNOWN),
        exclusive=label("exclusive") > 0,
        gpu_kinds=kinds,
        features=features,
    )
    by_name = int(np.count_nonzero((label("nodelist") >= 0) | (label("exclude") >= 0)))
    return found, demand_facts(found, constraints_not_held=odd, nodes_by_name_not_held=by_name)


def named(
    columns: Mapping[str, npt.NDArray[Any]], rows: IntArray, more: Sequence[str], said: Mapping[str, Sequence[str]]
) -> tuple[dict[str, IntArray], dict[str, tuple[str, ...]]]:
    """Return labels of the GPU type, licences and nodes that jobs requested, with their names, if the log has any.

    Parameters
    ----------
    columns, rows, more
        See `demands`.
    said : mapping of str to sequence of str
        Texts of submit lines, by label and number; used where lists of resources have no value.
    """
    labels: dict[str, IntArray] = {}
    names: dict[str, tuple[str, ...]] = {}
    lists = columns["more"][rows].astype(np.int64) if "more" in columns else np.full(len(rows), UNKNOWN)
    for label, tell in (("gpu_type", _gpu_type), ("licenses", _licences), ("nodelist", None), ("exclude", None)):
        told_of = [tell(text) if tell else "" for text in more]
        known = tuple(dict.fromkeys(filter(None, (*told_of, *said[label]))))
        number = {"": UNKNOWN, **{text: row for row, text in enumerate(known)}}
        code: IntArray = np.array([*(number[each] for each in told_of), UNKNOWN])
        found: IntArray = code[np.where(lists > 0, lists, len(more))]
        if f"said_{label}" in columns:
            in_words = np.array([*(number[each] for each in said[label]), UNKNOWN])
            found = np.where(found == UNKNOWN, in_words[columns[f"said_{label}"][rows]], found)
        if (found != UNKNOWN).any():
            labels[label], names[label] = found, known
    return labels, names


def _gpu_type(text: str) -> str:
    """Return the first GPU type in a list of resources."""
    parts = (part.decode().removeprefix("gres/gpu:") for part in tres(text.encode()) if part.startswith(b"gres/gpu:"))
    return next(parts, "")


def _licences(text: str) -> str:
    """Return the licences in a list of resources, in the format of ``--licenses``."""
    parts = ((part.decode(), count.decode()) for part, count in tres(text.encode()).items())
    return ",".join(f"{name.removeprefix('license/')}:{count}" for name, count in parts if name.startswith("license/"))


def _besides(lists: IntArray, texts: Sequence[str]) -> tuple[list[tuple[str, ...]], dict[str, IntArray]]:
    """Return the requested GPU types, and the amounts of other generic resources, of each job."""
    kinds: list[tuple[str, ...]] = [()] * len(texts)
    amounts: dict[str, IntArray] = {}
    for code, text in enumerate(texts):
        for part, count in tres(text.encode()).items():
            name = part.decode()
            if name.startswith("gres/gpu"):
                kind = name.partition(":")[2]
                kinds[code] += (kind,) if kind else ()
            elif count.isdigit() and name.startswith("gres/"):
                amounts.setdefault(name, np.zeros(len(texts) + 1, dtype=np.int64))[code] = int(count)
    of = np.where(lists > 0, lists, len(texts))
    kinds.append(())
    return [kinds[it] for it in of.tolist()], {name.split("/", 1)[1]: column[of] for name, column in amounts.items()}


def _pools(codes: IntArray, names: Sequence[str]) -> dict[str, IntArray]:
    """Return the requested licences of each job."""
    found: dict[str, IntArray] = {}
    for code, text in enumerate(names):
        for name, count in licences_requested(text).items():
            found.setdefault(name, np.zeros(len(names) + 1, dtype=np.int64))[code] = count
    return {name: column[codes] for name, column in found.items()}


def _features(codes: IntArray, names: Sequence[str]) -> tuple[list[tuple[str, ...]], int]:
    """Return the requested features of each job, and the number of jobs with a constraint of another form."""
    texts = {code: names[code] if 0 <= code < len(names) else "" for code in np.unique(codes).tolist()}
    words = {
        code: tuple(text.replace(" ", "").split("&")) if _PLAIN.fullmatch(text.replace(" ", "")) else ()
        for code, text in texts.items()
    }
    odd = sum(int(np.count_nonzero(codes == code)) for code, text in texts.items() if text and not words[code])
    return [words[code] for code in codes.tolist()], odd

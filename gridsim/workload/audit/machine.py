"""What an audit holds demand against: amounts of a whole machine, its kinds of GPUs, its largest node."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gridsim.model.capacity import Capacity
from gridsim.workload.formats.table.mapping import TableMapping

__all__ = ["Machine"]


@dataclass(frozen=True)
class Machine:
    """Amounts by resource: ``cores``, ``memory`` (MiB), ``gpus``, ``nodes``, others.

    Attributes
    ----------
    totals : mapping of str to float
        Of all of it; what is not there is not known.
    kinds : mapping of str to float
        GPUs by kind; empty where not known.
    largest : mapping of str to float
        Most that one node has; empty where not known.
    """

    totals: Mapping[str, float] = field(default_factory=dict)
    kinds: Mapping[str, float] = field(default_factory=dict)
    largest: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of_mapping(cls, mapping: TableMapping) -> Machine:
        """What a mapping says of the machine."""
        return cls(mapping.capacity, mapping.gpu_kinds)

    @classmethod
    def of_capacities(cls, capacities: Iterable[Capacity]) -> Machine:
        """All clusters of a platform together.

        Examples
        --------
        >>> from gridsim.model.capacity import NodeGroup
        >>> nodes = [NodeGroup(group="a", count=2, capacity={"cores": 8}, gpus=4, gpu_kind="T4")]
        >>> Machine.of_capacities([Capacity.of(nodes)]).totals
        {'cores': 16.0, 'gpus': 8.0, 'nodes': 2.0}
        """
        totals: dict[str, float] = {}
        kinds: dict[str, float] = {}
        largest: dict[str, float] = {}
        for each in capacities:
            for name, column in {**each.amounts, "gpus": each.gpus}.items():
                if len(column):
                    totals[name] = totals.get(name, 0) + float(column.sum())
                    largest[name] = max(largest.get(name, 0), float(column.max()))
            for name, amount in each.pools.items():
                totals[name] = totals.get(name, 0) + float(amount)
            if each.nodes:
                totals["nodes"] = totals.get("nodes", 0) + float(len(each.nodes))
            for kind, gpus in zip(each.gpu_kind, each.gpus.tolist(), strict=True):
                if gpus:
                    kinds[kind] = kinds.get(kind, 0) + float(gpus)
        return cls(totals, kinds, largest)

"""The reproduced papers: the name of each on the command line, and its citation."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["CITATIONS", "Citation"]


class Citation(NamedTuple):
    """Title, authors, venue and year of a paper."""

    title: str
    authors: str
    where: str

    def __str__(self) -> str:
        return f"{self.authors}: {self.title}. {self.where}"


_QOPS = ("QoPS: a QoS based scheme for parallel job scheduling", "M. Islam, P. Balaji, P. Sadayappan, D. K. Panda")

CITATIONS = {
    "grid": Citation(
        "A survey of scheduling metrics and an improved ordering policy for list schedulers operating on workloads "
        "with dependencies and a wide variation in execution times",
        "A. Burkimsher, I. Bate, L. S. Indrusiak",
        "Future Generation Computer Systems 29(8), 2013",
    ),
    "qops-report": Citation(*_QOPS, "Technical report OSU-CISRC-4/03-TR21, Ohio State University, 2003"),
    "qops": Citation(*_QOPS, "Job Scheduling Strategies for Parallel Processing, LNCS 2862, 2003"),
    "service": Citation(
        "Towards provision of quality of service guarantees in job scheduling",
        "M. Islam, P. Balaji, P. Sadayappan, D. K. Panda",
        "IEEE International Conference on Cluster Computing, 2004",
    ),
    "moldable": Citation(
        "A robust scheduling strategy for moldable scheduling of parallel jobs",
        "S. Srinivasan, S. Krishnamoorthy, P. Sadayappan",
        "IEEE International Conference on Cluster Computing, 2003",
    ),
}
"""Citations by the name on the command line."""

"""Excess of P-SLR's mean SLR in the first decile over the others, by the size of the clusters, at 120 % (G-28)."""

from __future__ import annotations

import argparse

import numpy as np

from gridsim.metrics.paired_tests import bootstrap_means
from gridsim_papers.grid.campaign import GridCampaign
from gridsim_papers.grid.judges import Stored
from gridsim_papers.paper import RECIPES


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", default="small")
    parser.add_argument("--cores", type=int, nargs="+", default=[500, 1000, 2000, 4000], help="of each cluster")
    args = parser.parse_args()
    for cores in args.cores:
        campaign = GridCampaign.from_toml(
            RECIPES / "grid.toml", scale=args.scale, cluster_cores=cores, policies=("p-slr",), loads=(1.2,)
        )
        rows = [row for unit in campaign.units() for row in campaign.rows(unit)]
        _, values = Stored(rows).profile("mean_slr", 1.2)
        excess = values[:, 0, 0] / values[:, 0, 1:].mean(axis=-1)
        low, high = np.exp(np.quantile(bootstrap_means(np.log(excess)), [0.025, 0.975]))
        print(f"{cores:5} cores: decile 1 over the rest {np.exp(np.log(excess).mean()):.3f} ({low:.3f} to {high:.3f})")


if __name__ == "__main__":
    main()

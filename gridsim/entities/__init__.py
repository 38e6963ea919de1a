"""SimPy processes and resources of a simulation: clusters, routers, links, job sources and machines."""

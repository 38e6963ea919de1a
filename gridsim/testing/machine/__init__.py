"""A second implementation of machines of nodes, to compare the fast one with: slow, written as rules are worded.

Jobs are objects, amounts Python integers, scores fractions, holds a list. What is free is added up from that list again
for every question. Nothing is shared with `gridsim.profile` and `gridsim.policy`. Meant for tens of jobs and nodes.

| file | what |
|---|---|
| `parts` | nodes, pools, demands, holds |
| `room` | what is free, how many tasks fit, whether a demand can be placed, why it never can |
| `rules` | which node and which GPU come first; fragmentation; typical demands |
| `placing` | task by task with a look ahead; the earliest place |
| `trial` | the same by trial, with backing out of dead ends |
| `schedule` | FCFS, first-fit, EASY, depth-k, conservative |
| `shares` | utilisation |
| `claims` | what is true of schedules of particular policies |
| `translated` | jobs, machines and records of gridsim's model, there and back |
| `drawn` | small random machines and jobs |
"""

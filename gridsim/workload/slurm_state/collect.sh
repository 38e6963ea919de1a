#!/bin/bash
# Collect the live state of a Slurm cluster for: gridsim forecast --live FOLDER
# Usage: bash collect.sh [FOLDER [WEEKS]]. WEEKS is the length of the history (default 26).
set -eu
folder=${1:-slurm-state}
weeks=${2:-26}
mkdir -p "$folder"
cd "$folder"
export SLURM_TIME_FORMAT=%s  # Unix times need no time zone
export SLURM_BITSTR_LEN=0    # complete lists of array tasks

# Write the output of a command to a file; without the file if the command fails.
optional() {
  local file=$1
  shift
  if ! "$@" > "$file.part" 2> /dev/null; then
    rm -f "$file.part" "$file"
    return 1
  fi
  mv "$file.part" "$file"
}

# State: these commands have to run within one minute.
rm -f squeue.json scontrol_job.txt squeue.txt now
optional squeue.json squeue -a --json ||
  optional scontrol_job.txt scontrol -a -o show job ||
  optional squeue.txt squeue -a -h -o '@squeue@' ||
  { echo "squeue and scontrol failed; is Slurm installed here?" >&2; exit 1; }
date +%s > now
optional scontrol_node.txt scontrol show node ||
  optional sinfo.txt sinfo -N -h -o '@sinfo@'
optional scontrol_reservation.txt scontrol show reservation || true
optional scontrol_licenses.txt scontrol show licenses || true
optional sshare.txt sshare -alP || true

# Configuration, for the policy slurm and for time limits.
optional scontrol_config.txt scontrol show config || true
optional scontrol_partition.txt scontrol show partition || true
conf=$(sed -n 's/^SLURM_CONF *= *//p' scontrol_config.txt 2> /dev/null || true)
if [ -n "$conf" ] && [ -r "$conf" ]; then cp "$conf" slurm.conf; fi
cluster=$(sed -n 's/^ClusterName *= *//p' scontrol_config.txt 2> /dev/null || true)
if [ -n "$cluster" ]; then sacctmgr -i dump "$cluster" file=assoc.cfg > /dev/null 2>&1 || true; fi
optional qos.txt sacctmgr -P show qos || true

# History.
@sacct@

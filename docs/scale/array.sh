#!/bin/sh
#SBATCH --job-name=raftsim
#SBATCH --array=1-64
#SBATCH --cpus-per-task=4
#SBATCH --time=01:00:00
#SBATCH --requeue
# One search as a Slurm array. A task that is preempted or out of time goes on when it is started again.
set -eu
mkdir -p results
exec raftsim explore -seeds 1-1000000 -faults harsh -j "$SLURM_CPUS_PER_TASK" \
	-shard "$SLURM_ARRAY_TASK_ID/64" -out "results/$SLURM_ARRAY_TASK_ID.jsonl"

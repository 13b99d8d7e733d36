#!/bin/sh
# One search under GNU parallel. Arguments go to parallel: on several machines with a common directory,
#	sh parallel.sh --sshloginfile hosts --workdir "$PWD"
set -eu
mkdir -p results
seq 64 | parallel --jobs 1 "$@" \
	raftsim explore -seeds 1-1000000 -faults harsh -shard {}/64 -out results/{}.jsonl
raftsim merge -require-all results/*.jsonl

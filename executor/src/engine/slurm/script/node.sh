# Runs the program on this node with the variables of the job protocol, and leaves its exit code in `code`.
attempt() {
  export NODE_RANK="${SLURM_NODEID:-0}" SCHED_NODE="$SLURMD_NODENAME" FIRST_RANK=0 NPROC_PER_NODE=0
  rank=0
  for count in $GOODPUT_COUNTS; do
    if [ "$rank" -lt "$NODE_RANK" ]; then FIRST_RANK=$((FIRST_RANK + count)); fi
    if [ "$rank" -eq "$NODE_RANK" ]; then NPROC_PER_NODE=$count; fi
    rank=$((rank + 1))
  done
  export MASTER_ADDR="${SLURM_LAUNCH_NODE_IPADDR:-127.0.0.1}"
  export MASTER_PORT=$((47000 + (SLURM_JOB_ID * 7 + SCHED_ATTEMPT) % 1000))
  export TORCHELASTIC_RUN_ID="$SCHED_JOB_ID.$SCHED_ATTEMPT" TORCHELASTIC_RESTART_COUNT="$SCHED_ATTEMPT"
  export ADAPTDL_JOB_ID="goodput/$SCHED_JOB_ID" ADAPTDL_MASTER_ADDR="$MASTER_ADDR" ADAPTDL_MASTER_PORT="$MASTER_PORT"
  export ADAPTDL_REPLICA_RANK="$FIRST_RANK" ADAPTDL_NUM_NODES="$NNODES" ADAPTDL_NUM_REPLICAS="$WORLD_SIZE"
  export ADAPTDL_NUM_RESTARTS="$SCHED_ATTEMPT" ADAPTDL_SCHED_VERSION=0.2.11
  unset GOODPUT_COUNTS
  groups=$(cat /proc/self/cgroup 2>/dev/null)
  child= stopped=
  trap stop TERM
  "$@" &
  child=$!
  # The signal may have come before the number of the program was known.
  if [ -n "$stopped" ]; then stop; fi
  while :; do
    wait "$child"
    code=$?
    if ! kill -0 "$child" 2>/dev/null; then break; fi
  done
}

# Passes SIGTERM on. proctrack/cgroup signals this shell alone; other plugins signal the program as well.
stop() {
  stopped=1
  case $groups in
    *"job_$SLURM_JOB_ID"*) if [ -n "$child" ]; then kill -TERM "$child"; fi ;;
  esac
}

# Prints an exit code such that of several nodes the largest one tells most: a failure more than a
# try again, a try again more than a program that gave way.
priority() {
  case $1 in
    143) echo 3 ;;
    75) echo 4 ;;
    [1-4]) echo $((241 - $1)) ;;
    # srun ends with 1 where a task ends with one of these.
    25?) echo 236 ;;
    *) echo "$1" ;;
  esac
}

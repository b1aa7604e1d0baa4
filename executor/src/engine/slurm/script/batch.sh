# What sbatch was told is not what the job holds now, and srun would believe it.
unset SLURM_GPUS SLURM_GPUS_PER_NODE SLURM_GPUS_PER_TASK SLURM_TRES_PER_TASK SLURM_CPUS_PER_GPU SLURM_CPUS_PER_TASK
unset SLURM_MEM_PER_GPU SLURM_MEM_PER_CPU SLURM_MEM_PER_NODE SLURM_NTASKS SLURM_NPROCS SLURM_NTASKS_PER_NODE
unset SLURM_EXPORT_ENV SLURM_GET_USER_ENV SLURM_JWT SLURM_TIME_FORMAT SLURM_BITSTR_LEN
export NNODES="$SLURM_JOB_NUM_NODES" SCHED_JOB_ID="$SLURM_JOB_ID" SCHED_ATTEMPT="${SLURM_RESTART_COUNT:-0}"

# slurmctld may forget that a job ended, and start it again.
if [ -n "$GOODPUT_MARK" ]; then
  marks=${SCHED_CHECKPOINT_DIR:-$HOME/.goodput/done}
  if mkdir -p "$marks"; then GOODPUT_MARK=$marks/$GOODPUT_MARK; else GOODPUT_MARK=; fi
  if [ -n "$GOODPUT_MARK" ] && [ -e "$GOODPUT_MARK" ]; then
    echo "goodput: this job has ended well before; to run it again, remove $GOODPUT_MARK" >&2
    exit 0
  fi
fi

# Runs a command once on every node of the job.
everywhere() {
  srun --quiet --nodes="$NNODES" --ntasks="$NNODES" --ntasks-per-node=1 --mem=0 --cpu-bind=none --export=ALL "$@"
}

# Lists the nodes by rank with the number of accelerators that the job holds on each.
held='gpus=${CUDA_VISIBLE_DEVICES:-${SLURM_STEP_GPUS:-$SLURM_JOB_GPUS}}
echo "${SLURM_NODEID:-0} $(echo "$gpus" | tr , "\n" | grep -c .)"'
if [ "$NNODES" -gt 1 ]; then unset CUDA_VISIBLE_DEVICES SLURM_JOB_GPUS; fi
list() {
  if [ "$NNODES" -gt 1 ]; then everywhere sh -c "$held"; else sh -c "$held"; fi | sort -n | cut -d ' ' -f 2
}

# slurmctld may be away, or have started the job without accelerators; the daemon then puts the job back.
while :; do
  GOODPUT_COUNTS=$(list)
  WORLD_SIZE=0 nodes=0
  for count in $GOODPUT_COUNTS; do
    if [ "$count" -gt 0 ]; then nodes=$((nodes + 1)) WORLD_SIZE=$((WORLD_SIZE + count)); fi
  done
  if [ "$nodes" -eq "$NNODES" ]; then break; fi
  sleep 1
done
export GOODPUT_COUNTS WORLD_SIZE SCHED_GPUS="$WORLD_SIZE"

if [ "$NNODES" -eq 1 ]; then
  eval "$node"
  attempt "$@"
else
  # slurmd itself signals the tasks of srun on every node, so this shell only waits.
  trap : TERM
  everywhere --kill-on-bad-exit=1 sh -c "$node"'
attempt "$@"
exit "$(priority "$code")"' goodput "$@" &
  child=$!
  while :; do
    wait "$child"
    code=$?
    if ! kill -0 "$child" 2>/dev/null; then break; fi
  done
  # srun ends with the largest code of its tasks, and with 1 where it could not start them.
  case $code in
    1 | 2) code=75 ;;
    3) code=143 ;;
    4) code=75 ;;
    23[7-9] | 240) code=$((241 - code)) ;;
  esac
fi
if [ "$code" -eq 0 ] && [ -n "$GOODPUT_MARK" ]; then
  : > "$GOODPUT_MARK"
  # slurmctld forgets what happened seconds ago, not days ago.
  find "$marks" -maxdepth 1 -name '.goodput-ended-*' -mtime +7 -delete 2>/dev/null
fi
exit "$code"

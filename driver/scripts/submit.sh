#!/bin/sh
# submit.sh - the shards of a sweep, on many processors or computers.
#
#   submit.sh slurm DIR N           an array job of N, and one that merges
#   submit.sh parallel DIR N [FILE] GNU parallel, on the hosts that FILE lists
#   submit.sh shard DIR N I         one shard; submit.sh merge DIR N: the end
#   submit.sh progress DIR N        how far all of it is, in one line
#
# DIR/command, written by `amphora explore --submit`, says what is run. A shard
# that is done is the file DIR/shards/I.jsonl, which appears at once and whole.
# One that was killed goes on with what it has; one that is started twice does
# nothing, or the same again, in a folder of its own. So none is lost and none
# counts twice.
set -eu
what=$1 dir=$2 n=$3
shards=$dir/shards

# A word as a shell reads it.
quoted() { printf "'%s'" "$(printf '%s' "$1" | sed "s/'/'\\\\''/g")"; }

points_of() { cat "$@" 2>/dev/null | wc -l; }

# Lines of what is left behind by a run that was killed, the most there is.
left_behind() {
    best='' most=0
    for file in "$shards/$1".*/points.jsonl; do
        [ -s "$file" ] || continue
        lines=$(points_of "$file")
        if [ "$lines" -gt "$most" ]; then best=$file most=$lines; fi
    done
    printf '%s' "$best"
}

shard() {
    i=$1 own=$shards/$1.$(hostname).$$
    if [ -e "$shards/$i.jsonl" ]; then return 0; fi
    mkdir -p "$own"
    had=$(left_behind "$i")
    # shellcheck disable=SC1091
    . "$dir/command"
    if [ -n "$had" ]; then
        cp "$had" "$own.had"
        set -- "$@" --resume "$own.had"
    fi
    "$@" --submit none --shard "$i/$n" -o "$own" --reports none >/dev/null
    mv "$own/points.jsonl" "$shards/$i.jsonl"
    rm -rf "$own" "$own.had"
}

merge() {
    i=0
    while [ $((i += 1)) -le "$n" ]; do
        if [ ! -e "$shards/$i.jsonl" ]; then
            echo "shard $i of $n is not done: submit again" >&2
            exit 1
        fi
    done
    # shellcheck disable=SC1091
    . "$dir/command"
    amphora=$1
    "$amphora" explore --merge "$shards"/[0-9]*.jsonl -o "$dir" --reports none
}

progress() {
    all=$(cat "$dir/points")
    have=$(points_of "$shards"/[0-9]*.jsonl "$shards"/[0-9]*/points.jsonl)
    whole=0
    for file in "$shards"/[0-9]*.jsonl; do [ -e "$file" ] && whole=$((whole + 1)); done
    spent=$(($(date +%s) - $(stat -c %Y "$dir/command")))
    left='?'
    [ "$have" -gt 0 ] && left=$(((all - have) * spent / have))
    echo "$have of $all points, $whole of $n shards, ${spent} s, about ${left} s left"
}

mkdir -p "$shards"
case $what in
shard) shard "$4" ;;
merge) merge ;;
progress) progress ;;
slurm)
    run="sh $(quoted "$dir/submit.sh")" in=$(quoted "$dir")
    job=$(sbatch --parsable --requeue --array="1-$n" -J amphora-explore \
        -o "$shards/%a.log" --wrap "$run shard $in $n \$SLURM_ARRAY_TASK_ID")
    end=$(sbatch --parsable --dependency="afterok:$job" \
        --kill-on-invalid-dep=yes -J amphora-merge \
        -o "$dir/merge.log" --wrap "$run merge $in $n")
    echo "job $job: $n shards; job $end: merge into $dir; sh $dir/submit.sh progress $dir $n"
    ;;
parallel)
    # shellcheck disable=SC2086
    seq "$n" | parallel --retries 3 ${4:+--sshloginfile "$4"} \
        "sh $(quoted "$dir/submit.sh") shard $(quoted "$dir") $n {}"
    merge
    ;;
esac

# One host's part of `abdada cluster`, in POSIX sh with tar, setsid and coreutils. cluster.py sends it with every call,
# and a copy of it beside the programs supervises them: `sh cluster_host.sh CLUSTER HOST supervise ID`.
#
# All is in one directory, ~/.abdada/CLUSTER/HOST (hosts may share a home, so each has its own there):
#   bin/, keys/          what cluster.py has copied
#   lock                 held by the call that changes something there
#   log/ID, log/ID.1     what the program ID and its supervisor say
#   run/ID.command       execs the program; run/ID.about says what it was made of (shell assignments)
#   run/ID.supervisor    process, when it began (ticks since the boot), which boot it was: a process for certain, as
#                        the number alone is used again
#   run/ID.program       the same of the program, then the time of day it began and how often it was started again
#   run/ID.ready         its lines "ready ..."
#   run/ID.ended         how it ended last, if it has since it was started by hand
# Answers are lines on stdout after the line "abdada-cluster", a failure a line "abdada: ..." on stderr and status 1.
umask 077
LC_ALL=C
export LC_ALL
unset ABDADA_KEYS ABDADA_SERVERS ABDADA_TABLE # the command lines say all
log_max=1048576 # bytes; then log/ID becomes log/ID.1
longest_pause=30
steady=60 # seconds that a program runs before a crash is no longer taken for one of a series

fail() {
    echo "abdada: $*" >&2
    exit 1
}

nap() {
    sleep 0.1 2>/dev/null || sleep 1
}

put() { # FILE TEXT: whole or not at all
    printf '%s\n' "$2" >"$1.new" && mv -f "$1.new" "$1"
}

# ---- processes ----

identify() { # PROCESS: sets identity to "START BOOT"; to nothing when it has ended, even if nobody has waited for it
    identity=''
    { read -r stat <"/proc/$1/stat" && read -r boot_now </proc/sys/kernel/random/boot_id; } 2>/dev/null || return
    set -- ${stat##*) }
    [ $# -lt 20 ] || [ "$1" = Z ] || identity="${20} $boot_now"
}

is_same() { # PROCESS START BOOT
    identify "${1:-none}"
    [ -n "$identity" ] && [ "$identity" = "$2 $3" ]
}

lives() { # FILE: sets process, start, boot and rest
    { read -r process start boot rest <"$1"; } 2>/dev/null && is_same "$process" "$start" "$boot"
}

signal() { # NAME FILE
    lives "$2" && kill -"$1" "$process" 2>/dev/null
}

stop() { # SECONDS ID...: says which of these had to be killed
    end=$(($(date +%s) + $1)) killed=''
    shift
    for id; do
        signal TERM "$run/$id.supervisor" || signal TERM "$run/$id.program"
    done
    for id; do
        while lives "$run/$id.supervisor" || lives "$run/$id.program"; do
            if [ "$(date +%s)" -ge "$end" ]; then
                signal KILL "$run/$id.supervisor" # first, or it would start the program again
                if signal KILL "$run/$id.program" && [ "$killed" != "$id" ]; then
                    killed=$id
                    echo "killed $id"
                fi
            fi
            nap
        done
        rm -f "$run/$id".*
    done
}

start() { # ID...: what a supervisor has already is left to it
    for id; do
        ! lives "$run/$id.supervisor" || continue
        setsid sh "$base/bin/cluster_host.sh" "$cluster" "$host" supervise "$id" </dev/null >/dev/null 2>&1 9<&- &
    done
    for id; do
        tries=0
        until lives "$run/$id.supervisor"; do
            tries=$((tries + 1))
            [ "$tries" -lt 100 ] || fail "$id was not started: is $base full, or a file system without named pipes?"
            nap
        done
    done
}

# ---- the supervisor ----

say() {
    echo "$(date -u +%Y-%m-%dT%H:%M:%SZ) cluster: $*"
}

ending() { # STATUS
    if [ "$1" -gt 128 ]; then
        echo "killed by SIG$(kill -l $(($1 - 128)))"
    else
        echo "status $1"
    fi
}

supervise() { # ID
    ! lives "$run/$1.supervisor" || exit 0
    id=$1 delay=0 restarts=0 stopping='' life=''
    cd "$HOME" || exit 1
    ulimit -c 0 # a core file would have the keys in it
    exec 2>/dev/null
    rm -f "$run/$id.pipe"
    mkfifo "$run/$id.pipe" || exit 1
    keep_log "$id" <"$run/$id.pipe" &
    logger=$!
    exec >"$run/$id.pipe" 2>&1
    rm -f "$run/$id.pipe"
    # Once: a second signal would end the program before it has said BYE and written its snapshot.
    trap ': ${stopping:=asked}; [ $stopping = sent ] || { is_same $life && kill "${life%% *}" && stopping=sent; }' TERM
    identify $$
    put "$run/$id.supervisor" "$$ $identity" || exit 1
    while [ -z "$stopping" ]; do
        say "$id starts"
        sh "$run/$id.command" </dev/null &
        program=$!
        began=$(date +%s)
        identify "$program"
        life="$program $identity"
        put "$run/$id.program" "$life $began $restarts"
        [ "$stopping" != asked ] || kill "$program" # the signal came before the program was known
        while :; do # a signal ends `wait`, but not the program at once
            wait "$program"
            status=$?
            is_same $life || break
        done
        life=''
        rm -f "$run/$id.program"
        [ -z "$stopping" ] || break
        [ $(($(date +%s) - began)) -lt $steady ] || delay=0
        put "$run/$id.ended" "$(ending "$status")"
        say "$id ended, $(ending "$status"); starts again in $delay s"
        sleep $delay &
        wait $! # so that a signal is not kept waiting
        [ -z "$stopping" ] || kill $!
        delay=$((delay == 0 ? 1 : delay * 2))
        [ $delay -le $longest_pause ] || delay=$longest_pause
        restarts=$((restarts + 1))
    done
    say "$id stopped"
    exec >/dev/null 2>&1
    wait $logger # nothing writes here any more when this process has ended
}

keep_log() { # ID: its lines on stdin
    file=$base/log/$1
    size=$(($(wc -c <"$file" || echo 0)))
    while IFS= read -r line || [ -n "$line" ]; do
        case $line in
        ready*) echo "$line" >>"$run/$1.ready" ;;
        *"Z cluster: $1 starts") : >"$run/$1.ready" ;;
        esac
        if [ $size -ge $log_max ]; then
            mv -f "$file" "$file.1"
            size=0
        fi
        printf '%s\n' "$line" >>"$file"
        size=$((size + ${#line} + 1))
    done
}

# ---- what cluster.py asks for ----

# The phase of ID: down, starting, restarting (it has ended, and has not been ready again), silent (a shard that does not
# answer), up.
state_of() {
    phase=down process=- began=0 restarts=0
    program='' keys='' ready=0 made_of=- version=-
    [ ! -r "$run/$1.about" ] || . "$run/$1.about"
    lives "$run/$1.supervisor" || { process=- && return; }
    phase=starting
    [ ! -e "$run/$1.ended" ] || phase=restarting
    lives "$run/$1.program" || { process=- && return; }
    began=${rest%% *} restarts=${rest##* }
    [ "$(($(cat "$run/$1.ready" 2>/dev/null | wc -l)))" -ge "$ready" ] || return
    phase=up
    case $1 in
    ttserver*)
        while read -r _ address; do
            "$program" --config /dev/null --check "$address" ${keys:+--keys "$keys"} </dev/null >/dev/null 2>&1 || {
                phase=silent
                break # silence takes seconds, and a process may have many shards
            }
        done <"$run/$1.ready"
        ;;
    esac
}

print_state() { # ID, after state_of
    echo "item $1 $phase $process $began $restarts $made_of $version"
    if [ $phase != up ] && [ -r "$base/log/$1" ]; then
        last=$(grep -v -e 'Z cluster: ' -e ^ready "$base/log/$1" | tail -n 1)
        printf '%s\n' "why $1 $(cat "$run/$1.ended" 2>/dev/null): $last"
    fi
}

ids() { # also of what an interrupted call has left
    for file in "$run"/*.command "$run"/*.supervisor "$run"/*.program; do
        [ ! -e "$file" ] || { file=${file##*/} && echo "${file%.*}"; }
    done | sort -u
}

alone() { # one call at a time changes a host: the one before may go on there after its ssh has ended
    command -v flock >/dev/null || {
        echo "note no \`flock\` there: let no other \`abdada cluster\` be at work there meanwhile"
        return 0
    }
    while :; do
        # The call before may remove the folder between the two. Append: NFS locks only what is open for writing.
        tries=0
        until mkdir -p "$base" 2>/dev/null && { command exec 9>>"$base/lock"; } 2>/dev/null; do
            tries=$((tries + 1))
            if [ "$tries" -ge 20 ]; then
                mkdir -p "$base" && command exec 9>>"$base/lock" && break
                fail "cannot make $base/lock"
            fi
            [ "$tries" -lt 10 ] || nap
        done
        flock -w 20 9
        case $? in
        0) [ ! "$base/lock" -ef "/proc/$$/fd/9" ] || return 0 ;; # else the one before has removed it
        1) fail "another \`abdada cluster\` is at work there" ;;
        *)
            echo "note cannot lock $base/lock: let no other \`abdada cluster\` be at work there meanwhile"
            return 0
            ;;
        esac
    done
}

quota_of() { # FOLDER of a cgroup: its quota and period of CPU time, or less
    cat "$1/cpu.max" 2>/dev/null || # version 2
        echo $(cat "$1/cpu.cfs_quota_us" "$1/cpu.cfs_period_us" 2>/dev/null)
}

cpus() { # [LIST ROOT]: CPUs that a process here may use: by its affinity, and by the quotas of its cgroups, rounded up
    list=${1:-/proc/self/cgroup} root=${2:-/sys/fs/cgroup}
    count=$(unset OMP_NUM_THREADS OMP_THREAD_LIMIT && nproc) # nproc obeys these, which are for other programs
    while IFS=: read -r _ kinds path; do
        case $kinds in
        '') trees="$root $root/unified" ;;
        cpu | cpu,* | *,cpu) trees=$root/cpu ;;
        *) continue ;;
        esac
        path=${path%/}/
        while [ -n "$path" ]; do # also those around it, and the root: the path may be that outside a container
            path=${path%/*}
            for tree in $trees; do
                read -r quota period <<EOF
$(quota_of "$tree$path")
EOF
                case $quota,$period in
                *[!0-9,]* | ,* | *,) ;; # max, -1, or no file
                *) [ $((count * period)) -le "$quota" ] || count=$(((quota + period - 1) / period)) ;;
                esac
            done
        done
    done 2>/dev/null <"$list"
    echo "$count"
}

probe() { # PROGRAM...: also says which of these are installed
    echo "machine $(uname -m)"
    echo "cpus $(cpus)"
    echo "home $HOME"
    (cd "$base" 2>/dev/null && find bin keys -type f -exec sha256sum {} + 2>/dev/null | sed 's/^/file /')
    for name; do
        path=$(command -v "$name") || fail "$name is not installed there (not on PATH of a login by ssh)"
        version=$("$path" --version </dev/null) || fail "$path does not run there"
        echo "installed $name $(echo "$version" | sed 's/^[^ ]* //; q') $(sha256sum <"$path" | cut -d ' ' -f 1) $path"
    done
    states
}

states() {
    for id in $(ids); do
        state_of "$id"
        print_state "$id"
    done
}

unpack() { # tar on stdin
    rm -rf "$base/new"
    if ! { mkdir -p "$base/new" "$base/bin" "$run" "$base/log" && tar -x -m -o -f - -C "$base/new"; }; then
        leave
        fail "cannot copy to $base"
    fi
    for name in ttserver ttworker; do
        [ ! -e "$base/new/bin/$name" ] || "$base/new/bin/$name" --version >/dev/null || {
            leave
            fail "$name does not run there"
        }
    done
}

leave() { # removes what is new, and the directories if nothing else is in them
    rm -rf "$base/new"
    rmdir "$base/bin" "$base/log" "$run" 2>/dev/null
    if [ "$(ls -A "$base" 2>/dev/null)" = lock ]; then
        rm -f "$base/lock" # first, so that who waits for it sees that it is gone
        exec 9>&-          # NFS keeps what is open
    fi
    rmdir "$base" "$HOME/.abdada/$cluster" "$HOME/.abdada" 2>/dev/null
    return 0
}

take_over() { # OTHER-KEYS: what was unpacked
    for file in "$base/new/bin"/* "$base/new/run"/*; do
        [ ! -e "$file" ] || mv -f "$file" "${file%/new/*}/${file##*/new/}" || fail "cannot write to $base"
    done
    if [ -n "$1" ]; then
        rm -rf "$base/keys"
        [ ! -d "$base/new/keys" ] || mv "$base/new/keys" "$base/keys" || fail "cannot write to $base"
    fi
    rm -rf "$base/new"
}

apply() { # SECONDS WITH-TAR OTHER-KEYS "ID to stop..." "ID to start..." "ID to wait for..."
    bound=$1
    alone
    [ -z "$2" ] || unpack
    stop "$bound" $4
    take_over "$3"
    if [ -n "$3" ]; then # perhaps of users: shards that go on read these again
        for id in $(ids); do
            case $id in ttserver*) signal HUP "$run/$id.program" ;; esac
        done
    fi
    start $5
    end=$(($(date +%s) + bound))
    for id in $6; do
        while :; do
            state_of "$id"
            case "$phase $process" in
            down* | up* | "restarting -") break ;; # it has ended, and is not the first to: what is wrong will stay so
            esac
            [ "$(date +%s)" -lt $end ] || break
            nap
        done
    done
    states
}

logs() { # LINES FOLLOW
    lines=$1
    for id in $(ids); do
        if [ -n "$2" ]; then
            tail -n "$lines" -F "$base/log/$id" 2>/dev/null | with_name "$id" &
        else
            cat "$base/log/$id.1" "$base/log/$id" 2>/dev/null | tail -n "$lines" | with_name "$id"
        fi
    done
    if [ -n "$2" ]; then # until the other side goes, which only a read shows while there is nothing to say
        cat >/dev/null
        trap '' TERM
        kill -TERM 0
    fi
}

with_name() { # ID: before each line of stdin
    while IFS= read -r line; do
        printf '%s %s\n' "$1" "$line"
    done
}

remove() { # SECONDS
    alone
    set -- "$1" $(ids)
    stop "$@"
    shift
    echo "stopped $*"
    set -- "$base/bin" "$base/keys" "$base/log" "$run" "$base/new"
    rm -rf "$@" 2>/dev/null || { nap && rm -rf "$@"; } || fail "cannot remove $base"
    leave
}

main() { # CLUSTER HOST OPERATION [ARGUMENT]...
    cluster=$1 host=$2 operation=$3
    base=$HOME/.abdada/$cluster/$host
    run=$base/run
    shift 3
    [ "$operation" = supervise ] || echo abdada-"cluster" # the line is not in this text, which a login may print
    "$operation" "$@"
}

[ $# -eq 0 ] || main "$@"

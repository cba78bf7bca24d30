#!/usr/bin/env bash
# deps.sh: installs what is missing, and only that, with apt-get.
#
#   deps.sh [--optional | --missing | --list] SET|PACKAGE[|PACKAGE]=PROBE...
#
# SET is one of the lists below: what compiling, building, testing and so on need. PROBE tells whether it is installed: `name.h` a header the compiler finds, `name.so.N` a library that
# is loaded, `py:name` a module of $PYTHON, `libfuzzer` clang's runtime for it, `/path` a file, else a command. Of PACKAGE|PACKAGE the first that the
# distribution has is taken (names differ between releases). --missing installs nothing and prints
# what is missing, --list prints PACKAGE=PROBE of the sets. With --optional a failed installation is no failure: the tests that need the tool
# are skipped.
set -u
export DEBIAN_FRONTEND=noninteractive
CC=${CC:-gcc} # perhaps of two words, as ccache gcc
PYTHON=${PYTHON:-/usr/bin/python3}
PATH=$PATH:/usr/games:/usr/sbin:/sbin # where Debian puts engines and `ip`

compile=(gcc=gcc libc6-dev=stdio.h libzmq3-dev=zmq.h "libmsgpack-c-dev|libmsgpack-dev=msgpack.h" libuv1-dev=uv.h
    libsodium-dev=sodium.h libmicrohttpd-dev=microhttpd.h zlib1g-dev=zlib.h)
make=(make=make pkg-config=pkg-config)
build=("${compile[@]}" "${make[@]}" libcmocka-dev=cmocka.h python3="$PYTHON" python3-zmq=py:zmq python3-msgpack=py:msgpack)
redis=(libhiredis-dev=hiredis/hiredis.h libssl-dev=openssl/ssl.h) # without them there is no Redis as the table
test=(g++=g++ "clang-format-14|clang-format=clang-format-14" cppcheck=cppcheck valgrind=valgrind iproute2=ip
    gnuplot-nox=gnuplot redis-server=redis-server python3-cffi=py:cffi python3-dev=python3-config
    python3-venv=py:ensurepip python3-setuptools=py:setuptools python3-wheel=py:wheel mypy=mypy man-db=man
    bash-completion=/usr/share/bash-completion/bash_completion systemd=systemd-analyze lintian=lintian
    prometheus=promtool kubernetes-client=kubectl python3-yaml=py:yaml libfathom1=libfathom.so.1
    slurmctld=slurmctld slurmd=slurmd slurm-client=sbatch munge=munged
    chromium=chromium chromium-driver=chromedriver python3-selenium=py:selenium openssh-server=sshd)
deb=(debhelper=dh dpkg-dev=dpkg-buildpackage "${redis[@]}") # a package is always with Redis
fuzz=(clang=clang "libclang-rt-14-dev|libclang-rt-dev=libfuzzer")
bench=(stockfish=stockfish redis-server=redis-server memcached=memcached)
match=(glaurung=/usr/games/glaurung toga2=/usr/games/toga2 gnuchess=/usr/games/gnuchess grhino=/usr/games/gtp-rhino
    python3-venv=py:ensurepip)

is_here()
{
    case $1 in
    *.h) command -v ${CC%% *} >/dev/null && echo "#include <$1>" | $CC -E -x c - >/dev/null 2>&1 ;;
    *.so.*) "$PYTHON" -c "import ctypes; ctypes.CDLL('$1')" >/dev/null 2>&1 ;;
    libfuzzer) ls /usr/lib/llvm*/lib/clang/*/lib/linux/libclang_rt.fuzzer-*.a >/dev/null 2>&1 ;;
    /*) [ -e "$1" ] ;;
    py:*) "$PYTHON" -c "import ${1#py:}" >/dev/null 2>&1 ;;
    *) command -v "$1" >/dev/null 2>&1 ;;
    esac
}

# The first of a|b|c that apt knows.
choose()
{
    local name
    for name in ${1//|/ }; do
        if [ -n "$(apt-cache madison "$name" 2>/dev/null)" ]; then
            echo "$name"
            return
        fi
    done
    echo "${1%%|*}"
}

run_as_root()
{
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo --non-interactive --preserve-env=DEBIAN_FRONTEND "$@"
    else
        echo "deps: not root, and there is no sudo" >&2
        return 1
    fi
}

apt()
{
    run_as_root apt-get -q -y -o DPkg::Lock::Timeout=300 -o Acquire::Retries=3 \
        -o Dpkg::Use-Pty=0 "$@" </dev/null
}

mode=install
case ${1:-} in
--optional | --missing | --list)
    mode=${1#--}
    shift
    ;;
esac

rows=()
for name in "$@"; do
    case $name in
    *=*) rows+=("$name") ;;
    compile | make | build | redis | test | deb | fuzz | bench | match)
        declare -n set=$name
        rows+=("${set[@]}")
        ;;
    *)
        echo "deps: no set '$name'" >&2
        exit 2
        ;;
    esac
done
if [ $mode = list ]; then
    printf '%s\n' "${rows[@]}"
    exit 0
fi
wanted=() probes=()
for row in "${rows[@]}"; do
    if ! is_here "${row#*=}"; then
        wanted+=("${row%%=*}")
        probes+=("${row#*=}")
    fi
done
if [ ${#wanted[@]} -eq 0 ]; then
    exit 0
fi
if [ $mode = missing ]; then
    echo "${probes[*]}"
    exit 0
fi
if ! command -v apt-get >/dev/null; then
    echo "deps: missing: ${wanted[*]}; there is no apt-get here, please install them yourself" >&2
    [ $mode = optional ]
    exit
fi
echo "deps: missing, installing: ${wanted[*]}"
log=$(mktemp)
trap 'rm -f "$log"' EXIT
apt update >"$log" 2>&1 || echo "deps: apt-get update failed, going on with what is known" >&2
names=()
for name in "${wanted[@]}"; do
    names+=("$(choose "$name")")
done
if ! apt install --no-install-recommends "${names[@]}" >>"$log" 2>&1; then
    for name in "${names[@]}"; do # one that cannot be had need not keep the others away
        apt install --no-install-recommends "$name" >>"$log" 2>&1
    done
fi
absent=()
for i in "${!probes[@]}"; do
    is_here "${probes[$i]}" || absent+=("${wanted[$i]}")
done
if [ ${#absent[@]} -eq 0 ]; then
    exit 0
fi
if [ $mode = optional ]; then
    echo "deps: could not install ${absent[*]}: the tests that need them are skipped" >&2
    exit 0
fi
tail -n 15 "$log" >&2
echo "deps: could not install: ${absent[*]}" >&2
exit 1

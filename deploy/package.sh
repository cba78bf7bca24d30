#!/usr/bin/env bash
# package.sh dist|sbom|deb: a release, in build/; `make dist sbom deb` call it with VERSION and COMMIT.
#   dist   abdada-VERSION.tar.gz: the sources that git knows, which needs no git
#   sbom   abdada-VERSION.cdx.json: what the programs are made of and need, as this machine has it (REDIS, PYTHON)
#   deb    deb/abdada_VERSION_ARCHITECTURE.deb, for all processors of the last 15 years unless ARCH is given (JOBS)
set -euo pipefail
release=abdada-$VERSION
# When the sources were last changed: what is made of them bears that time, so that it is the same whenever it is made.
time=${SOURCE_DATE_EPOCH:-}
[ -n "$time" ] || [ ! -e .git ] || time=$(git log -1 --format=%ct 2>/dev/null) || true
[ -n "$time" ] || time=$(stat -c %Y worker/lib/abdada.h)
mkdir -p build

dist() {
    printf '%s\n' "$COMMIT" > build/COMMIT
    git ls-files --deduplicate -z | LC_ALL=C sort -z |
        tar -cf "build/$release.tar" --null --files-from=- --no-recursion --format=gnu \
            --mtime="@$time" --owner=0 --group=0 --numeric-owner --mode=u+rw,go=rX \
            --transform='flags=rS;s,^build/,,' --transform="flags=rS;s,^,$release/," --add-file=build/COMMIT
    gzip -n9f "build/$release.tar"
    rm build/COMMIT
    ls "build/$release.tar.gz"
}

sbom() {
    local file=build/$release.cdx.json needs
    needs=$(deploy/deps.sh --list compile ${REDIS:+"$REDIS"})
    "$PYTHON" deploy/sbom.py --version "$VERSION" --commit "$COMMIT" --time "$time" $needs > "$file.new"
    mv "$file.new" "$file"
    ls "$file"
}

# From a copy of what it is made of, so that it works without git, too, and leaves build/release alone.
deb() {
    local copy=build/deb/$release
    rm -rf build/deb
    mkdir -p "$copy"
    tar -c --exclude=__pycache__ --exclude=worker/lib/python/build --exclude='*.egg-info' \
        Makefile $ABOUT common proto ttserver worker deploy docs examples | tar -x -C "$copy"
    cp -r deploy/debian "$copy/debian"
    printf '%s\n' "$COMMIT" > "$copy/COMMIT"
    sed "s/@VERSION@/$VERSION/; s/@DATE@/$(date -R -u -d "@$time")/" deploy/debian/changelog.in > "$copy/debian/changelog"
    (cd "$copy" && env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u CFLAGS -u LDFLAGS ABDADA_ARCH="${ARCH:-}" \
        dpkg-buildpackage -us -uc -b "-j$JOBS")
    rm -rf "$copy"
    ls build/deb/*.deb
}

"$1"

#!/usr/bin/env bash
# install.sh programs|library|uninstall: what goes where below $DESTDIR, from one list for all three.
# `make install`, `install-library` and `uninstall` call it with PREFIX, LIBDIR, DESTDIR, O (where objects are), VERSION,
# PROGRAMS, ABOUT (documents of the top folder), SONAME and LIBS of the library.
set -euo pipefail
shopt -s nullglob
to=$DESTDIR$PREFIX to_lib=$DESTDIR$LIBDIR
share=$to/share doc=$to/share/doc/abdada bash=$to/share/bash-completion/completions

# Programs find a library where it was installed, if the system does not search there.
case $LIBDIR in
/usr/lib* | /usr/local/lib* | /lib*) rpath= ;;
*) rpath='-Wl,-rpath,${libdir}' ;;
esac

# `put MODE FILE DESTINATION`, and `put link NAME DESTINATION`.
put() {
    if [ "$1" = link ]; then
        ln -sf "$2" "$3"
    else
        install -D -m "$1" "$2" "$3"
    fi
    case $3 in "$doc"/*) ;; *) echo "  INSTALL $3" ;; esac
}

programs() {
    local program file
    for program in $PROGRAMS; do
        put 755 "$O/bin/$program" "$to/bin/$program"
        put 644 "$O/man/$program.1" "$share/man/man1/$program.1"
    done
    put 644 deploy/completion.bash "$bash/abdada"
    for program in $PROGRAMS; do
        [ "$program" = abdada ] || put link abdada "$bash/$program"
    done
    # At the same places below it as here, so that links between them are right.
    for file in $ABOUT deploy/cluster.example.toml proto/PROTOCOL.md worker/lib/python/README.md docs/*.md docs/*/*.md \
        docs/pictures/*.png docs/pictures/*.svg examples/*.c examples/*.cc examples/*.py examples/stockfish/*.*; do
        put 644 "$file" "$doc/$file"
    done
    echo "  INSTALL $doc"
}

library() {
    put 644 worker/lib/abdada.h "$to/include/abdada.h"
    put 644 "$O/lib/libabdada.a" "$to_lib/libabdada.a"
    put 755 "$O/lib/$SONAME" "$to_lib/libabdada.so.$VERSION"
    put link "libabdada.so.$VERSION" "$to_lib/$SONAME"
    put link "$SONAME" "$to_lib/libabdada.so"
    put 644 deploy/abdada.pc.in "$to_lib/pkgconfig/abdada.pc"
    put 644 docs/abdada.3 "$share/man/man3/abdada.3"
}

case $1 in
programs) programs ;;
library)
    library
    sed -i -e "s|@PREFIX@|$(realpath -ms "$PREFIX")|; s|@LIBDIR@|$(realpath -ms "$LIBDIR")|; s|@VERSION@|$VERSION|" \
        -e "s|@RPATH@|$rpath|; s|@LIBS@|$LIBS|" "$to_lib/pkgconfig/abdada.pc"
    [ -n "$DESTDIR$rpath" ] || ldconfig || true
    ;;
uninstall)
    put() { rm -f "$3"; }
    programs >/dev/null
    library
    [ ! -d "$doc" ] || find "$doc" -depth -type d -empty -delete
    ;;
esac

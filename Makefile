# abdada: build and install; tests/tests.mk tests, tests/instruments/instruments.mk measures. `make help` lists the targets
# that have a ## here and there.
#   MODE=release (default) | dev (ASan, UBSan, -Werror) | tsan | coverage (of the tests, gcov)      ARCH=native | x86-64-v3 | ...
#   O=build/$(MODE): where objects go      JOBS=CPUs of this machine
MODE   ?= release
ARCH   ?= native
PREFIX ?= /usr/local
PYTHON ?= /usr/bin/python3
JOBS   ?= $(shell nproc)
ifeq ($(origin CC),default)
CC := gcc
endif

O := build/$(MODE)

# What is needed, as PACKAGE=PROBE; PACKAGE|PACKAGE: names differ between releases.
DEPS_COMPILE := gcc=gcc libc6-dev=stdio.h libzmq3-dev=zmq.h "libmsgpack-c-dev|libmsgpack-dev=msgpack.h" \
                libuv1-dev=uv.h libsodium-dev=sodium.h \
                libmicrohttpd-dev=microhttpd.h libzstd-dev=zstd.h
DEPS_BUILD   := $(DEPS_COMPILE) make=make pkg-config=pkg-config libcmocka-dev=cmocka.h python3=$(PYTHON) \
                python3-zmq=py:zmq python3-msgpack=py:msgpack
# Without them there is no Redis as the table.
DEPS_REDIS   := libhiredis-dev=hiredis/hiredis.h libssl-dev=openssl/ssl.h
DEPS_TEST    := "clang-format-14|clang-format=clang-format-14" cppcheck=cppcheck valgrind=valgrind iproute2=ip \
                gnuplot-nox=gnuplot redis-server=redis-server python3-cffi=py:cffi python3-dev=python3-config \
                python3-venv=py:ensurepip python3-setuptools=py:setuptools python3-wheel=py:wheel mypy=mypy \
                man-db=man bash-completion=/usr/share/bash-completion/bash_completion systemd=systemd-analyze \
                lintian=lintian prometheus=promtool kubernetes-client=kubectl python3-yaml=py:yaml libfathom1=libfathom.so.1 zstd=zstd \
                slurmctld=slurmctld slurmd=slurmd slurm-client=sbatch munge=munged \
                chromium=chromium chromium-driver=chromedriver python3-selenium=py:selenium openssh-server=sshd
# For `make deb`; a package is always with Redis.
DEPS_DEB     := debhelper=dh dpkg-dev=dpkg-buildpackage $(DEPS_REDIS)
DEPS_FUZZ    := clang=clang "libclang-rt-14-dev|libclang-rt-dev=libfuzzer"
DEPS_BENCH   := stockfish=stockfish redis-server=redis-server memcached=memcached
DEPS_MATCH   := glaurung=/usr/games/glaurung toga2=/usr/games/toga2 gnuchess=/usr/games/gnuchess grhino=/usr/games/gtp-rhino python3-venv=py:ensurepip
DEPS         := CC=$(CC) PYTHON=$(PYTHON) deploy/deps.sh

RULES := $(wildcard Makefile tests/tests.mk tests/instruments/instruments.mk)
# Plain words before a colon: no files. Of them those that need something compiled here; all others call make again.
PHONY := $(shell awk '/^[a-z][a-z -]*:/ { sub(/:.*/, ""); print }' $(RULES))
COMPILED := $(shell awk '/^[a-z][a-z -]*:/ { sub(/\043\043.*/, ""); if (index($$0, "$$") || /:.* (all|library)/) { sub(/:.*/, ""); print } }' $(RULES))
SELF_SUFFICIENT := $(filter-out $(COMPILED),$(PHONY))
# One line instead of a page of compiler errors when a library is missing; checked once.
ifneq ($(filter-out $(SELF_SUFFICIENT),$(or $(MAKECMDGOALS),all)),)
ifeq ($(wildcard build/headers),)
MISSING := $(shell $(DEPS) --missing $(DEPS_COMPILE))
ifneq ($(MISSING),)
$(error missing here: $(MISSING) -- run `make deps`)
endif
$(shell mkdir -p build && touch build/headers)
endif
endif

WARN   := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla \
          -Wno-missing-field-initializers
# One version for all: that of the library.
VERSION := $(shell sed -n 's/^.define ABDADA_VERSION "\(.*\)"/\1/p' worker/lib/abdada.h)
COMMON := -std=c11 -D_GNU_SOURCE -DPROGRAM_VERSION='"$(VERSION)"' -I. -I$(O) -g -pthread $(WARN) -MMD -MP
# Redis is optional, and built as a whole (hiredis speaks its protocol, OpenSSL encrypts for rediss://) or not at all:
# then x_none.c stands in for x.c, and the rest of it is absent.
OF_REDIS := $(filter-out %redis_address.c %_none.c,$(wildcard common/redis/*.c worker/redis/*.c ttserver/keep/backing*.c))
HAS = $(shell printf '\043include <%s>\n' $(1) | $(CC) -E -x c - >/dev/null 2>&1 && echo y)
ifeq ($(call HAS,hiredis/hiredis.h)$(call HAS,openssl/ssl.h),yy)
COMMON += -DHAVE_REDIS
LIBS_REDIS := -lhiredis -lssl -lcrypto
ABSENT := %_none.c
else
ABSENT := $(OF_REDIS) $(filter-out %redis_address.c,$(wildcard tests/unit/redis/*.c))
endif
ifeq ($(MODE),release)
CFLAGS_MODE := -O3 -march=$(ARCH) -flto=auto -fno-plt
LDFLAGS_MODE := -O3 -march=$(ARCH) -flto=auto
else ifeq ($(MODE),dev)
CFLAGS_MODE := -O1 -march=$(ARCH) -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -Werror
LDFLAGS_MODE := -fsanitize=address,undefined
else ifeq ($(MODE),tsan)
CFLAGS_MODE := -O1 -march=$(ARCH) -fsanitize=thread -fno-omit-frame-pointer -Werror
LDFLAGS_MODE := -fsanitize=thread
else ifeq ($(MODE),coverage)
CFLAGS_MODE := -O1 -march=$(ARCH) --coverage
LDFLAGS_MODE := --coverage
else
$(error MODE is release, dev, tsan or coverage, not '$(MODE)')
endif
CFLAGS_ALL := $(COMMON) $(CFLAGS_MODE) $(CFLAGS)

# msgpack-c changed its library's name between releases; pkg-config knows which is here.
LIBS_NET = -lzmq -luv -lsodium -lmicrohttpd -lzstd $(shell pkg-config --libs msgpack-c 2>/dev/null || pkg-config --libs msgpack 2>/dev/null || echo -lmsgpackc)
LIBS     = $(LIBS_NET) $(LIBS_REDIS) -lm -pthread

MAINS := ttserver/main.c worker/ttworker.c worker/abdada.c
SRC := $(filter-out $(MAINS) $(ABSENT),$(wildcard $(foreach top,common proto ttserver worker,$(top)/*.c $(top)/*/*.c $(top)/*/*/*.c)))
# Files that a program has in it as they are; of x.y the linker makes _binary_x_y_start and _binary_x_y_end.
EMBEDDED := $(wildcard deploy/cluster/*.py deploy/cluster/*.sh worker/programs/*/*.html worker/games/*/*.net worker/games/*/*.weights)
OBJ := $(SRC:%.c=$(O)/%.o) $(EMBEDDED:%=$(O)/%.embedded.o)
PROGRAMS := ttserver ttworker abdada
MAIN_ttserver := ttserver/main.c
MAIN_ttworker := worker/ttworker.c
MAIN_abdada   := worker/abdada.c
all: $(if $(filter release,$(MODE)),$(PROGRAMS:%=bin/%),$(PROGRAMS:%=$(O)/bin/%)) library ## build bin/ttserver, bin/ttworker and bin/abdada; MODE=dev|tsan: with sanitizers, in build/MODE/bin

$(O)/all.a: $(OBJ)
	@rm -f $@
	@gcc-ar rcs $@ $(OBJ)

define LINK
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	@$(CC) $(LDFLAGS_MODE) $(LDFLAGS) -o $@ $(filter %.o %/libabdada.a,$^) $(O)/all.a $(LIBS)
endef
# The virtual cluster of `abdada sim` refuses memory at times (worker/lab/lab_want.h).
WANT := -Wl,--wrap=malloc,--wrap=calloc,--wrap=realloc,--wrap=aligned_alloc,--wrap=mmap
$(O)/bin/abdada: private LDFLAGS += $(WANT)
$(foreach p,$(PROGRAMS),$(eval $(O)/bin/$(p): $(MAIN_$(p):%.c=$(O)/%.o) $(O)/about.o $(O)/all.a $(O)/flags))
$(PROGRAMS:%=$(O)/bin/%):
	$(LINK)

# What --version says after its first line. The programs alone have it, in an object of its own: so a commit compiles
# nothing else anew, and links no test; and of one size in a section of its own: all else in a program is the same
# whatever the commit. The file COMMIT is in copies of the sources without git (dist, deb).
COMMIT = $(shell cat COMMIT 2>/dev/null || { [ -e .git ] && git -c safe.directory='*' describe --always --abbrev=12 --exclude='*' --dirty=-modified 2>/dev/null; } || echo unknown)
FEATURES = keys $(if $(LIBS_REDIS),redis) zstd
%/about.c: FORCE
	@mkdir -p $(@D)
	@{ echo '#include "common/options.h"'; \
	   echo 'const char build_about[256] __attribute__((section(".about"))) ='; \
	   printf '    "commit %s\\n"\n' "$(COMMIT)"; \
	   printf '    "built %s for %s by %s %s\\n"\n' $(MODE) $(ARCH) $(notdir $(CC)) $$($(CC) -dumpfullversion); \
	   printf '    "with %s\\n";\n' "$(strip $(FEATURES))"; } > $@.new
	@cmp -s $@.new $@ && rm -f $@.new || mv $@.new $@

%/about.o: %/about.c $(O)/flags
	@echo "  CC    $@"
	@$(CC) $(CFLAGS_ALL) -c -o $@ $<

# ---- libabdada: the client side, for programs of others (worker/lib/abdada.h) ----
# Position-independent, without link-time optimisation, so that any compiler's program can have it. All of it is linked
# into one object of which only what abdada.h declares can be seen, in the static library as in the shared one.
COMMA := ,
LIB_SONAME  := libabdada.so.0
LIB_SRC := $(filter-out $(ABSENT) common/tt/snapshot.c,$(wildcard worker/lib/*.c worker/redis/*.c worker/transport/*.c proto/*.c proto/*/*.c \
               common/redis/*.c common/keys/*.c common/tt/*.c)) \
           $(addprefix common/,clock.c err.c log.c lookup.c options.c signals.c)
LIB_OBJ := $(LIB_SRC:%.c=$(O)/lib/%.o)
# For any machine of its kind unless ARCH is given: it is installed, and copied.
LIB_CFLAGS = $(filter-out -flto=auto $(if $(filter file,$(origin ARCH)),-march=$(ARCH)),$(CFLAGS_ALL)) -fPIC -fvisibility=hidden
LIB_LIBS   = -lzmq $(LIBS_REDIS) -pthread

$(O)/lib/%.o: %.c $(O)/flags
	@mkdir -p $(@D)
	@echo "  CC    $@"
	@$(CC) $(LIB_CFLAGS) -c -o $@ $<

$(O)/lib/abdada.o: $(LIB_OBJ)
	@echo "  LINK  $@"
	@$(CC) -r -nostdlib -o $@.all $(LIB_OBJ)
	@objcopy --localize-hidden $@.all $@
	@rm $@.all

$(O)/lib/libabdada.a: $(O)/lib/abdada.o
	@rm -f $@
	@ar rcs $@ $<

$(O)/lib/$(LIB_SONAME): $(O)/lib/abdada.o
	@echo "  LINK  $@"
	@$(CC) -shared -Wl,-soname,$(LIB_SONAME) -Wl,--as-needed $(if $(filter release,$(MODE)),-Wl$(COMMA)-z$(COMMA)defs) \
	    $(filter-out -flto=auto -march=%,$(LDFLAGS_MODE)) $(LDFLAGS) -o $@ $< $(LIB_LIBS)

library: $(O)/lib/libabdada.a $(O)/lib/$(LIB_SONAME) ## libabdada alone, in build/MODE/lib

bin/%: $(O)/bin/%
	@mkdir -p bin
	@cp $< $@

# Manual pages of the programs: their options are taken from --help.
MAN := $(PROGRAMS:%=$(O)/man/%.1)
$(O)/man/%.1: docs/%.1.in deploy/manpage.awk $(O)/bin/%
	@mkdir -p $(@D)
	@awk -v program=$(O)/bin/$* -v version=$(VERSION) -f deploy/manpage.awk $< > $@.new && mv $@.new $@

QUOTED = '$(subst ','\'',$(1))'
# Objects depend on the flags they were built with: the file changes only when they do.
$(O)/flags: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' $(call QUOTED,$(CC) $(CFLAGS_ALL) $(LDFLAGS_MODE)) | cmp -s - $@ || \
	    printf '%s\n' $(call QUOTED,$(CC) $(CFLAGS_ALL) $(LDFLAGS_MODE)) > $@

# What names the entries of a game in a table, and the build to whose jobs a worker comes: a hash of all that they
# depend on, and of the letters of searchers, so that builds with another evaluation or search never share entries, and
# builds with other letters never read each other's.
GAME_FOLDERS := $(notdir $(patsubst %/,%,$(wildcard worker/games/*/)))
$(O)/namespaces.h: FORCE
	@mkdir -p $(@D)
	@export LC_ALL=C; for game in $(GAME_FOLDERS); do \
	    hash=$$(cat worker/games/game.h worker/games/$$game/*.[ch] $$(ls worker/games/$$game/*.net worker/games/$$game/*.weights 2>/dev/null) worker/search/*.[ch] worker/search/*/*.[ch] worker/engine/letter.[ch] worker/engine/bag_letter.[ch] common/counters.h common/rng.* | \
	        sha256sum | cut -c1-16); \
	    echo "#define NAMESPACE_$$game UINT64_C(0x$$hash)"; \
	done > $@.new
	@cmp -s $@.new $@ && rm -f $@.new || mv $@.new $@

$(O)/%.o: %.c $(O)/flags | $(O)/namespaces.h
	@mkdir -p $(@D)
	@echo "  CC    $@"
	@$(CC) $(CFLAGS_ALL) -c -o $@ $<

# -r -b binary puts it into .data; it is never written to.
$(O)/%.embedded.o: %
	@mkdir -p $(@D)
	@echo "  EMBED $@"
	@cd $(<D) && $(LD) -r -b binary -z noexecstack -o $(abspath $@) $(<F)
	@objcopy --set-section-alignment .data=64 --rename-section .data=.rodata,alloc,load,readonly,data,contents $@

AGAIN = $(MAKE) --no-print-directory

demo: deps ## a cluster on this machine that searches while parts of it are killed
	@$(AGAIN) -j$(JOBS) MODE=release all
	@$(PYTHON) deploy/demo.py

# ---- what the machine needs ----

deps: ## install what building and testing need (apt-get); also deps-test, deps-bench, deps-deb
	@$(DEPS) $(DEPS_BUILD)
	@$(DEPS) --optional $(DEPS_REDIS)

deps-test: deps
	@$(DEPS) --optional $(DEPS_TEST)

deps-bench: deps
	@$(DEPS) --optional $(DEPS_BENCH)

deps-deb:
	@$(DEPS) $(DEPS_DEB)

# ---- install: what goes where below $(DESTDIR)$(PREFIX), so that uninstall removes the same ----

LIBDIR ?= $(PREFIX)/lib
TO     := $(DESTDIR)$(PREFIX)
TO_LIB := $(DESTDIR)$(LIBDIR)
TO_DOC := $(TO)/share/doc/abdada
ABOUT  := README.md CHANGELOG.md CITATION.cff CONTRIBUTING.md SECURITY.md LICENSE
# At the same places below it as here, so that links between them are right.
DOCS   := $(ABOUT) deploy/cluster.example.toml proto/PROTOCOL.md worker/lib/python/README.md $(wildcard docs/*.md docs/guides/*.md docs/pictures/*.png examples/*.c examples/*.py)

# Programs find a library where it was installed, if the system does not search there.
RPATH := $(if $(filter /usr/lib% /usr/local/lib% /lib%,$(LIBDIR)),,-Wl$(COMMA)-rpath$(COMMA)$${libdir})

TO_BASH := $(TO)/share/bash-completion/completions
TO_MAN  := $(TO)/share/man

install: all install-library $(MAN) ## programs, libabdada, documents, examples (PREFIX=/usr/local DESTDIR= LIBDIR=)
	install -d $(TO)/bin $(TO_MAN)/man1 $(TO_BASH)
	install -m 755 $(PROGRAMS:%=$(O)/bin/%) $(TO)/bin
	install -m 644 $(MAN) $(TO_MAN)/man1
	install -m 644 deploy/completion.bash $(TO_BASH)/abdada
	for program in $(filter-out abdada,$(PROGRAMS)); do ln -sf abdada $(TO_BASH)/$$program || exit 1; done
	for file in $(DOCS); do install -D -m 644 $$file $(TO_DOC)/$$file || exit 1; done

install-library: library ## libabdada alone, with its header, abdada.pc and man page
	install -d $(TO)/include $(TO_LIB)/pkgconfig $(TO_MAN)/man3
	install -m 644 worker/lib/abdada.h $(TO)/include
	install -m 644 $(O)/lib/libabdada.a $(TO_LIB)
	install -m 755 $(O)/lib/$(LIB_SONAME) $(TO_LIB)/libabdada.so.$(VERSION)
	ln -sf libabdada.so.$(VERSION) $(TO_LIB)/$(LIB_SONAME)
	ln -sf $(LIB_SONAME) $(TO_LIB)/libabdada.so
	sed -e 's|@PREFIX@|$(abspath $(PREFIX))|; s|@LIBDIR@|$(abspath $(LIBDIR))|; s|@VERSION@|$(VERSION)|' \
	    -e 's|@RPATH@|$(RPATH)|; s|@LIBS@|$(strip $(LIB_LIBS))|' \
	    deploy/abdada.pc.in > $(TO_LIB)/pkgconfig/abdada.pc
	install -m 644 docs/abdada.3 $(TO_MAN)/man3
	$(if $(DESTDIR)$(RPATH),,-ldconfig)

uninstall: ## remove what install installs, of the same PREFIX
	rm -f $(PROGRAMS:%=$(TO)/bin/%) $(TO)/include/abdada.h $(TO_LIB)/libabdada.a $(TO_LIB)/libabdada.so \
	      $(TO_LIB)/$(LIB_SONAME) $(TO_LIB)/libabdada.so.$(VERSION) $(TO_LIB)/pkgconfig/abdada.pc \
	      $(TO_MAN)/man3/abdada.3 $(PROGRAMS:%=$(TO_MAN)/man1/%.1) $(PROGRAMS:%=$(TO_BASH)/%) \
	      $(addprefix $(TO_DOC)/,$(DOCS))
	[ ! -d $(TO_DOC) ] || find $(TO_DOC) -depth -type d -empty -delete

# ---- a release: build/abdada-VERSION.tar.gz, and what it needs as CycloneDX ----

# When the sources were last changed; what is made of them bears that time, so that it is the same whenever it is made.
SOURCE_TIME = $(or $(SOURCE_DATE_EPOCH),$(shell [ ! -e .git ] || git log -1 --format=%ct 2>/dev/null),$(shell stat -c %Y worker/lib/abdada.h))
RELEASE := abdada-$(VERSION)

dist: ## a tarball of the sources that git knows, which needs no git; the same whenever it is made
	@mkdir -p build
	@printf '%s\n' "$(COMMIT)" > build/COMMIT
	@git ls-files --deduplicate -z | LC_ALL=C sort -z | tar -cf build/$(RELEASE).tar --null --files-from=- --no-recursion --format=gnu \
	    --mtime=@$(SOURCE_TIME) --owner=0 --group=0 --numeric-owner --mode=u+rw,go=rX \
	    --transform='flags=rS;s,^build/,,' --transform='flags=rS;s,^,$(RELEASE)/,' --add-file=build/COMMIT
	@gzip -n9f build/$(RELEASE).tar
	@rm build/COMMIT
	@ls build/$(RELEASE).tar.gz

sbom: ## what the programs are made of and need, as this machine has it: build/abdada-VERSION.cdx.json
	@$(PYTHON) deploy/sbom.py --version $(VERSION) --commit "$(COMMIT)" --time $(SOURCE_TIME) $(DEPS_COMPILE) \
	    $(if $(LIBS_REDIS),$(DEPS_REDIS)) > build/$(RELEASE).cdx.json.new
	@mv build/$(RELEASE).cdx.json.new build/$(RELEASE).cdx.json
	@ls build/$(RELEASE).cdx.json

# ---- a package for Debian: build/deb/abdada_VERSION_ARCHITECTURE.deb ----

# From a copy of what it is made of, so that it works without git, too, and leaves build/release alone. For all
# processors of the last 15 years, unless ARCH is given.
DEB      := build/deb/$(RELEASE)
DEB_MADE_OF := Makefile $(ABOUT) common proto ttserver worker deploy docs examples

deb: deps deps-deb ## a Debian package of all that, in build/deb (ARCH=x86-64-v2)
	rm -rf build/deb
	mkdir -p $(DEB)
	tar -c --exclude=__pycache__ --exclude=worker/lib/python/build --exclude='*.egg-info' $(DEB_MADE_OF) | tar -x -C $(DEB)
	cp -r deploy/debian $(DEB)/debian
	printf '%s\n' "$(COMMIT)" > $(DEB)/COMMIT
	sed "s/@VERSION@/$(VERSION)/; s/@DATE@/$$(date -R -u -d @$(SOURCE_TIME))/" deploy/debian/changelog.in > $(DEB)/debian/changelog
	cd $(DEB) && env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u CFLAGS -u LDFLAGS ABDADA_ARCH=$(if $(filter file,$(origin ARCH)),,$(ARCH)) \
	    dpkg-buildpackage -us -uc -b -j$(JOBS)
	rm -rf $(DEB)
	@ls build/deb/*.deb

clean: ## remove build and bin
	rm -rf build bin

help: ## these lines
	@awk -F ':.*## ' '/^# ----/ { part = "\n" } /^[a-z].*:.*## / { printf "%smake %-18s %s\n", part, $$1, $$2; part = "" }' $(RULES)

# Neither is in a package's sources.
-include tests/tests.mk tests/instruments/instruments.mk
-include $(OBJ:.o=.d) $(LIB_OBJ:.o=.d) $(MAINS:%.c=$(O)/%.d)

.PHONY: $(PHONY) FORCE
# Objects stay, and one that is missing is made: not .SECONDARY, which makes none that is older than its program.
.PRECIOUS: %/about.c $(O)/%.o $(O)/lib/%.o

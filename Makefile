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

DEPS := CC='$(CC)' PYTHON=$(PYTHON) deploy/deps.sh

RULES := $(wildcard Makefile tests/tests.mk tests/instruments/instruments.mk)
# Plain words before a colon: no files. Of them those that need something compiled here; all others call make again.
PHONY := $(shell awk '/^[a-z][a-z -]*:/ { sub(/:.*/, ""); print }' $(RULES))
COMPILED := $(shell awk '/^[a-z][a-z -]*:/ { sub(/\043\043.*/, ""); if (index($$0, "$$") || /:.* (all|library)/) { sub(/:.*/, ""); print } }' $(RULES))
SELF_SUFFICIENT := $(filter-out $(COMPILED),$(PHONY))
# One line instead of a page of compiler errors when a library is missing; checked once.
ifneq ($(filter-out $(SELF_SUFFICIENT),$(or $(MAKECMDGOALS),all)),)
ifeq ($(wildcard build/headers),)
MISSING := $(shell $(DEPS) --missing compile)
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
COMMON := -std=c11 -D_GNU_SOURCE -DPROGRAM_VERSION='"$(VERSION)"' -I. -I$(O) -g $(if $(findstring clang,$(CC)),,-fno-var-tracking) -pthread $(WARN) -MMD -MP
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
CFLAGS_release   := -O3 -march=$(ARCH) -fno-plt
LDFLAGS_release  := -O3 -march=$(ARCH) -fno-lto
CFLAGS_dev       := -Og -march=$(ARCH) -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -Werror
LDFLAGS_dev      := -fsanitize=address,undefined
CFLAGS_tsan      := -O1 -march=$(ARCH) -fsanitize=thread -fno-omit-frame-pointer -Werror
LDFLAGS_tsan     := -fsanitize=thread
CFLAGS_coverage  := -O1 -march=$(ARCH) --coverage
LDFLAGS_coverage := --coverage
CFLAGS_MODE      := $(or $(CFLAGS_$(MODE)),$(error MODE is release, dev, tsan or coverage, not '$(MODE)'))
LDFLAGS_MODE     := $(LDFLAGS_$(MODE))
# Optimise ttserver at link time: a step of the shard's core takes 15% less. A search takes the same, so all other programs
# are linked from what these objects have besides, which takes seconds less for each.
LTO := $(if $(filter release,$(MODE)),$(if $(findstring clang,$(CC)),,-flto=auto -ffat-lto-objects))
CFLAGS_ALL := $(COMMON) $(CFLAGS_MODE) $(CFLAGS)
$(foreach folder,common proto ttserver,$(eval $(O)/$(folder)/%.o: private CFLAGS_ALL += $$(LTO)))
# Othello's own vectors are enough: where gcc gathers scalars into more of them, an ending takes 7% longer.
NO_SLP := -fno-tree-slp-vectorize
$(O)/worker/games/othello/%.o: private CFLAGS_ALL += $(NO_SLP)

# msgpack-c changed its library's name between releases; pkg-config knows which is here.
LIBS_NET = -lzmq -luv -lsodium -lmicrohttpd -lz $(shell pkg-config --libs msgpack-c 2>/dev/null || pkg-config --libs msgpack 2>/dev/null || echo -lmsgpackc)
LIBS     = $(LIBS_NET) $(LIBS_REDIS) -lm -pthread

PROGRAMS := ttserver ttworker abdada
MAIN_ttserver := ttserver/main.c
MAIN_ttworker := worker/ttworker.c
MAIN_abdada   := worker/abdada.c
MAINS := $(foreach p,$(PROGRAMS),$(MAIN_$(p)))
SRC := $(filter-out $(MAINS) $(ABSENT),$(wildcard $(foreach top,common proto ttserver worker,$(top)/*.c $(top)/*/*.c $(top)/*/*/*.c)))
# Files that a program has in it as they are; of x.y the linker makes _binary_x_y_start and _binary_x_y_end.
EMBEDDED := $(wildcard deploy/cluster/*.py deploy/cluster/*.sh worker/programs/*/*.html worker/games/*/*.net worker/games/*/*.weights)
OBJ := $(SRC:%.c=$(O)/%.o) $(EMBEDDED:%=$(O)/%.embedded.o)
all: $(if $(filter release,$(MODE)),$(PROGRAMS:%=bin/%),$(PROGRAMS:%=$(O)/bin/%)) library ## build bin/ttserver, bin/ttworker and bin/abdada; MODE=dev|tsan: with sanitizers, in build/MODE/bin

$(O)/all.a: $(OBJ)
%/all.a:
	@mkdir -p $(@D)
	@rm -f $@
	@gcc-ar rcs $@ $^

# $(call COMPILE,FLAGS)
define COMPILE
	@mkdir -p $(@D)
	@echo "  CC    $@"
	@$(CC) $(1) -c -o $@ $<
endef
define LINK
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	@$(CC) $(LDFLAGS_MODE) $(LDFLAGS) -o $@ $(filter %.o %/libabdada.a,$^) $(filter %/all.a,$^) $(LIBS)
endef
$(foreach p,$(PROGRAMS),$(eval $(O)/bin/$(p): $(MAIN_$(p):%.c=$(O)/%.o) $(O)/about.o $(O)/all.a $(O)/flags))
$(O)/bin/ttserver: private LDFLAGS_MODE += $(LTO)
$(PROGRAMS:%=$(O)/bin/%):
	$(LINK)

# What --version says after its first line. The programs alone have it, in an object of its own: so a commit compiles
# nothing else anew, and links no test; and of one size in a section of its own: all else in a program is the same
# whatever the commit. The file COMMIT is in copies of the sources without git (dist, deb).
COMMIT = $(shell cat COMMIT 2>/dev/null || { [ -e .git ] && git -c safe.directory='*' describe --always --abbrev=12 --exclude='*' --dirty=-modified 2>/dev/null; } || echo unknown)
FEATURES = keys $(if $(LIBS_REDIS),redis)
%/about.c: FORCE
	@mkdir -p $(@D)
	@{ echo '#include "common/options.h"'; \
	   echo 'const char build_about[256] __attribute__((section(".about"))) ='; \
	   printf '    "commit %s\\n"\n' "$(COMMIT)"; \
	   printf '    "built %s for %s by %s %s\\n"\n' $(MODE) $(ARCH) '$(notdir $(CC))' $$($(CC) -dumpfullversion); \
	   printf '    "with %s\\n";\n' "$(strip $(FEATURES))"; } > $@.new
	@cmp -s $@.new $@ && rm -f $@.new || mv $@.new $@

%/about.o: %/about.c $(O)/flags
	$(call COMPILE,$(CFLAGS_ALL))

# ---- libabdada: the client side, for programs of others (worker/lib/abdada.h) ----
# Position-independent, without link-time optimisation, so that any compiler's program can have it. All of it is linked
# into one object of which only what abdada.h declares can be seen, in the static library as in the shared one.
COMMA := ,
LIB_SONAME  := libabdada.so.0
LIB_SRC := $(filter-out $(ABSENT) common/tt/snapshot.c,$(wildcard worker/lib/*.c worker/redis/*.c worker/lane/*.c proto/*.c proto/*/*.c \
               common/redis/*.c common/keys/*.c common/tt/*.c)) \
           $(addprefix common/,clock.c err.c host_lookup.c log.c options.c signals.c)
LIB_OBJ := $(LIB_SRC:%.c=$(O)/lib/%.o)
# For any machine of its kind unless ARCH is given: it is installed, and copied.
LIB_CFLAGS = $(filter-out $(if $(filter file,$(origin ARCH)),-march=$(ARCH)),$(CFLAGS_ALL)) -fPIC -fvisibility=hidden -fno-lto
LIB_LIBS   = -lzmq $(LIBS_REDIS) -pthread

$(O)/lib/%.o: %.c $(O)/flags
	$(call COMPILE,$(LIB_CFLAGS))

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
	    $(filter-out -march=%,$(LDFLAGS_MODE)) $(LDFLAGS) -o $@ $< $(LIB_LIBS)

library: $(O)/lib/libabdada.a $(O)/lib/$(LIB_SONAME) ## libabdada alone, in build/MODE/lib

# A program that runs is replaced, not written to.
bin/%: $(O)/bin/%
	@mkdir -p bin
	@cp $< $@.new && mv $@.new $@

# Manual pages of the programs: their options are taken from --help.
MAN := $(PROGRAMS:%=$(O)/man/%.1)
$(O)/man/%.1: docs/%.1.in deploy/manpage.awk $(O)/bin/%
	@mkdir -p $(@D)
	@awk -v program=$(O)/bin/$* -v version=$(VERSION) -f deploy/manpage.awk $< > $@.new && mv $@.new $@

QUOTED = '$(subst ','\'',$(1))'
# Objects depend on the flags they were built with: the file changes only when they do.
$(O)/flags: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' $(call QUOTED,$(CC) $(CFLAGS_ALL) $(LTO) $(NO_SLP) $(LDFLAGS_MODE)) | cmp -s - $@ || \
	    printf '%s\n' $(call QUOTED,$(CC) $(CFLAGS_ALL) $(LTO) $(NO_SLP) $(LDFLAGS_MODE)) > $@

# What names the entries of a game in a table, and the build to whose jobs a worker comes: a hash of all that they
# depend on, and of the letters of searchers, so that builds with another evaluation or search never share entries, and
# builds with other letters never read each other's.
GAME_FOLDERS := $(notdir $(patsubst %/,%,$(wildcard worker/games/*/)))
$(O)/namespaces.h: FORCE
	@mkdir -p $(@D)
	@export LC_ALL=C; for game in $(GAME_FOLDERS); do \
	    hash=$$(cat worker/games/game.h worker/games/$$game/*.[ch] $$(ls worker/games/$$game/*.net worker/games/$$game/*.weights 2>/dev/null) worker/search/*.[ch] worker/search/*/*.[ch] worker/engine/letter.[ch] common/counters.h common/rng.* | \
	        sha256sum | cut -c1-16); \
	    echo "#define NAMESPACE_$$game UINT64_C(0x$$hash)"; \
	done > $@.new
	@cmp -s $@.new $@ && rm -f $@.new || mv $@.new $@

$(O)/%.o: %.c $(O)/flags | $(O)/namespaces.h
	$(call COMPILE,$(CFLAGS_ALL))

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
	@$(DEPS) build
	@$(DEPS) --optional redis

deps-test deps-bench: deps
	@$(DEPS) --optional $(@:deps-%=%)

deps-deb:
	@$(DEPS) deb

# ---- install ----

LIBDIR ?= $(PREFIX)/lib
ABOUT  := README.md CHANGELOG.md CITATION.cff CONTRIBUTING.md SECURITY.md LICENSE
INSTALLER = @PREFIX="$(PREFIX)" LIBDIR="$(LIBDIR)" DESTDIR="$(DESTDIR)" O=$(O) VERSION=$(VERSION) PROGRAMS="$(PROGRAMS)" \
            ABOUT="$(ABOUT)" SONAME=$(LIB_SONAME) LIBS="$(strip $(LIB_LIBS))" deploy/install.sh

install: all install-library $(MAN) ## programs, libabdada, documents, examples (PREFIX=/usr/local DESTDIR= LIBDIR=)
	$(INSTALLER) programs

install-library: library ## libabdada alone, with its header, abdada.pc and man page
	$(INSTALLER) library

uninstall: ## remove what install installs, of the same PREFIX
	$(INSTALLER) uninstall

# ---- a release ----

dist: ## a tarball of the sources that git knows, which needs no git; the same whenever it is made
sbom: ## what the programs are made of and need, as this machine has it: build/abdada-VERSION.cdx.json
deb: deps deps-deb ## a Debian package of all that, in build/deb (ARCH=x86-64-v2)
dist sbom deb:
	@VERSION=$(VERSION) COMMIT="$(COMMIT)" ABOUT="$(ABOUT)" ARCH=$(if $(filter file,$(origin ARCH)),,$(ARCH)) JOBS=$(JOBS) \
	    CC='$(CC)' PYTHON=$(PYTHON) REDIS=$(if $(LIBS_REDIS),redis) deploy/package.sh $@

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

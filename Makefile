# abdada: build, test, measure. `make help` lists the targets.
#   MODE=release (default) | dev (ASan, UBSan, -Werror) | tsan      ARCH=native | x86-64-v3 | ...
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
                libmicrohttpd-dev=microhttpd.h
DEPS_BUILD   := $(DEPS_COMPILE) make=make pkg-config=pkg-config libcmocka-dev=cmocka.h python3=$(PYTHON) \
                python3-zmq=py:zmq python3-msgpack=py:msgpack
# Without them there is no Redis as the table.
DEPS_REDIS   := libhiredis-dev=hiredis/hiredis.h libssl-dev=openssl/ssl.h
DEPS_TEST    := "clang-format-14|clang-format=clang-format-14" cppcheck=cppcheck valgrind=valgrind iproute2=ip \
                gnuplot-nox=gnuplot redis-server=redis-server python3-cffi=py:cffi python3-dev=python3-config \
                python3-venv=py:ensurepip python3-setuptools=py:setuptools python3-wheel=py:wheel mypy=mypy \
                man-db=man bash-completion=/usr/share/bash-completion/bash_completion systemd=systemd-analyze \
                lintian=lintian prometheus=promtool kubernetes-client=kubectl python3-yaml=py:yaml libfathom1=libfathom.so.1 \
                slurmctld=slurmctld slurmd=slurmd slurm-client=sbatch munge=munged \
                chromium=chromium chromium-driver=chromedriver python3-selenium=py:selenium openssh-server=sshd
# For `make deb`; a package is always with Redis.
DEPS_DEB     := debhelper=dh dpkg-dev=dpkg-buildpackage $(DEPS_REDIS)
DEPS_FUZZ    := clang=clang "libclang-rt-14-dev|libclang-rt-dev=libfuzzer"
DEPS_BENCH   := stockfish=stockfish redis-server=redis-server memcached=memcached
DEPS_MATCH   := glaurung=/usr/games/glaurung toga2=/usr/games/toga2 gnuchess=/usr/games/gnuchess grhino=/usr/games/gtp-rhino python3-venv=py:ensurepip
DEPS         := CC=$(CC) PYTHON=$(PYTHON) deploy/deps.sh

# One line instead of a page of compiler errors when a library is missing; checked once.
SELF_SUFFICIENT := help clean words deps deps-test deps-bench deps-deb deb demo chess-network othello-weights test test-long test-deploy check bench strict match-kills \
                   lint fuzz-long soak bad-peers attacks bench-badpeers bench-failure bench-distance bench-library bench-survive bench-watching bench-web peers-die bench-service
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
HAS = $(shell printf '\043include <%s>\n' $(1) | $(CC) -E -x c - >/dev/null 2>&1 && echo y)
ifeq ($(call HAS,hiredis/hiredis.h)$(call HAS,openssl/ssl.h),yy)
COMMON += -DHAVE_REDIS
LIBS_REDIS := -lhiredis -lssl -lcrypto
ABSENT := %_none.c
else
ABSENT := $(filter-out %redis_address.c %_none.c,$(wildcard common/redis/*.c worker/redis/*.c ttserver/keep/backing*.c tests/unit/redis/*.c))
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
else
$(error MODE is release, dev or tsan, not '$(MODE)')
endif
CFLAGS_ALL := $(COMMON) $(CFLAGS_MODE) $(CFLAGS)

# msgpack-c changed its library's name between releases; pkg-config knows which is here.
LIBS_NET = -lzmq -luv -lsodium -lmicrohttpd $(shell pkg-config --libs msgpack-c 2>/dev/null || pkg-config --libs msgpack 2>/dev/null || echo -lmsgpackc)
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
UNIT := $(filter-out $(ABSENT),$(wildcard tests/unit/*/test_*.c))
UNIT_BIN := $(addprefix $(O)/tests/,$(notdir $(UNIT:%.c=%)))
FUZZ := $(wildcard tests/fuzz/fuzz_*.c)
FUZZ_BIN := $(FUZZ:tests/fuzz/%.c=$(O)/fuzz/%)
TOOLS := $(wildcard tests/system/*.c) $(wildcard tests/attacks/*.c) $(wildcard tests/instruments/tune/*.c)
TOOL_BIN := $(addprefix $(O)/tools/,$(notdir $(TOOLS:%.c=%)))
BENCHES := $(wildcard tests/instruments/bench/*.c)
BENCH_BIN := $(BENCHES:tests/instruments/bench/%.c=$(O)/bench/%)
SYSTEM := $(wildcard tests/system/test_*.py)
# The Python package is of the release library alone. The others have nothing there that another build does not
# show: what they test has no threads of its own (tsan), is in cables and clocks (dev), or is in texts and scripts.
LEFT_OUT_dev  := endings install kubernetes network python_package slurm ssh_cluster ttbench
LEFT_OUT_tsan := endings install kubernetes pictures python_client python_package redis slurm ssh_cluster tt ttbench
# The virtual cluster runs in one thread: nothing for the thread sanitizer.
LEFT_OUT_UNIT_tsan := lab lab_chaos lab_hosts
SIM := $(wildcard tests/sim/test_*.py)

all: $(if $(filter release,$(MODE)),$(PROGRAMS:%=bin/%),$(PROGRAMS:%=$(O)/bin/%)) library

$(O)/all.a: $(OBJ)
	@rm -f $@
	@gcc-ar rcs $@ $(OBJ)

define PROGRAM
$(O)/bin/$(1): $(MAIN_$(1):%.c=$(O)/%.o) $(O)/all.a $(O)/flags
	@mkdir -p $$(@D)
	@echo "  LINK  $$@"
	@$$(CC) $$(LDFLAGS_MODE) $$(LDFLAGS) -o $$@ $$(MAIN_$(1):%.c=$(O)/%.o) $(O)/all.a $$(LIBS)
endef
$(foreach p,$(PROGRAMS),$(eval $(call PROGRAM,$(p))))

# ---- libabdada: the client side, for programs of others (worker/lib/abdada.h) ----
# Position-independent, without link-time optimisation, so that any compiler's program can have it. All of it is linked
# into one object of which only what abdada.h declares can be seen, in the static library as in the shared one.
COMMA := ,
LIB_SONAME  := libabdada.so.0
LIB_SRC := $(filter-out $(ABSENT) common/tt/snapshot.c,$(wildcard worker/lib/*.c worker/redis/*.c proto/*.c proto/*/*.c \
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

library: $(O)/lib/libabdada.a $(O)/lib/$(LIB_SONAME)

bin/%: $(O)/bin/%
	@mkdir -p bin
	@cp $< $@

# Manual pages of the programs: their options are taken from --help.
MAN := $(PROGRAMS:%=$(O)/man/%.1)
$(O)/man/%.1: docs/%.1.in deploy/manpage.awk $(O)/bin/%
	@mkdir -p $(@D)
	@awk -v program=$(O)/bin/$* -v version=$(VERSION) -f deploy/manpage.awk $< > $@.new && mv $@.new $@

# Each from its source, wherever that is: $(call program,FOLDER,SOURCE).
program = $(O)/$(1)/$(notdir $(2:%.c=%)): $(2:%.c=$(O)/%.o) $(O)/all.a
$(foreach c,$(UNIT),$(eval $(call program,tests,$(c)) $(O)/tests/support/filter.o))
$(foreach c,$(TOOLS),$(eval $(call program,tools,$(c))))
$(foreach c,$(BENCHES),$(eval $(call program,bench,$(c))))
$(UNIT_BIN): private LIBS += -lcmocka
$(UNIT_BIN) $(TOOL_BIN) $(BENCH_BIN):
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	@$(CC) $(LDFLAGS_MODE) $(LDFLAGS) -o $@ $(filter %.o,$^) $(O)/all.a $(LIBS)

# They start it.
$(O)/tests/test_lib $(O)/tests/test_lib_misuse $(O)/tests/test_lib_jobs: | $(O)/bin/ttserver

tools: $(TOOL_BIN)

benches: $(BENCH_BIN)

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
	    hash=$$(cat worker/games/game.h worker/games/$$game/*.[ch] $$(ls worker/games/$$game/*.net worker/games/$$game/*.weights 2>/dev/null) worker/search/*.[ch] worker/search/*/*.[ch] worker/engine/letter.[ch] common/rng.* | \
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

unit: $(UNIT_BIN)

$(O)/tests/fuzz/%.o: private CFLAGS_ALL += -DFUZZ_MAIN
$(O)/fuzz/%: $(O)/tests/fuzz/%.o $(O)/all.a
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	@$(CC) $(LDFLAGS_MODE) $(LDFLAGS) -o $@ $< $(O)/all.a $(LIBS)

fuzz: $(FUZZ_BIN)

# ---- what the machine needs ----

deps:
	@$(DEPS) $(DEPS_BUILD)
	@$(DEPS) --optional $(DEPS_REDIS)

deps-test: deps
	@$(DEPS) --optional $(DEPS_TEST)

deps-bench: deps
	@$(DEPS) --optional $(DEPS_BENCH)

deps-deb:
	@$(DEPS) $(DEPS_DEB)

# ---- tests: every group adds its counts to TOTALS, the last line sums them up ----

TOTALS := build/totals
RUN     = $(PYTHON) tests/run.py --totals $(TOTALS)
SUM     = $(PYTHON) tests/run.py --sum $(TOTALS)
AGAIN   = $(MAKE) --no-print-directory
# $(call build,MODE,TARGETS): a target that does not compile is one failure; the rest is tested.
build   = @$(AGAIN) -k -j$(JOBS) MODE=$(1) $(2) || \
            $(RUN) --group "build" --step "build of MODE=$(1)" -- sh -c 'echo "see above"; exit 1' || true

UNIT_TIMEOUT   := 300
SYSTEM_TIMEOUT := 600
SIM_TIMEOUT    := 900
PERFT_MAX_LEAVES ?= 200000
FUZZ_RUNS        ?= 5000000
FUZZ_ARGS_fuzz_ttcore = 1 $(shell expr $(FUZZ_RUNS) / 1000)
FUZZ_ARGS_fuzz_ggf = $(shell expr $(FUZZ_RUNS) / 5) 1
FUZZ_ARGS_fuzz_zmtp = $(shell expr $(FUZZ_RUNS) / 5) 1
FUZZ_ARGS_fuzz_letter = $(shell expr $(FUZZ_RUNS) / 5) 1
export PERFT_MAX_LEAVES

# Old thread sanitizers fail where addresses are randomised over many bits, hence setarch -R, which a
# container may forbid. libzmq is not built for them, hence the suppressions.
SANITIZED := TSAN_OPTIONS="suppressions=$(CURDIR)/tests/tsan.supp" \
             $(if $(filter tsan,$(MODE)),$(shell setarch $(shell uname -m) -R true 2>/dev/null && \
               echo setarch $(shell uname -m) -R))
VALGRIND_O    := build/valgrind
VALGRIND_ARCH := $(if $(filter x86_64,$(shell uname -m)),x86-64-v2,native)

run-unit:
	@$(SANITIZED) $(RUN) -j$(JOBS) --timeout $(UNIT_TIMEOUT) --group "unit, $(MODE)" \
	  $(filter-out $(LEFT_OUT_UNIT_$(MODE):%=$(O)/tests/test_%),$(UNIT_BIN)) || true

run-system:
	@BIN=$(O)/bin $(SANITIZED) $(RUN) -j$(JOBS) --again 2 --timeout $(SYSTEM_TIMEOUT) --group "system, $(MODE)" \
	  $(filter-out $(LEFT_OUT_$(MODE):%=tests/system/test_%.py),$(SYSTEM)) || true

# The virtual cluster: RUNS random runs, and the same traces from OTHER_BINS.
run-sim:
	@BIN=$(O)/bin OTHER_BINS=$(OTHER_BINS) RUNS=$(RUNS) JOBS=$(JOBS) \
	  TSAN_OPTIONS="suppressions=$(CURDIR)/tests/tsan.supp" $(UNRANDOM) \
	  $(RUN) --timeout $(SIM_TIMEOUT) --group "sim, $(MODE)" $(SIM) || true
RUNS := 300
UNRANDOM = $(shell setarch $(shell uname -m) -R true 2>/dev/null && echo setarch $(shell uname -m) -R)

# The programs end by themselves and remove their containers well before the runner would kill them.
DEPLOY_TIMEOUT := 1700
run-deploy:
	@$(RUN) -j$(JOBS) --verbose --timeout $(DEPLOY_TIMEOUT) --group deploy deploy/compose-test deploy/deb-test || true

run-fuzz: $(FUZZ_BIN:%=run-%)

# Coverage-guided, with clang: FUZZ_MINUTES of CPU time for each of the drivers.
FUZZ_MINUTES ?= 10
fuzz-long: deps
	@$(DEPS) --optional $(DEPS_FUZZ)
	@$(PYTHON) tests/fuzz/long.py --minutes $(FUZZ_MINUTES)

run-$(O)/fuzz/%:
	@$(RUN) --timeout 900 --group "fuzz, $(MODE)" --step "$*" -- \
	  $(O)/fuzz/$* $(or $(FUZZ_ARGS_$*),$(FUZZ_RUNS) 1) || true

run-lint:
	@$(RUN) --group lint --step "clang-format" -- tests/lint/format.sh || true
	@$(RUN) --group lint --step "layers, circles, contracts, sizes" -- $(PYTHON) tests/lint/layers.py || true
	@$(RUN) --group lint --step "words" -- $(PYTHON) tests/lint/words.py || true
	@$(RUN) --group lint --step "cppcheck" -- tests/lint/cppcheck.sh $(JOBS) || true
	@$(RUN) --group lint $(wildcard tests/lint/test_*.py) || true

# Real processes and cables under random faults.
SOAK ?= --minutes 30
run-attacks:
	@BIN=$(O)/bin TOOLS=$(O)/tools $(RUN) --timeout 1200 --group "attacks, $(MODE)" --step "attacks" -- \
	  $(PYTHON) tests/attacks/attacks.py --quick || true

run-attacks-insecure:
	@BIN=$(O)/bin TOOLS=$(O)/tools $(RUN) --timeout 1200 --group "attacks, $(MODE)" --step "without keys" -- \
	  $(PYTHON) tests/attacks/attacks.py --quick --insecure || true

run-soak:
	@BIN=$(O)/bin $(RUN) --timeout 1200 --group "soak, $(MODE)" --step "soak $(SOAK)" -- \
	  $(PYTHON) tests/system/soak $(SOAK) || true

forget-totals:
	@rm -f $(TOTALS)

# Words that docs/glossary.md replaces.
words:
	@$(PYTHON) tests/lint/words.py

lint: deps-test forget-totals
	@$(AGAIN) run-lint
	@$(SUM)

# It leaves out what takes longest: what waits for time-outs, for Redis servers, for cables.
CHECK_UNIT   := $(filter-out tests/unit/redis/% tests/unit/lib/%,$(UNIT))
CHECK_SYSTEM := $(patsubst %,tests/system/test_%.py,bad_peers cluster failure pictures othello_protocols python_client roles uci)
check: deps-test forget-totals
	$(call build,dev,all unit tools)
	@$(AGAIN) run-lint
	@$(AGAIN) MODE=dev run-unit UNIT="$(CHECK_UNIT)"
	@QUICK=1 $(AGAIN) MODE=dev run-system SYSTEM="$(CHECK_SYSTEM)"
	@QUICK=1 $(AGAIN) MODE=dev run-sim RUNS=30
	@$(SUM)

# Of system tests under the thread sanitizer those of programs with many threads; the others show nothing there that unit
# tests do not, and are part of test-long.
TSAN_SYSTEM ?= $(patsubst %,tests/system/test_%.py,cluster connections failure letters limits uci)
test: export GROUPS := 13
test: deps-test forget-totals
	$(call build,release,all tools build/release/tests/test_chess_perft build/release/tests/test_search_steal)
	$(call build,dev,all unit fuzz tools)
	$(call build,tsan,all unit tools)
	$(call build,release,O=$(VALGRIND_O) ARCH=$(VALGRIND_ARCH) $(VALGRIND_O)/bin/ttserver)
	@$(AGAIN) run-lint
	@$(AGAIN) MODE=dev run-unit
	@$(AGAIN) MODE=tsan run-unit
	@$(AGAIN) MODE=release run-unit UNIT="tests/unit/games/test_chess_perft.c tests/unit/search/test_search_steal.c" PERFT_MAX_LEAVES=$(RELEASE_LEAVES)
	@VALGRIND=1 VALGRIND_BIN=$(VALGRIND_O)/bin $(AGAIN) MODE=release run-system
	@QUICK=1 $(AGAIN) MODE=dev run-system
	@QUICK=1 $(AGAIN) MODE=tsan run-system SYSTEM="$(TSAN_SYSTEM)"
	@$(AGAIN) MODE=release run-sim OTHER_BINS=build/dev/bin:build/tsan/bin
	@$(AGAIN) MODE=dev run-fuzz
	@$(AGAIN) MODE=release run-attacks
	@$(AGAIN) MODE=release run-attacks-insecure
	@$(AGAIN) MODE=dev run-attacks
	@$(AGAIN) MODE=release run-soak SOAK="--seconds 40"
	@$(AGAIN) MODE=release run-soak SOAK="--redis --seconds 30"
	@$(AGAIN) run-deploy
	@$(SUM)
RELEASE_LEAVES := 5000000

# A cluster of containers, and the package in some; skipped with the reason where there is no engine.
test-deploy: deps forget-totals
	@$(AGAIN) run-deploy
	@$(SUM)

# The same, deeper: every published perft count, long random runs. An hour or more.
test-long:
	@OTHELLO_EMPTIES=64 STEAL_ALL=1 $(AGAIN) test TSAN_SYSTEM="$(SYSTEM)" RELEASE_LEAVES=0 FUZZ_RUNS=100000000 UNIT_TIMEOUT=14400 SYSTEM_TIMEOUT=200000

# Ten thousand searches with faults on the virtual cluster; another ten with SEEDS=10001..20000.
SEEDS ?= 1..10000
chaos:
	@$(AGAIN) -j$(JOBS) MODE=release all
	@bin/abdada sim --faults random --seeds $(SEEDS) --jobs $(JOBS)

# Games against an opponent that speaks UCI; MATCH="--games 40 --clock game:1+0.01", OPPONENT="/usr/games/gnuchess -u".
OPPONENT ?= /usr/games/toga2
match-ready:
	@$(DEPS) --optional $(DEPS_MATCH)
	@$(AGAIN) -j$(JOBS) MODE=release all
	@test -x build/venv/bin/python || $(PYTHON) -m venv build/venv
	@build/venv/bin/python -c 'import chess' 2>/dev/null || build/venv/bin/python -m pip install --quiet 'chess>=1.9,<2'
match: match-ready
	@build/venv/bin/python tests/instruments/match/match.py --a "build/release/bin/abdada uci" --b "$(OPPONENT)" $(MATCH)

# Othello against an opponent that speaks GTP; MATCH="--games 40 --a 'build/release/bin/abdada gtp --time 50 -j 2'".
OTHELLO_OPPONENT ?= /usr/games/gtp-rhino --level 3 --book 0
match-othello:
	@$(DEPS) --optional $(DEPS_MATCH)
	@$(AGAIN) -j$(JOBS) MODE=release all
	@$(PYTHON) tests/instruments/match/othello_match.py --a "build/release/bin/abdada gtp --time 50" --b "$(OTHELLO_OPPONENT)" $(MATCH)

# What each rule of the selective search is worth in games, or whether other parameters are better:
# TUNE="--rule null-move", TUNE="--change .null_margin=150,.null_depth=4".
tune-search: match-ready
	@build/venv/bin/python tests/instruments/tune/search_rules.py $(TUNE)

# Games of one second each side over a cluster of which workers and shards are killed in every tenth; KILLS="--lanes 2 --seed 7".
GAMES ?= 1000
match-kills: deps-test
	@$(AGAIN) -j$(JOBS) MODE=release all
	@BIN=build/release/bin $(PYTHON) tests/instruments/match/kills.py --games $(GAMES) $(KILLS)

# The chess evaluation of selection full anew, whatever the present one is: each CPU plays NETWORK_POSITIONS positions, then the fit.
NETWORK_POSITIONS ?= 6000000
chess-network: deps
	@$(AGAIN) -j$(JOBS) MODE=release tools
	@rm -rf build/network && mkdir -p build/network
	@pids=; for seed in $$(seq $(JOBS)); do \
	    build/release/tools/selfplay --seed $$seed --positions $(NETWORK_POSITIONS) --nodes 400 > build/network/$$seed.samples & pids="$$pids $$!"; \
	done; for pid in $$pids; do wait $$pid || exit 1; done
	@build/release/tools/fit --epochs 6 --threads $(JOBS) --out worker/games/chess/evaluation.net build/network/*.samples

# The Othello evaluation anew, whatever the present one is: games with the evaluation by hand, then twice with what the
# games of before gave. The file depends on nothing but the sources and these options.
OTHELLO_GAMES ?= 60000
OTHELLO_PLAY = build/release/tools/othello_selfplay --threads $(JOBS) --depth 4
OTHELLO_FIT  = build/release/tools/othello_fit --threads $(JOBS) --out worker/games/othello/evaluation.weights
othello-weights: deps
	@rm -rf build/othello-weights && mkdir -p build/othello-weights
	@$(AGAIN) -j$(JOBS) MODE=release tools
	@$(OTHELLO_PLAY) --seed 1 --exact 12 --games $(OTHELLO_GAMES) --start > build/othello-weights/1.samples
	@$(OTHELLO_FIT) build/othello-weights/1.samples
	@$(AGAIN) -j$(JOBS) MODE=release tools
	@$(OTHELLO_PLAY) --seed 2 --exact 12 --games $(OTHELLO_GAMES) > build/othello-weights/2.samples
	@$(OTHELLO_FIT) build/othello-weights/2.samples
	@$(AGAIN) -j$(JOBS) MODE=release tools
	@$(OTHELLO_PLAY) --seed 3 --exact 14 --games $(OTHELLO_GAMES) > build/othello-weights/3.samples
	@$(OTHELLO_FIT) build/othello-weights/2.samples build/othello-weights/3.samples
	@$(AGAIN) -j$(JOBS) MODE=release tools
	@$(OTHELLO_PLAY) --seed 4 --exact 10 --games 200 --against-start

# Half an hour of faults, or what SOAK says: SOAK="--minutes 30 --seed 7".
soak: deps-test
	@$(AGAIN) -j$(JOBS) MODE=$(MODE) all tools
	@BIN=$(O)/bin $(PYTHON) tests/system/soak $(SOAK)

# A million bad messages, with sanitizers.
BAD_MESSAGES ?= 1000000
bad-peers: deps
	@$(AGAIN) -j$(JOBS) MODE=dev all tools
	@BIN=build/dev/bin MESSAGES=$(BAD_MESSAGES) $(PYTHON) tests/system/test_bad_peers.py

# ---- use ----

demo: deps
	@$(AGAIN) -j$(JOBS) MODE=release all
	@$(PYTHON) deploy/demo.py

bench: deps-bench
	@$(AGAIN) -j$(JOBS) MODE=release all
	@bin/abdada bench
	@for b in $(wildcard tests/instruments/bench/bench_*.py); do $(PYTHON) $$b || exit 1; done

# For the measurements that follow.
release-tools: deps-test
	@$(AGAIN) -j$(JOBS) MODE=release all tools

bench-badpeers: release-tools
	@$(PYTHON) tests/instruments/bench/bad_peers.py $(BENCH)

# Every attack against a cluster that searches; ATTACKS="--only deaf --seconds 30", or --insecure, or --seed N.
attacks: release-tools
	@$(PYTHON) tests/attacks/attacks.py $(ATTACKS)

bench-failure: release-tools
	@BIN=build/release/bin $(PYTHON) tests/instruments/bench/failure_cost.py $(BENCH)

# What the distance of the shards costs a search; BENCH="--every 3 --distances 0,200".
bench-distance: release-tools
	@BIN=build/release/bin $(PYTHON) tests/instruments/bench/distance.py $(BENCH)

# What two processes of examples/connect4.c reach through libabdada; BENCH="--runs 9 --position 4".
bench-library: release-tools
	@BIN=build/release/bin $(PYTHON) tests/instruments/bench/library.py $(BENCH)

# What it costs a client that results are written behind.
bench-survive: release-tools
	@BIN=build/release/bin $(PYTHON) tests/instruments/bench/survive.py $(BENCH)

# What open pages of `abdada top --web` cost a cluster; BENCH="--runs 9 --pages 100".
bench-web: release-tools
	@BIN=build/release/bin $(PYTHON) tests/instruments/bench/web.py $(BENCH)

# What it costs a search to be watched by metrics, `abdada top` and its page together; BENCH="--runs 9 --depth 8".
bench-watching: release-tools
	@BIN=build/release/bin $(PYTHON) tests/instruments/bench/watching.py $(BENCH)

peers-die: release-tools
	@BIN=build/release/bin $(PYTHON) tests/instruments/bench/peers_die.py $(BENCH)

# A shard beside other stores and bare sockets; BENCH="--repeats 9 --batch 64".
bench-service: deps-bench
	@$(AGAIN) -j$(JOBS) MODE=release all benches
	@BIN=build/release $(PYTHON) tests/instruments/bench/service.py $(BENCH)

# One strict score per position, however it is searched.
strict: deps
	@$(AGAIN) -j$(JOBS) MODE=release all
	@$(PYTHON) tests/instruments/bench/strict.py

# A network of today on the virtual cluster, and the published tables beside it; CSV and SVG in build/lab.
lab lab-quick lab-calibrate: all
lab:
	@BIN=$(O)/bin $(PYTHON) tests/instruments/lab/lab.py $(LAB)

# The algorithms beside each other; under 5 minutes with compare-quick.
compare compare-quick: all
compare:
	@BIN=$(O)/bin $(PYTHON) tests/instruments/lab/lab.py compare

compare-quick:
	@BIN=$(O)/bin $(PYTHON) tests/instruments/lab/lab.py --quick compare

lab-quick:
	@BIN=$(O)/bin $(PYTHON) tests/instruments/lab/lab.py --quick $(LAB)

lab-calibrate:
	@BIN=$(O)/bin $(PYTHON) tests/instruments/lab/calibrate.py $(LAB)

# ---- install: what goes where below $(DESTDIR)$(PREFIX), so that uninstall removes the same ----

LIBDIR ?= $(PREFIX)/lib
TO     := $(DESTDIR)$(PREFIX)
TO_LIB := $(DESTDIR)$(LIBDIR)
TO_DOC := $(TO)/share/doc/abdada
# At the same places below it as here, so that links between them are right.
DOCS   := README.md LICENSE deploy/cluster.example.toml proto/PROTOCOL.md worker/lib/python/README.md \
          $(wildcard docs/*.md examples/*.c examples/*.py)

# Programs find a library where it was installed, if the system does not search there.
RPATH := $(if $(filter /usr/lib% /usr/local/lib% /lib%,$(LIBDIR)),,-Wl$(COMMA)-rpath$(COMMA)$${libdir})

TO_BASH := $(TO)/share/bash-completion/completions
TO_MAN  := $(TO)/share/man

install: all install-library $(MAN)
	install -d $(TO)/bin $(TO_MAN)/man1 $(TO_BASH)
	install -m 755 $(PROGRAMS:%=$(O)/bin/%) $(TO)/bin
	install -m 644 $(MAN) $(TO_MAN)/man1
	install -m 644 deploy/completion.bash $(TO_BASH)/abdada
	for program in $(filter-out abdada,$(PROGRAMS)); do ln -sf abdada $(TO_BASH)/$$program || exit 1; done
	for file in $(DOCS); do install -D -m 644 $$file $(TO_DOC)/$$file || exit 1; done

# The library alone, for programs of others.
install-library: library
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

uninstall:
	rm -f $(PROGRAMS:%=$(TO)/bin/%) $(TO)/include/abdada.h $(TO_LIB)/libabdada.a $(TO_LIB)/libabdada.so \
	      $(TO_LIB)/$(LIB_SONAME) $(TO_LIB)/libabdada.so.$(VERSION) $(TO_LIB)/pkgconfig/abdada.pc \
	      $(TO_MAN)/man3/abdada.3 $(PROGRAMS:%=$(TO_MAN)/man1/%.1) $(PROGRAMS:%=$(TO_BASH)/%) \
	      $(addprefix $(TO_DOC)/,$(DOCS))
	[ ! -d $(TO_DOC) ] || find $(TO_DOC) -depth -type d -empty -delete

# ---- a package for Debian: build/deb/abdada_VERSION_ARCHITECTURE.deb ----

# From a copy of what it is made of, so that it works without git, too, and leaves build/release alone. For all
# processors of the last 15 years, unless ARCH is given.
DEB      := build/deb/abdada-$(VERSION)
DEB_MADE_OF := Makefile README.md LICENSE common proto ttserver worker deploy docs examples
DEB_TIME  = $(or $(SOURCE_DATE_EPOCH),$(shell git log -1 --format=%ct 2>/dev/null),$(shell stat -c %Y worker/lib/abdada.h))

deb: deps deps-deb
	rm -rf build/deb
	mkdir -p $(DEB)
	tar -c --exclude=__pycache__ --exclude=worker/lib/python/build --exclude='*.egg-info' $(DEB_MADE_OF) | tar -x -C $(DEB)
	cp -r deploy/debian $(DEB)/debian
	sed "s/@VERSION@/$(VERSION)/; s/@DATE@/$$(date -R -u -d @$(DEB_TIME))/" deploy/debian/changelog.in > $(DEB)/debian/changelog
	cd $(DEB) && env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL -u CFLAGS -u LDFLAGS ABDADA_ARCH=$(if $(filter file,$(origin ARCH)),,$(ARCH)) \
	    dpkg-buildpackage -us -uc -b -j$(JOBS)
	rm -rf $(DEB)
	@ls build/deb/*.deb

clean:
	rm -rf build bin

help:
	@echo 'make                         build bin/ttserver, bin/ttworker and bin/abdada (MODE=release)'
	@echo 'make MODE=dev|tsan           the same with sanitizers, in build/MODE/bin'
	@echo 'make install | uninstall     programs, libabdada, documents, examples (PREFIX=/usr/local DESTDIR= LIBDIR=)'
	@echo 'make install-library         libabdada alone, with its header, abdada.pc and man page'
	@echo 'make deb                     a Debian package of all that, in build/deb (ARCH=x86-64-v2)'
	@echo 'make library                 libabdada alone, in build/MODE/lib'
	@echo 'make deps                    install what building and testing need (apt-get); also deps-test, -bench, -deb'
	@echo 'make clean                   remove build and bin'
	@echo 'make demo                    a cluster on this machine that searches while parts of it are killed'
	@echo
	@echo 'make check                   quick tests and lint, about 2 minutes'
	@echo 'make lint                    format, layers, circles, words, sizes, static analysis; words: the words alone'
	@echo 'make test                    all tests, 30 to 40 minutes; test-long: with every perft count and longer fuzzing'
	@echo 'make test-deploy             a cluster of containers whose parts are killed and cut off; the Debian package'
	@echo 'make chaos                   10,000 searches on the virtual cluster with random faults (SEEDS=A..B)'
	@echo 'make soak                    30 minutes of searches on a cluster under faults (SOAK="--minutes 5 --seed 7")'
	@echo 'make bad-peers               a million bad messages to a shard (BAD_MESSAGES=N)'
	@echo 'make fuzz-long               coverage-guided fuzzing with clang (FUZZ_MINUTES=10 of CPU time each)'
	@echo 'make match                   games against another engine (OPPONENT=/usr/games/glaurung MATCH="--games 40")'
	@echo 'make chess-network           the evaluation for play anew, from own games (NETWORK_POSITIONS=N for each CPU)'
	@echo 'make othello-weights         the Othello evaluation anew, from own games (OTHELLO_GAMES=N in each of three rounds)'
	@echo 'make strict                  one strict score per position, by every way to search'
	@echo 'make unit|fuzz|tools|benches build these programs only, in build/MODE/tests, fuzz, tools, bench'
	@echo
	@echo 'make bench                   node signature and measurements'
	@echo 'make bench-service           a shard beside Redis, memcached and bare sockets (BENCH="--repeats 9")'
	@echo 'make bench-distance          time to depth with the shards 0 to 1,000 us away (BENCH="--every 3")'
	@echo 'make bench-library           what two processes of the C example reach through libabdada'
	@echo 'make tune-search             what each rule of the selective search is worth (TUNE="--rule null-move")'
	@echo 'make match-othello           Othello against another program (OTHELLO_OPPONENT="/usr/games/gtp-rhino --level 4")'
	@echo 'make match-kills             fast games while shards and workers are killed (GAMES=1000 KILLS="--lanes 2")'
	@echo 'make bench-failure           what a dead or a slow shard costs a search'
	@echo 'make bench-survive           what it costs a client that results are kept in a file or a Redis'
	@echo 'make attacks                 what bad peers can do to a cluster that searches (ATTACKS="--only deaf")'
	@echo 'make bench-badpeers          what bad peers cost a good client'
	@echo 'make bench-watching          what metrics, top and its page together cost a search'
	@echo 'make bench-web               what 100 open pages of abdada top --web cost a cluster'
	@echo 'make peers-die               a search in which processes die'
	@echo 'make lab                     a network of today, and the published tables, on the virtual cluster (LAB="weill ura")'
	@echo 'make compare                 the algorithms beside each other; compare-quick: in 5 minutes'
	@echo 'make lab-quick               the same in 5 minutes; lab-calibrate: real runs beside virtual ones'

-include $(OBJ:.o=.d) $(UNIT:%.c=$(O)/%.d) $(FUZZ:%.c=$(O)/%.d) $(TOOLS:%.c=$(O)/%.d) $(BENCHES:%.c=$(O)/%.d) \
         $(LIB_OBJ:.o=.d) $(foreach p,$(PROGRAMS),$(MAIN_$(p):%.c=$(O)/%.d))

.PHONY: all tools benches unit fuzz deps deps-test deps-bench deps-deb deb run-unit run-system run-sim \
        run-deploy run-fuzz fuzz-long run-lint run-soak forget-totals words lint check test \
        test-deploy test-long chaos match match-ready match-othello match-kills tune-search soak bad-peers attacks run-attacks run-attacks-insecure demo bench chess-network othello-weights release-tools bench-badpeers \
        bench-failure bench-distance bench-library bench-survive bench-watching bench-web peers-die bench-service strict compare compare-quick lab lab-quick lab-calibrate \
        library install install-library uninstall clean help FORCE
# Objects stay, and one that is missing is made: not .SECONDARY, which makes none that is older than its program.
.PRECIOUS: $(O)/%.o $(O)/lib/%.o

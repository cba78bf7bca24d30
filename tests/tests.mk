# Tests: what is run, in which groups. Every group adds its counts to TOTALS, and the last line sums them up.

UNIT := $(filter-out $(ABSENT),$(wildcard tests/unit/*/test_*.c))
UNIT_BIN := $(addprefix $(O)/tests/,$(notdir $(UNIT:%.c=%)))
FUZZ := $(wildcard tests/fuzz/fuzz_*.c)
FUZZ_BIN := $(FUZZ:tests/fuzz/%.c=$(O)/fuzz/%)
PRELOADED := want trouble
TOOLS := $(filter-out $(PRELOADED:%=tests/system/%.c),$(wildcard tests/system/*.c)) $(wildcard tests/attacks/*.c) $(wildcard tests/instruments/tune/*.c)
TOOL_BIN := $(addprefix $(O)/tools/,$(notdir $(TOOLS:%.c=%)))
SYSTEM := $(wildcard tests/system/test_*.py)
# The Python package is of the release library alone. The others have nothing there that another build does not
# show: what they test has no threads of its own (tsan), is in cables and clocks (dev), or is in texts and scripts.
LEFT_OUT_dev  := endings guides install kubernetes network python_package slurm ssh_cluster ttbench want
LEFT_OUT_tsan := endings guides install kubernetes pictures python_client python_package redis slurm ssh_cluster tt ttbench want
# What starts no thread has nothing for the thread sanitizer.
LEFT_OUT_UNIT_tsan := bag_core bag_letter bugs chess_% cli_% front_core histogram lab lab_chaos lab_hosts lab_net letter lines memory othello othello_patterns \
                      proto_% pushes redis_address redis_map remote_% search_game snapshot snapshots solver_memory tree% tt_% \
                      ttcore% turns worker_% zmtp zmtp_curve
# What takes longest, which a group begins with, so that it does not end with one of them alone.
SLOW := search_steal lab_chaos lab lab_net lab_hosts proto_client_random redis_shell search_parallel search_children endings \
        letters othello backing lib python_package cluster failure guides kubernetes network connections redis uci ssh_cluster web
# $(call slow_first,PREFIX,SUFFIX,PROGRAMS)
slow_first = $(foreach slow,$(SLOW),$(filter $(1)$(slow)$(2),$(3))) $(filter-out $(SLOW:%=$(1)%$(2)),$(3))
SIM := $(wildcard tests/sim/test_*.py)

# Each from its source, wherever that is: $(call program,FOLDER,SOURCE).
program = $(O)/$(1)/$(notdir $(2:%.c=%)): $(2:%.c=$(O)/%.o) $(O)/all.a
$(foreach c,$(UNIT),$(eval $(call program,tests,$(c)) $(O)/tests/support/filter.o))
$(foreach c,$(TOOLS),$(eval $(call program,tools,$(c))))
$(UNIT_BIN): private LIBS += -lcmocka
$(UNIT_BIN) $(TOOL_BIN):
	$(LINK)

# They start it.
$(O)/tests/test_lib $(O)/tests/test_lib_misuse $(O)/tests/test_lib_jobs: | $(O)/bin/ttserver

tools: $(TOOL_BIN) $(PRELOADED:%=$(O)/tools/%.so)

# To preload, so without sanitizers.
$(PRELOADED:%=$(O)/tools/%.so): $(O)/tools/%.so: tests/system/%.c
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	@$(CC) -std=c11 -D_GNU_SOURCE -O2 -Wall -Wextra -shared -fPIC -o $@ $<

UNIT_RUN := $(filter-out $(LEFT_OUT_UNIT_$(MODE):%=$(O)/tests/test_%),$(UNIT_BIN))
unit: $(UNIT_RUN) ## build these programs only, in build/MODE/tests; also fuzz, tools, benches

$(O)/tests/fuzz/%.o: private CFLAGS_ALL += -DFUZZ_MAIN
$(O)/fuzz/%: $(O)/tests/fuzz/%.o $(O)/all.a
	$(LINK)

fuzz: $(FUZZ_BIN)

# The programs as a machine without hiredis builds them: of the same objects but those of Redis.
WITHOUT := $(O)/without-redis
WITHOUT_OBJ := $(sort $(filter-out $(OF_REDIS:%.c=$(O)/%.o),$(OBJ)) $(patsubst %.c,$(O)/%.o,$(wildcard worker/redis/*_none.c ttserver/keep/*_none.c)))
$(WITHOUT)/all.a: $(WITHOUT_OBJ)
	@mkdir -p $(@D)
	@rm -f $@
	@gcc-ar rcs $@ $(WITHOUT_OBJ)

$(foreach p,$(PROGRAMS),$(eval $(WITHOUT)/bin/$(p): $(MAIN_$(p):%.c=$(O)/%.o) $(WITHOUT)/about.o $(WITHOUT)/all.a))
$(WITHOUT)/about.c: private LIBS_REDIS :=
$(PROGRAMS:%=$(WITHOUT)/bin/%):
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	@$(CC) $(LDFLAGS_MODE) $(LDFLAGS) -o $@ $(filter %.o,$^) $(WITHOUT)/all.a $(LIBS_NET) -lm -pthread

without-redis: $(PROGRAMS:%=$(WITHOUT)/bin/%)

# ---- tests ----

TOTALS := build/totals
RUN     = $(PYTHON) tests/run.py --totals $(TOTALS)
SUM     = $(PYTHON) tests/run.py --sum $(TOTALS)
# $(call build,MODE,TARGETS): a target that does not compile is one failure; the rest is tested.
build   = @$(AGAIN) -k -j$(JOBS) MODE=$(1) $(2) || \
            $(RUN) --group "build" --step "build of MODE=$(1)" -- sh -c 'echo "see above"; exit 1' || true

UNIT_TIMEOUT   := 300
SYSTEM_TIMEOUT := 600
SYSTEM_JOBS    := $(shell expr $(JOBS) + 2)
SIM_TIMEOUT    := 900
PERFT_MAX_LEAVES ?= 200000
FUZZ_RUNS        ?= 2000000
FUZZ_ARGS_fuzz_ttcore = 1 $(shell expr $(FUZZ_RUNS) / 1000)
FUZZ_ARGS_fuzz_ggf = $(shell expr $(FUZZ_RUNS) / 5) 1
FUZZ_ARGS_fuzz_zmtp = $(FUZZ_ARGS_fuzz_ggf)
FUZZ_ARGS_fuzz_letter = $(FUZZ_ARGS_fuzz_ggf)
FUZZ_ARGS_fuzz_bag_letter = $(FUZZ_ARGS_fuzz_ggf)
FUZZ_ARGS_fuzz_proof = $(shell expr $(FUZZ_RUNS) / 50) 1
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
	  $(call slow_first,$(O)/tests/test_,,$(UNIT_RUN)) || true

# Its programs mostly wait: for processes, for time-outs.
run-system:
	@BIN=$(O)/bin $(SANITIZED) $(RUN) -j$(SYSTEM_JOBS) --again 2 --timeout $(SYSTEM_TIMEOUT) --group "system, $(MODE)" \
	  $(filter-out $(LEFT_OUT_$(MODE):%=tests/system/test_%.py),$(call slow_first,tests/system/test_,.py,$(SYSTEM))) || true

run-without-redis:
	@BIN=$(WITHOUT)/bin OF_REDIS="$(OF_REDIS)" $(SANITIZED) $(RUN) --timeout $(SYSTEM_TIMEOUT) --group "system, $(MODE)" \
	  tests/system/without_redis.py || true

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

FUZZ_MINUTES ?= 10
fuzz-long: deps ## coverage-guided fuzzing with clang (FUZZ_MINUTES=10 of CPU time each)
	@$(DEPS) --optional $(DEPS_FUZZ)
	@$(PYTHON) tests/fuzz/long.py --minutes $(FUZZ_MINUTES)

run-$(O)/fuzz/%:
	@$(RUN) --timeout 900 --group "fuzz, $(MODE)" --step "$*" -- \
	  $(O)/fuzz/$* $(or $(FUZZ_ARGS_$*),$(FUZZ_RUNS) 1) || true

run-lint:
	@$(RUN) --group lint --step "clang-format" -- tests/lint/format.sh || true
	@$(RUN) --group lint --step "layers, circles, contracts, sizes" -- $(PYTHON) tests/lint/layers.py || true
	@$(RUN) --group lint --step "words" -- $(PYTHON) tests/lint/words.py || true
	@$(RUN) --group lint --step "names in documents" -- $(PYTHON) tests/lint/names.py || true
	@$(RUN) --group lint --step "figures of the README" -- $(PYTHON) tests/instruments/bench/readme_figures.py --list || true
	@$(RUN) --group lint --step "launcher" -- env PYTHON=$(PYTHON) tests/lint/launcher.sh || true
	@$(RUN) --group lint --step "cppcheck" -- tests/lint/cppcheck.sh $(JOBS) || true
	@$(RUN) --group lint $(wildcard tests/lint/test_*.py) || true

run-attacks: KEYS := with keys
run-attacks-insecure: KEYS := without keys
run-attacks run-attacks-insecure:
	@BIN=$(O)/bin TOOLS=$(O)/tools $(RUN) --timeout 1200 --group "attacks, $(MODE)" --step "$(KEYS)" -- \
	  $(PYTHON) tests/attacks/attacks.py --quick $(if $(filter without,$(KEYS)),--insecure) || true

# Both beside each other: they mostly wait.
run-soaks: run-soak run-soak-redis
run-soak: FAULTS := --seconds 40
run-soak-redis: FAULTS := --redis --seconds 30
run-soak run-soak-redis:
	@BIN=$(O)/bin $(RUN) --timeout 1200 --group "soak, $(MODE)" --step "soak $(FAULTS)" -- \
	  $(PYTHON) tests/system/soak $(FAULTS) || true

forget-totals:
	@rm -f $(TOTALS)

words:
	@$(PYTHON) tests/lint/words.py

# TEST_GROUPS: without one of them --sum fails.
lint: export TEST_GROUPS := lint
lint: deps-test forget-totals ## format, layers, circles, words, sizes, static analysis; words: the words alone
	@$(AGAIN) run-lint
	@$(SUM)

# It leaves out what takes longest: what waits for time-outs, for Redis servers, for cables.
CHECK_UNIT   := $(filter-out tests/unit/redis/% tests/unit/lib/%,$(UNIT))
CHECK_SYSTEM := $(patsubst %,tests/system/test_%.py,bad_peers cluster failure pictures othello_protocols python_client roles uci)
check: export TEST_GROUPS := lint|unit, dev|system, dev|sim, dev
check: deps-test forget-totals ## quick tests and lint, about 2 minutes on an idle machine
	$(call build,dev,all unit tools)
	@$(AGAIN) run-lint
	@$(AGAIN) MODE=dev run-unit UNIT="$(CHECK_UNIT)"
	@QUICK=1 $(AGAIN) MODE=dev run-system SYSTEM="$(CHECK_SYSTEM)"
	@QUICK=1 $(AGAIN) MODE=dev run-sim RUNS=45
	@$(SUM)

# Of system tests under the thread sanitizer those of programs with many threads; the others show nothing there that unit
# tests do not, and are part of test-long.
TSAN_SYSTEM ?= $(patsubst %,tests/system/test_%.py,bag cluster connections failure letters limits uci)
test: export TEST_GROUPS := lint|deploy|unit, dev|unit, tsan|unit, release|fuzz, dev|system, release|system, dev|system, tsan|sim, release|attacks, release|attacks, dev|soak, release
test: deps-test forget-totals ## all tests, about 30 minutes on an idle machine
	$(call build,release,all tools build/release/tests/test_chess_perft build/release/tests/test_search_steal)
	$(call build,dev,all unit fuzz tools)
	$(call build,dev,without-redis)
	$(call build,tsan,all unit tools)
	$(call build,release,O=$(VALGRIND_O) ARCH=$(VALGRIND_ARCH) $(VALGRIND_O)/bin/ttserver)
	@$(AGAIN) run-lint
	@$(AGAIN) -j2 run-deploy run-units
	@VALGRIND=1 VALGRIND_BIN=$(VALGRIND_O)/bin $(AGAIN) MODE=release run-system
	@QUICK=1 $(AGAIN) MODE=dev run-system
	@$(AGAIN) MODE=dev run-without-redis
	@QUICK=1 $(AGAIN) MODE=tsan run-system SYSTEM="$(TSAN_SYSTEM)"
	@$(AGAIN) MODE=release run-sim OTHER_BINS=$(TRACED_BINS)
	@$(AGAIN) MODE=release run-attacks
	@$(AGAIN) MODE=release run-attacks-insecure
	@$(AGAIN) MODE=dev run-attacks
	@$(AGAIN) MODE=release -j2 run-soaks
	@$(SUM)
RELEASE_LEAVES := 5000000
TRACED_BINS    := build/dev/bin

# Beside the containers, whose tests mostly wait.
run-units:
	@+$(AGAIN) MODE=dev run-unit
	@+$(AGAIN) MODE=tsan run-unit
	@+$(AGAIN) MODE=release run-unit UNIT="tests/unit/games/test_chess_perft.c tests/unit/search/test_search_steal.c" PERFT_MAX_LEAVES=$(RELEASE_LEAVES)
	@+$(AGAIN) MODE=dev run-fuzz

test-deploy: export TEST_GROUPS := deploy
test-deploy: deps forget-totals ## a cluster of containers whose parts are killed and cut off; the Debian package; skipped where no engine is
	@$(AGAIN) run-deploy
	@$(SUM)

test-long: ## the same, with every perft count and longer fuzzing, in hours
	@OTHELLO_EMPTIES=64 STEAL_ALL=1 ITERATIONS=1000 STORMS=10000 CHANGES=1000 $(AGAIN) test TSAN_SYSTEM="$(SYSTEM)" TRACED_BINS=build/dev/bin:build/tsan/bin RELEASE_LEAVES=0 FUZZ_RUNS=100000000 UNIT_TIMEOUT=14400 SYSTEM_TIMEOUT=200000

SEEDS ?= 1..10000
CHAOS_SEEDS := tests/data/chaos-seeds.txt
chaos: ## 10,000 searches on the virtual cluster with random faults (SEEDS=A..B)
	@$(AGAIN) -j$(JOBS) MODE=release all
	@bin/abdada sim --faults random --seeds $(SEEDS) --jobs $(JOBS) --failures $(CHAOS_SEEDS)

COVERED_SEEDS ?= 1..1000
chaos-coverage: ## which lines of the cores chaos reaches (COVERED_SEEDS=A..B; LINES=1: those that it does not)
	@$(AGAIN) -j$(JOBS) MODE=coverage build/coverage/bin/abdada
	@$(PYTHON) tests/sim/coverage.py --seeds $(COVERED_SEEDS) --jobs $(JOBS) $(if $(LINES),--lines)

SOAK ?= --minutes 30
soak: deps-test ## 30 minutes of searches on a cluster under faults (SOAK="--minutes 5 --seed 7")
	@$(AGAIN) -j$(JOBS) MODE=$(MODE) all tools
	@BIN=$(O)/bin $(PYTHON) tests/system/soak $(SOAK)

BAD_MESSAGES ?= 1000000
bad-peers: deps ## a million bad messages to a shard, with sanitizers (BAD_MESSAGES=N)
	@$(AGAIN) -j$(JOBS) MODE=dev all tools
	@BIN=build/dev/bin MESSAGES=$(BAD_MESSAGES) $(PYTHON) tests/system/test_bad_peers.py

-include $(UNIT:%.c=$(O)/%.d) $(FUZZ:%.c=$(O)/%.d) $(TOOLS:%.c=$(O)/%.d)

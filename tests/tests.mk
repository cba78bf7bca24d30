# Tests: what is run, in which groups. Every group adds its counts to TOTALS, and the last line sums them up.

UNIT := $(filter-out $(ABSENT),$(wildcard tests/unit/*/test_*.c))
UNIT_BIN := $(addprefix $(O)/tests/,$(notdir $(UNIT:%.c=%)))
FUZZ := $(wildcard tests/fuzz/fuzz_*.c)
FUZZ_BIN := $(FUZZ:tests/fuzz/%.c=$(O)/fuzz/%)
PRELOADED := want trouble
TOOLS := $(filter-out $(PRELOADED:%=tests/system/%.c),$(wildcard tests/system/*.c)) $(wildcard tests/attacks/*.c) $(wildcard tests/instruments/tune/*.c)
TOOL_BIN := $(addprefix $(O)/tools/,$(notdir $(TOOLS:%.c=%)))
SYSTEM := $(wildcard tests/system/test_*.py)
# `make test` runs each of them once. Tests that send damaged input run in dev, because only a sanitizer shows those faults.
# All others run in release. `make test-long` runs them in every build in which they show more, under tsan in quick form.
IN_DEV := bad_peers cases connections othello_protocols python_client roles tt
# What only the release build has, and what shows nothing more in another build: it has no threads of its own (tsan), or
# is in cables, clocks, texts and scripts (dev).
LEFT_OUT_dev  := endings guides install kubernetes match network python_package slurm ssh_cluster ttbench want
LEFT_OUT_tsan := endings guides install kubernetes match pictures python_client python_package redis slurm ssh_cluster tt ttbench want
system_named = $(patsubst %,tests/system/test_%.py,$(1))
# What starts no thread has nothing for the thread sanitizer.
LEFT_OUT_UNIT_tsan := bag_core bag_letter bugs chess_% claims cli_% front_core histogram lab lab_chaos lab_hosts lab_net engine_job letter lines memory othello othello_patterns \
                      proto_% pushes redis_address redis_map remote_% search_game snapshot snapshots solver_memory tree% tt_% \
                      ttbench_load ttcore% turns uci_text worker_% zmtp zmtp_curve
# What takes longest, which a group begins with, so that it does not end with one of them alone.
SLOW := ssh_cluster engine endings othello want search_steal lab_chaos lab lab_net lab_disk lab_hosts search_lies proto_client_random redis_shell \
        search_parallel search_children guides backing letters python_package network redis install connections failure \
        cluster kubernetes lib uci_games web cases bag versions
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

# The virtual cluster with all that can go wrong in it: a program, which refuses memory to what it runs (lab_want.h),
# and the same for tests and a bench.
CHAOS     := $(wildcard tests/chaos/*.c)
CHAOS_BIN := $(O)/bin/abdada-chaos
CHAOS_OBJ := $(CHAOS:%.c=$(O)/%.o)
WRAPPED   := malloc calloc realloc aligned_alloc mmap lab_heap_push lab_packet_new
$(CHAOS_BIN): private LDFLAGS += $(WRAPPED:%=-Wl,--wrap=%)
$(CHAOS_BIN): $(CHAOS_OBJ) $(O)/about.o $(O)/all.a
	$(LINK)
$(filter $(O)/tests/test_lab% $(O)/tests/test_search_steal,$(UNIT_BIN)) $(O)/bench/kill_cost: $(filter-out %/main.o,$(CHAOS_OBJ))

tools: $(TOOL_BIN) $(PRELOADED:%=$(O)/tools/%.so) $(CHAOS_BIN)

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
$(foreach p,$(PROGRAMS),$(eval $(WITHOUT)/bin/$(p): $(MAIN_$(p):%.c=$(O)/%.o) $(WITHOUT)/about.o $(WITHOUT)/all.a))
$(WITHOUT)/about.c $(PROGRAMS:%=$(WITHOUT)/bin/%): private LIBS_REDIS :=
$(PROGRAMS:%=$(WITHOUT)/bin/%):
	$(LINK)

without-redis: $(PROGRAMS:%=$(WITHOUT)/bin/%)

# ---- tests ----

TOTALS := build/totals
RUN     = $(PYTHON) tests/run.py --totals $(TOTALS)
SUM     = $(PYTHON) tests/run.py --sum $(TOTALS)
# $(call build,MODE,TARGETS): a target that does not compile is one failure; the rest is tested.
build   = @$(AGAIN) -k -j$(JOBS) MODE=$(1) $(2) || \
            $(RUN) --group "build" --step "build of MODE=$(1)" -- sh -c 'echo "see above"; exit 1' || true

UNIT_TIMEOUT   := 900
SYSTEM_TIMEOUT := 2400
SYSTEM_JOBS    := $(shell expr $(JOBS) + 2)
SIM_TIMEOUT    := 900
PERFT_MAX_LEAVES ?= 200000
FUZZ_RUNS        ?= 200000
# Of the slow ones so much less: NAME:DIVISOR. That of the core takes a seed first, and steps.
FUZZ_LESS := ggf:10 zmtp:5 letter:5 bag_letter:5 proof:50
FUZZ_ARGS = $(shell expr $(FUZZ_RUNS) / $(or $(patsubst $(1):%,%,$(filter $(1):%,$(FUZZ_LESS))),1)) 1
FUZZ_ARGS_ttcore = 1 $(shell expr $(FUZZ_RUNS) / 1000)
export PERFT_MAX_LEAVES

# Old thread sanitizers fail where addresses are randomised over many bits, hence setarch -R, which a
# container may forbid. libzmq is not built for them, hence the suppressions.
UNRANDOM   = $(shell setarch $(shell uname -m) -R true 2>/dev/null && echo setarch $(shell uname -m) -R)
SUPPRESSED = TSAN_OPTIONS="suppressions=$(CURDIR)/tests/tsan.supp"
SANITIZED := $(SUPPRESSED) $(if $(filter tsan,$(MODE)),$(UNRANDOM))
OF_ENDINGS    := tests/unit/games/test_othello.c tests/unit/games/test_othello_solver.c
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
	@BIN=$(WITHOUT)/bin OF_REDIS="$(OF_REDIS)" $(SANITIZED) $(RUN) --timeout $(SYSTEM_TIMEOUT) --group "without redis" \
	  tests/system/without_redis.py || true

# The virtual cluster: RUNS random runs, and the same traces from OTHER_BINS.
run-sim:
	@BIN=$(O)/bin OTHER_BINS=$(OTHER_BINS) RUNS=$(RUNS) JOBS=$(JOBS) $(SUPPRESSED) $(UNRANDOM) \
	  $(RUN) --timeout $(SIM_TIMEOUT) --group "sim, $(MODE)" $(SIM) || true
RUNS ?= 300

# The programs end by themselves and remove their containers well before the runner would kill them.
DEPLOY_TIMEOUT := 5700
run-deploy:
	@$(RUN) -j$(JOBS) --verbose --timeout $(DEPLOY_TIMEOUT) --group deploy deploy/compose-test deploy/deb-test || true

run-fuzz: $(FUZZ_BIN:%=run-%)

FUZZ_MINUTES ?= 10
fuzz-long: deps ## coverage-guided fuzzing with clang (FUZZ_MINUTES=10 of CPU time each)
	@$(DEPS) --optional fuzz
	@$(PYTHON) tests/fuzz/long.py --minutes $(FUZZ_MINUTES)

run-$(O)/fuzz/%:
	@$(RUN) --timeout 900 --group "fuzz, $(MODE)" --step "$*" -- \
	  $(O)/fuzz/$* $(or $(FUZZ_ARGS_$(*:fuzz_%=%)),$(call FUZZ_ARGS,$(*:fuzz_%=%))) || true

run-lint:
	@$(RUN) --group lint --step "clang-format" -- tests/lint/format.sh || true
	@$(RUN) --group lint --step "layers, circles, contracts, sizes" -- $(PYTHON) tests/lint/layers.py || true
	@$(RUN) --group lint --step "words" -- $(PYTHON) tests/lint/words.py || true
	@$(RUN) --group lint --step "names in documents" -- $(PYTHON) tests/lint/names.py || true
	@$(RUN) --group lint --step "language" -- $(PYTHON) tests/lint/language.py || true
	@$(RUN) --group lint --step "figures of the README" -- $(PYTHON) tests/instruments/bench/readme_figures.py --list || true
	@$(RUN) --group lint --step "launcher" -- env PYTHON=$(PYTHON) tests/lint/launcher.sh || true
	@$(RUN) --group lint --step "cppcheck" -- tests/lint/cppcheck.sh $(JOBS) || true
	@$(RUN) --group lint $(wildcard tests/lint/test_*.py) || true

run-attacks run-attacks-insecure:
	@BIN=$(O)/bin TOOLS=$(O)/tools $(RUN) --timeout 1200 --group "attacks, $(MODE)" \
	  --step "$(if $(@:run-attacks=),without,with) keys" -- \
	  $(PYTHON) tests/attacks/attacks.py --quick $(if $(@:run-attacks=),--insecure) || true

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
lint: deps-test forget-totals ## format, layers, circles, words, language, sizes, static analysis; words: the words alone
	@$(AGAIN) run-lint
	@$(SUM)

# It leaves out what takes longest: what waits for time-outs, for Redis servers, for cables, or draws many cases.
CHECK_UNIT   := $(filter-out tests/unit/redis/% tests/unit/lib/% tests/unit/lab/% %/test_search_steal.c %/test_proto_client_random.c,$(UNIT))
CHECK_SYSTEM := $(call system_named,bad_peers cluster failure pictures othello_protocols python_client roles uci)
check: export TEST_GROUPS := lint|unit, dev|system, dev|sim, dev
check: deps-test forget-totals ## quick tests and lint, 2 minutes on two idle CPUs after a build of 1 to 2 minutes
	$(call build,dev,all unit build/dev/tools/bombard build/dev/bin/abdada-chaos UNIT="$(CHECK_UNIT)")
	@$(AGAIN) -k -j2 checking check-waiting || true # as in test, below
	@$(SUM)
checking:
	@+$(AGAIN) run-lint
	@+$(AGAIN) MODE=dev run-unit UNIT="$(CHECK_UNIT)"
	@+QUICK=1 $(AGAIN) MODE=dev run-sim RUNS=30
check-waiting:
	@+QUICK=1 $(AGAIN) MODE=dev run-system SYSTEM="$(CHECK_SYSTEM)"

test: export TEST_GROUPS := lint|unit, dev|unit, tsan|fuzz, dev|system, release|system, dev|without redis|sim, release
test: deps-test forget-totals ## what every change must pass: 15 minutes on two idle CPUs
	$(call build,release,all tools)
	$(call build,dev,all unit fuzz tools without-redis bench-objects)
	$(call build,tsan,unit)
	@$(AGAIN) -k -j2 searching waiting || true # a lane that breaks off leaves groups out, which the sum counts
	@$(SUM)

# Two lanes beside each other: one that keeps the CPUs busy, and one whose programs mostly wait.
searching:
	@+$(AGAIN) run-lint
	@+$(AGAIN) MODE=dev run-unit
	@+$(AGAIN) MODE=tsan run-unit
	@+$(AGAIN) MODE=dev run-fuzz
	@+SHORT=1 $(AGAIN) MODE=release run-sim
waiting:
	@+SHORT=1 $(AGAIN) MODE=release run-system SYSTEM="$(filter-out $(call system_named,$(IN_DEV)),$(SYSTEM))"
	@+SHORT=1 $(AGAIN) MODE=dev run-system SYSTEM="$(call system_named,$(IN_DEV))"
	@+$(AGAIN) MODE=dev run-without-redis

# Everything else, and the parts of `make test` for longer.
LONG_GROUPS := deploy|unit, release|system, tsan|attacks, release|attacks, dev|soak, release
LONG := OTHELLO_EMPTIES=27 STEAL_ALL=1 STORMS=10000 CHANGES=1000 FUZZ_RUNS=20000000 RUNS=2000 ITERATIONS=250 DRAWS=500 \
        ENGINE_ROUNDS=1000 \
        MATERIALS="KQK KRK KPK KRKN KQKN KRKB KBBK KBPK KPKP KRKP KQKP"
test-long: export TEST_GROUPS := lint|unit, dev|unit, tsan|fuzz, dev|system, release|system, dev|without redis|sim, release|$(LONG_GROUPS)
test-long: deps-test forget-totals ## all tests whole, in three builds, attacks, soak, containers, valgrind, full perft, long fuzzing: two hours
	$(call build,release,all tools $(addprefix build/release/tests/test_,chess_perft othello othello_solver search_steal))
	$(call build,dev,all unit fuzz tools without-redis)
	$(call build,tsan,all unit tools)
	$(call build,release,O=$(VALGRIND_O) ARCH=$(VALGRIND_ARCH) $(VALGRIND_O)/bin/ttserver \
	  $(OF_ENDINGS:tests/unit/games/%.c=$(VALGRIND_O)/tests/%))
	@$(AGAIN) -j2 run-deploy long-units
	@$(LONG) VALGRIND=1 VALGRIND_BIN=$(VALGRIND_O)/bin $(AGAIN) MODE=release run-system SYSTEM_TIMEOUT=7200
	@$(AGAIN) MODE=dev run-system
	@$(AGAIN) MODE=dev run-without-redis
	@QUICK=1 $(AGAIN) MODE=tsan run-system
	@$(LONG) $(AGAIN) MODE=release run-sim OTHER_BINS=build/dev/bin:build/tsan/bin SIM_TIMEOUT=7200
	@$(AGAIN) MODE=release run-attacks
	@$(AGAIN) MODE=release run-attacks-insecure
	@$(AGAIN) MODE=dev run-attacks
	@$(AGAIN) MODE=release -j2 run-soaks
	@$(SUM)
long-units:
	@+$(AGAIN) run-lint
	@+$(LONG) $(AGAIN) MODE=dev run-unit
	@+$(AGAIN) MODE=tsan run-unit
	@+STEAL_ALL=1 $(AGAIN) MODE=release run-unit UNIT="tests/unit/games/test_chess_perft.c tests/unit/search/test_search_steal.c" PERFT_MAX_LEAVES=0 UNIT_TIMEOUT=7200
	@+ONLY='*_sizes' $(AGAIN) MODE=release run-unit UNIT=tests/unit/games/test_othello.c PERFT_MAX_LEAVES=20000000000
	@+BOARDS=2000 $(AGAIN) MODE=release run-unit UNIT=tests/unit/games/test_othello_solver.c
	@+$(AGAIN) MODE=release run-unit UNIT="$(OF_ENDINGS)" O=$(VALGRIND_O)
	@+$(LONG) $(AGAIN) MODE=dev run-fuzz

test-deploy: export TEST_GROUPS := deploy
test-deploy: deps forget-totals ## a cluster of containers whose parts are killed and cut off; the Debian package; skipped where no engine is
	@$(AGAIN) run-deploy
	@$(SUM)

SEEDS ?= 1..10000
CHAOS_SEEDS := tests/data/chaos-seeds.txt
chaos: ## 10,000 searches on the virtual cluster with random faults (SEEDS=A..B)
	@$(AGAIN) -j$(JOBS) MODE=release build/release/bin/abdada-chaos
	@build/release/bin/abdada-chaos --seeds $(SEEDS) --jobs $(JOBS) --failures $(CHAOS_SEEDS)

COVERED_SEEDS ?= 1..1000
chaos-coverage: ## which lines of the cores chaos reaches (COVERED_SEEDS=A..B; LINES=1: those that it does not)
	@$(AGAIN) -j$(JOBS) MODE=coverage build/coverage/bin/abdada-chaos
	@$(PYTHON) tests/sim/coverage.py --seeds $(COVERED_SEEDS) --jobs $(JOBS) $(if $(LINES),--lines)

SOAK ?= --minutes 30
soak: deps-test ## 30 minutes of searches on a cluster under faults (SOAK="--minutes 5 --seed 7")
	@$(AGAIN) -j$(JOBS) MODE=$(MODE) all tools
	@BIN=$(O)/bin $(PYTHON) tests/system/soak $(SOAK)

BAD_MESSAGES ?= 1000000
bad-peers: deps ## a million bad messages to a shard, with sanitizers (BAD_MESSAGES=N)
	@$(AGAIN) -j$(JOBS) MODE=dev all tools
	@BIN=build/dev/bin MESSAGES=$(BAD_MESSAGES) $(PYTHON) tests/system/test_bad_peers.py

-include $(CHAOS_OBJ:.o=.d) $(UNIT:%.c=$(O)/%.d) $(FUZZ:%.c=$(O)/%.d) $(TOOLS:%.c=$(O)/%.d)

# Everything a contributor or CI runs. `make` alone lists the targets.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
# One step after the other, in the order written: cargo already uses every core.
.NOTPARALLEL:

CARGO ?= cargo
export CARGO

# A machine may have the pinned version under the name `stable` only, and no way to fetch it again.
PINNED := $(shell sed -n 's/^channel = "\(.*\)"/\1/p' rust-toolchain.toml)
ifneq ($(shell cargo --version >/dev/null 2>&1 && echo there),there)
  ifeq ($(word 2,$(shell rustup run stable rustc --version 2>/dev/null)),$(PINNED))
    export RUSTUP_TOOLCHAIN := stable
  endif
endif

# Where cargo puts what it builds.
BUILT := $(abspath $(or $(CARGO_TARGET_DIR),target))

SEEDS ?= 1000
MINUTES ?= 60
# Other seeds each time; the run prints them, and one that failed can be replayed.
FROM ?= $(shell date +%s)000
SECONDS ?= 60
ARGS ?=

# nextest does not stop at the first failure in CI: the whole list is worth the wait there.
NEXTEST_PROFILE := $(if $(CI),ci,default)

# When the first of these began, for all that it calls.
ifndef BEGAN
  BEGAN := $(shell date +%s)
endif
export BEGAN

# With the minutes and seconds since then: so CI says which step takes how long.
heading = @s=$$(($$(date +%s) - $(BEGAN))); printf '\n==> %s (at %d:%02d)\n' '$(1)' $$((s / 60)) $$((s % 60))

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: setup
setup: ## install what is missing; says nothing when there is nothing to do
	@scripts/setup

# What the page is built from, and what builds it. Without a Node that can, an agent is built that says how to get the page.
UI_SOURCES := $(shell find ui/src ui/public ui/scripts ui/index.html ui/*.json ui/*.ts -type f -not -name schema.d.ts) docs/openapi.json

ui/node_modules/.package-lock.json: ui/package-lock.json
	$(call heading,npm packages)
	cd ui && npm ci --no-audit --no-fund
	@touch $@

ui/dist/index.html: ui/node_modules/.package-lock.json $(UI_SOURCES)
	$(call heading,web UI)
	cd ui && npm run --silent build
	@touch $@

.PHONY: ui
ui: ui/dist/index.html ## the page that agents serve (needs Node)

.PHONY: ui-if-node
ui-if-node:
	@if scripts/setup node; then $(MAKE) --no-print-directory ui; \
	else echo 'going on without: the agents will have no web UI, and their page says so'; fi

.PHONY: setup-build
setup-build:
	@scripts/setup build

.PHONY: build
build: setup-build ui-if-node ## the release binary
	$(call heading,build)
	$(CARGO) build --release --locked --workspace

.PHONY: dist
dist: setup-build ui-if-node ## the binary to hand out: slower to build, a little faster to run
	$(call heading,dist)
	$(CARGO) build --profile dist --locked -p cheops -p cheops-bench

.PHONY: test
test: setup check-fmt check-ui lint doc check-purity check-circles check-names check-deps test-doc test-examples test-code test-browser simulate ## all that CI runs: every check, every test, the simulation
	$(call heading,all checks passed)

.PHONY: check-fmt
check-fmt: ## is the code formatted?
	$(call heading,format)
	$(CARGO) fmt --all --check

.PHONY: check-ui
check-ui: ui/node_modules/.package-lock.json ui ## the page: format, types, unit tests
	$(call heading,web UI: checks and unit tests)
	cd ui && npm run --silent check && npm test --silent

.PHONY: lint
lint: ## clippy, warnings are errors
	$(call heading,lint)
	$(CARGO) clippy --workspace --all-targets --locked -- -D warnings

.PHONY: doc
doc: ## API documentation, warnings are errors
	$(call heading,doc)
	RUSTDOCFLAGS='-D warnings' $(CARGO) doc --workspace --no-deps --locked

.PHONY: check-purity
check-purity: ## the crates that decide depend on nothing that acts
	$(call heading,purity)
	@scripts/check-purity

.PHONY: check-circles
check-circles: ## no module of a crate knows itself by way of others, no crate uses what is not for it
	$(call heading,circles)
	@scripts/check-circles

.PHONY: check-names
check-names: ## one name for one type, so that it can be looked for
	$(call heading,names)
	@scripts/check-names

# A wrapper in deny.toml is a permission: that nobody uses it is no reason to warn.
.PHONY: check-deps
check-deps: ## licences, bans and sources of the dependencies, offline
	$(call heading,dependencies)
	$(CARGO) deny --offline check -A unused-wrapper licenses bans sources

.PHONY: test-code
test-code: ## unit and integration tests
	$(call heading,tests)
	@if $(CARGO) nextest --version >/dev/null 2>&1; then \
	  $(CARGO) nextest run --workspace --locked --profile $(NEXTEST_PROFILE); \
	else \
	  $(CARGO) test --workspace --locked --lib --bins --tests --examples; \
	fi

# Apart from the others: it builds the agent and what it stands on once more, with the feature.
.PHONY: check-otlp
check-otlp: ## the export of spans, which is not built by default: lint, and its tests
	$(call heading,export of spans)
	$(CARGO) clippy -p cheops -p cheops-agent --all-targets --features cheops/otlp,cheops-agent/otlp --locked -- -D warnings
	$(CARGO) test -p cheops-agent --features otlp --locked --test agent -- --exact \
	  otlp::a_collector_hears_of_an_operation_from_hand_in_to_the_last_reply \
	  config::a_collector_is_taken_by_a_program_that_can_export_and_refused_by_any_other

.PHONY: test-doc
test-doc: ## the examples in the documentation (nextest does not run them)
	$(call heading,documentation examples)
	$(CARGO) test --workspace --locked --doc

.PHONY: test-examples
test-examples: ## the sample application alone, without Cheops
	$(call heading,sample application)
	cd examples/imagery && node --test

# The page as agents serve it: built in, so it has to be there before them. The programs are those of
# the tests: to build them alone would be to build much of what they rest on once more.
.PHONY: test-browser
test-browser: ui ## the page in a real browser, with real agents; ARGS='-g matrix'
	$(call heading,web UI: stories in a browser)
	$(CARGO) test --workspace --locked --no-run
	cd ui && CHEOPS_BIN="$(BUILT)/debug/cheops" npm run --silent test:browser -- $(ARGS)

.PHONY: screenshots
screenshots: setup ui ## the pictures of the page in docs/images, anew
	$(CARGO) build --release --locked -p cheops
	$(call heading,screenshots)
	cd ui && CHEOPS_BIN="$(BUILT)/release/cheops" npm run --silent screenshots

.PHONY: test-openstack
test-openstack: ## two real OpenStack sites with Cheops in front (as root: installs Debian's packages)
	$(call heading,build)
	$(CARGO) build --release --locked -p cheops
	$(call heading,openstack)
	examples/openstack/run

.PHONY: attack
attack: setup ## real agents under every attack on the list, and a table of what held
	$(call heading,attack)
	@scripts/attack

.PHONY: simulate
simulate: ## many sites under every fault, SEEDS=1000 runs
	$(call heading,simulation: $(SEEDS) seeds)
	$(CARGO) run --release --locked -p cheops-sim -- --seeds $(SEEDS)

.PHONY: soak
soak: ## the simulation with new seeds for MINUTES=60
	$(call heading,soak: $(MINUTES) minutes from seed $(FROM))
	$(CARGO) run --release --locked -p cheops-sim -- --minutes $(MINUTES) --from $(FROM)

.PHONY: fuzz
fuzz: ## random bytes into the scope-lang parser for SECONDS=60 (needs a nightly toolchain)
	$(call heading,fuzz: $(SECONDS) seconds)
	@scripts/setup fuzz
	$(CARGO) +nightly fuzz run scope -- -max_total_time=$(SECONDS)

.PHONY: bench
bench: dist ## how fast three real agents are, beside what the machine costs; ARGS='--only latency'
	$(call heading,bench)
	$(BUILT)/dist/cheops-bench $(ARGS)

.PHONY: bench-core
bench-core: ## how fast the core and the simulator are
	$(call heading,bench-core)
	$(CARGO) bench --locked -p cheops-core
	$(CARGO) bench --locked -p cheops-sim

# Built as for tests: it is there sooner than a release, and fast enough to look at. Without
# a terminal there is nobody to paste commands: then the sites play a script and end.
.PHONY: demo
demo: setup-build ui-if-node ## three sites on this machine with an application, links to cut, commands to paste
	$(call heading,demo)
	$(CARGO) build --locked -p cheops
	@if [ -t 0 ] && [ -t 1 ]; then \
	  $(BUILT)/debug/cheops demo; \
	else \
	  $(BUILT)/debug/cheops demo --script; \
	fi

.PHONY: fmt
fmt: ## format the code
	$(CARGO) fmt --all

.PHONY: clean
clean: ## remove what was built
	$(CARGO) clean

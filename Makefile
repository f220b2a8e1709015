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

SEEDS ?= 1000
MINUTES ?= 60
SECONDS ?= 60
ARGS ?=

# nextest does not stop at the first failure in CI: the whole list is worth the wait there.
NEXTEST_PROFILE := $(if $(CI),ci,default)

heading = @printf '\n==> %s\n' '$(1)'

.PHONY: help
help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

.PHONY: setup
setup: ## install what is missing; says nothing when there is nothing to do
	@scripts/setup

.PHONY: build
build: ## the release binary
	$(call heading,build)
	$(CARGO) build --release --locked --workspace

.PHONY: test
test: setup check-fmt lint doc check-purity check-deps test-doc test-examples test-code simulate ## all that CI runs: every check, every test, the simulation
	$(call heading,all checks passed)

.PHONY: check-fmt
check-fmt: ## is the code formatted?
	$(call heading,format)
	$(CARGO) fmt --all --check

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

.PHONY: test-doc
test-doc: ## the examples in the documentation (nextest does not run them)
	$(call heading,documentation examples)
	$(CARGO) test --workspace --locked --doc

.PHONY: test-examples
test-examples: ## the sample application alone, without Cheops
	$(call heading,sample application)
	cd examples/imagery && node --test

.PHONY: test-openstack
test-openstack: ## two real OpenStack sites with Cheops in front (as root: installs Debian's packages)
	$(call heading,build)
	$(CARGO) build --release --locked -p cheops
	$(call heading,openstack)
	examples/openstack/run

.PHONY: simulate
simulate: ## many sites under every fault, SEEDS=1000 runs
	$(call heading,simulation: $(SEEDS) seeds)
	$(CARGO) run --release --locked -p cheops-sim -- --seeds $(SEEDS)

.PHONY: soak
soak: ## the simulation with new seeds for MINUTES=60
	$(call heading,soak: $(MINUTES) minutes)
	$(CARGO) run --release --locked -p cheops-sim -- --minutes $(MINUTES)

.PHONY: fuzz
fuzz: ## random bytes into the scope-lang parser for SECONDS=60 (needs a nightly toolchain)
	$(call heading,fuzz: $(SECONDS) seconds)
	@scripts/setup fuzz
	$(CARGO) +nightly fuzz run scope -- -max_total_time=$(SECONDS)

.PHONY: bench
bench: build ## how fast three real agents are, beside what the machine costs; ARGS='--only latency'
	$(call heading,bench)
	$${CARGO_TARGET_DIR:-target}/release/cheops-bench $(ARGS)

.PHONY: bench-core
bench-core: ## how fast the core and the simulator are
	$(call heading,bench-core)
	$(CARGO) bench --locked -p cheops-core
	$(CARGO) bench --locked -p cheops-sim

# Without a terminal there is nobody to paste commands: then the sites play a script and end.
.PHONY: demo
demo: ## three sites on this machine with an application, links to cut, commands to paste
	$(call heading,demo)
	$(CARGO) build --release --locked -p cheops
	@if [ -t 0 ] && [ -t 1 ]; then \
	  $${CARGO_TARGET_DIR:-target}/release/cheops demo; \
	else \
	  $${CARGO_TARGET_DIR:-target}/release/cheops demo --script; \
	fi

.PHONY: fmt
fmt: ## format the code
	$(CARGO) fmt --all

.PHONY: clean
clean: ## remove what was built
	$(CARGO) clean

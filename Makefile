# Short names for what is done often. What CI checks is in .ci/run, one place per command.

.PHONY: check fmt-check lint manifests-check test bench bench-pages fmt manifests quickstart clean-fleet

# What a change has to pass besides `make test`.
check:
	bash .ci/run format manifests lints

fmt-check:
	bash .ci/run format

lint:
	bash .ci/run lints

manifests-check:
	bash .ci/run manifests

test:
	bash .ci/run tests

# Figures of Services (docs/performance.md), best on a machine that does nothing else. RELEASE names their column, BENCH has more flags.
RELEASE = unreleased
BENCH =
FIGURES = $(CURDIR)/docs/performance
PAGES = --page "$(CURDIR)/docs/performance.md" --svg "$(FIGURES)"
bench:
	cargo bench --package e2e --bench services -- --release "$(RELEASE)" --json "$(FIGURES)/$(RELEASE).json" $(PAGES) $(BENCH)

# Tables and charts of what was measured before.
bench-pages:
	cargo bench --profile dev --package e2e --bench services -- --runs "$(FIGURES)" $(PAGES)

fmt:
	cargo fmt --all

manifests:
	cargo run --quiet --package cli --bin manifests
	cargo run --quiet --package e2e --bin pages

quickstart:
	cargo quickstart

# Takes down what `cargo quickstart` and `fleet up` started in their default directories.
STATE = $${XDG_STATE_HOME:-$$HOME/.local/state}/freeport
clean-fleet:
	cargo run --quiet --package fleet -- down --dir "$(STATE)/quickstart"
	cargo run --quiet --package fleet -- down --dir "$(STATE)/fleet"

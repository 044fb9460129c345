# Short names for what is done often. What CI checks is in .ci/run, one place per command.

.PHONY: check fmt-check lint manifests-check test fmt manifests quickstart clean-fleet

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

fmt:
	cargo fmt --all

manifests:
	cargo run --quiet --package cli --bin manifests
	cargo run --quiet --package e2e --bin conformance

quickstart:
	cargo quickstart

# Takes down what `cargo quickstart` and `fleet up` started in their default directories.
STATE = $${XDG_STATE_HOME:-$$HOME/.local/state}/freeport
clean-fleet:
	cargo run --quiet --package fleet -- down --dir "$(STATE)/quickstart"
	cargo run --quiet --package fleet -- down --dir "$(STATE)/fleet"

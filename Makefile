# What a change has to pass, one command each. `.ci/run` calls these.

.PHONY: check fmt-check lint manifests-check fmt manifests test quickstart

check: fmt-check manifests-check lint

fmt-check:
	cargo fmt --all --check

lint:
	cargo clippy --locked --workspace --all-targets -- -D warnings

manifests-check:
	cargo run --locked --quiet --package cli --bin manifests -- --check

test:
	cargo test --locked --workspace

quickstart:
	cargo quickstart

fmt:
	cargo fmt --all

manifests:
	cargo run --quiet --package cli --bin manifests

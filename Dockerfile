# The image of both daemons and the webhook, for those who have a registry: `docker build -t REGISTRY/freeport:VERSION .`, then
# `freeport init --image REGISTRY/freeport:VERSION ...`. What `fleet` loads into its nodes has the same content.
FROM docker.io/library/rust:1.95-bookworm AS build
WORKDIR /source
COPY . .
# Static, so that nothing else has to be in the image; with a target named, which alone keeps the flags from what runs during the
# build.
RUN target="$(uname -m)-unknown-linux-gnu" \
    && export RUSTFLAGS="-C target-feature=+crt-static" \
    && cargo build --locked --profile daemon --target "$target" --package leader --package member \
    && cargo build --locked --release --target "$target" --package webhook \
    && mkdir --parents --mode 1777 /image/tmp \
    && cp "target/$target/daemon/freeport-leader" "target/$target/daemon/freeport-member" \
          "target/$target/release/freeport-webhook" /image/

FROM scratch
COPY --from=build /image/ /
# Nobody: owns nothing on any machine.
USER 65532:65532
ENV PATH=/
ENTRYPOINT ["/freeport-leader"]

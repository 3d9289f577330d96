# Tagboat with what it calls: git, and ssh for repositories that are reached by it.
#
#     docker build --tag registry.example.com/tagboat:0.1.0 .
#
# It takes the place of the images of Flux's image controllers: their arguments are this one's. It runs as any user
# that the image knows, with a read-only root file system, and writes below /tmp only.

FROM rust:1.95-bookworm AS build
WORKDIR /tagboat
COPY . .
RUN cargo build --release --locked --bin tagboat

# The same release of Debian, so that the C library is not older than the one that was linked with.
FROM debian:bookworm-slim
# tini reaps what outlives a git process that was stopped; it would stay in the process table of the first process.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates git openssh-client tini \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /tagboat/target/release/tagboat /usr/local/bin/tagboat
# The C library would keep memory apart for each of many threads, of which few ever work at once.
ENV MALLOC_ARENA_MAX=2
USER 65534:65534
ENTRYPOINT ["/usr/bin/tini", "--", "/usr/local/bin/tagboat", "controller"]

# Tagboat with the programs that it runs: git, and ssh for repositories with SSH URLs.
#
#     docker build --tag registry.example.com/tagboat:0.1.0 .
#
# It replaces the images of Flux's image controllers and accepts their arguments. It runs as any user of the image, with a
# read-only root file system, and writes to /tmp only.

FROM rust:1.95-bookworm AS build
WORKDIR /tagboat
COPY . .
RUN cargo build --release --locked --bin tagboat

# The same Debian release, so that the C library is not older than the one that it was linked with.
FROM debian:bookworm-slim
# tini reaps processes that outlive a killed git process; they would stay in the process table otherwise.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates git openssh-client tini \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /tagboat/target/release/tagboat /usr/local/bin/tagboat
# By default, the C library has an arena for each thread, and keeps most of the memory that was once needed. With these settings
# it returns that to the system. The benchmark of the controller uses the same.
ENV MALLOC_ARENA_MAX=1 MALLOC_MMAP_THRESHOLD_=32768 MALLOC_TRIM_THRESHOLD_=65536 MALLOC_TOP_PAD_=0
USER 65534:65534
ENTRYPOINT ["/usr/bin/tini", "--", "/usr/local/bin/tagboat", "controller"]

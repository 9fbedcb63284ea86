# `sumout serve` in a container: docs/serving.md says how it is started.
FROM rust:1.95-slim-trixie AS build
WORKDIR /src
COPY . .
RUN cargo build --release --locked -p sumout-cli

FROM debian:trixie-slim
COPY --from=build /src/target/release/sumout /usr/local/bin/sumout
RUN useradd --system --no-create-home --shell /usr/sbin/nologin sumout
USER sumout
WORKDIR /models
EXPOSE 7878
# Bash opens the connection: the image has no curl.
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
  CMD ["bash", "-c", "exec 3<>/dev/tcp/127.0.0.1/7878 && printf 'GET /healthz HTTP/1.0\\r\\nHost: localhost\\r\\n\\r\\n' >&3 && grep -q '\"ok\"' <&3"]
ENTRYPOINT ["sumout", "serve", "--listen", "0.0.0.0:7878"]

# tapin with a Chromium, as a user without rights and with the browser's sandbox
# on. It has not been built or run where this was written: docs/running.md says
# what the engine has to allow, and why neither --privileged nor --no-sandbox is it.
FROM golang:1.26-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
ARG VERSION=container
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w -buildid= -X tapin/internal/cli.version=$VERSION" -o /tapin ./cmd/tapin

FROM debian:bookworm-slim
RUN apt-get update \
	&& apt-get install -y --no-install-recommends chromium fonts-liberation fonts-noto-color-emoji ca-certificates tini \
	&& rm -rf /var/lib/apt/lists/* \
	&& useradd --create-home --uid 10001 tapin
COPY --from=build /tapin /usr/local/bin/tapin
USER tapin
WORKDIR /home/tapin
# Kept across containers: logins, hand-offs, tokens. The key comes from TAPIN_VAULT_KEY.
RUN mkdir -m 0700 .tapin
VOLUME /home/tapin/.tapin
# Browsers leave children behind that somebody has to wait for.
ENTRYPOINT ["/usr/bin/tini", "--", "tapin"]
CMD ["up"]

# The operator's image. docs/image.md says what it weighs and why, and how to build it; `./dev image` does.
#
# Both bases have Debian 13's Python 3.13 ABI, and must keep agreeing on the minor version. The digests are of the
# indexes for all platforms, as public builds recorded them for these tags in September 2026; docs/image.md says how to
# move them. Where no registry can be reached, lab/image/bases.py makes stand-ins for both.
ARG BUILD_IMAGE=docker.io/library/python:3.13-slim-trixie@sha256:9d2e5553305c7c7b0097999bb17187c69b921ccd6bc9d40e4bb5ebe652c00285
ARG BASE_IMAGE=gcr.io/distroless/python3-debian13:nonroot@sha256:8ee214843129f43e2ebf5e0ca9f2e4e6d8292143d1b8a6787f169b5898578884

FROM ${BASE_IMAGE} AS base

# What it makes depends on TARGETARCH alone, so that it may run on another machine than the image is for.
FROM ${BUILD_IMAGE} AS build
ARG TARGETARCH=amd64
COPY requirements-image.lock lab/image/slimming.py lab/image/wheels.py /build/
# pip's settings of the building machine, if it has any, are lent to this one step and are in no layer.
RUN --mount=type=secret,id=pip-conf,target=/etc/pip.conf --mount=type=secret,id=pip-cert \
    python3 /build/wheels.py ${TARGETARCH} /build/requirements-image.lock /dependencies
RUN python3 /build/slimming.py /dependencies
COPY memcached_operator /source/memcached_operator
COPY operator_runtime /source/operator_runtime
RUN python3 /build/slimming.py /source
# Debian's packages compile their modules when they are installed, which nobody did in the base; on a read-only root file
# system each start would do it again.
COPY --from=base /usr/lib/python3.13 /base/usr/lib/python3.13
RUN python3 /build/slimming.py --compiled-alone /base

FROM ${BASE_IMAGE}
# First what changes seldom.
COPY --from=build /base /
COPY --from=build /dependencies /app
COPY --from=build /source /app
COPY LICENSE NOTICE /licenses/
ENV PYTHONPATH=/app \
    PYTHONSAFEPATH=1 \
    PYTHONDONTWRITEBYTECODE=1
USER 65532:65532
WORKDIR /
# Fails the build if the two bases do not fit together.
RUN ["python3", "-c", "import memcached_operator.cli, memcached_operator.operator, uvloop, cryptography.x509"]
EXPOSE 8080 8081
ENTRYPOINT ["python", "-m", "memcached_operator"]

ARG BASE_IMAGE
ARG VERSION=0.1.0
ARG REVISION=
ARG SOURCE=
LABEL org.opencontainers.image.title="memcached-operator" \
      org.opencontainers.image.description="A Kubernetes operator that keeps memcached Deployments at the size that a Memcached resource asks for" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${REVISION}" \
      org.opencontainers.image.source="${SOURCE}" \
      org.opencontainers.image.base.name="${BASE_IMAGE}"

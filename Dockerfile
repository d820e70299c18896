# docker build --tag manul .
# Tokens first, because the service listens on all addresses of the container:
#   docker run --rm --volume manul:/data manul token admin --file /data/tokens
#   docker run --detach --volume manul:/data --publish 127.0.0.1:8000:8000 manul

FROM python:3.11-slim-bookworm AS build
RUN apt-get update && apt-get install --yes --no-install-recommends g++ && rm -rf /var/lib/apt/lists/*
COPY . /src
RUN python -m venv /opt/manul
RUN /opt/manul/bin/pip install --no-cache-dir --disable-pip-version-check '/src[serve]'

FROM python:3.11-slim-bookworm
COPY --from=build /opt/manul /opt/manul
RUN useradd --system --uid 10001 --home-dir /data --create-home manul
ENV PATH=/opt/manul/bin:$PATH
ENV MANUL_HOST=0.0.0.0
ENV MANUL_PORT=8000
ENV MANUL_STORE=/data/decisions.db
ENV MANUL_TOKEN_FILE=/data/tokens
USER manul
WORKDIR /data
VOLUME /data
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["python", "-c", "import os, urllib.request; urllib.request.urlopen(f'http://127.0.0.1:{os.environ[\"MANUL_PORT\"]}/readyz', timeout=4)"]
ENTRYPOINT ["manul"]
CMD ["serve"]

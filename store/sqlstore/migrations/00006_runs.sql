-- Copyright 2026 The sandpit authors
-- SPDX-License-Identifier: Apache-2.0
--
-- Runs with their commands and what happened in them, and the profile of a token.
ALTER TABLE tokens ADD COLUMN profile TEXT NOT NULL DEFAULT '';

-- The number orders runs as they were asked for, which is the order of their queues.
CREATE TABLE runs (
    number          {{seq}},
    id              TEXT   NOT NULL,
    project         TEXT   NOT NULL,
    sandbox         TEXT   NOT NULL,
    identifier      TEXT   NOT NULL,
    state           TEXT   NOT NULL,
    actor           TEXT   NOT NULL,
    via             TEXT   NOT NULL,
    run_user        TEXT   NOT NULL,
    ttl             BIGINT NOT NULL,
    go_on           BIGINT NOT NULL,
    locked          BIGINT NOT NULL,
    canceled        BIGINT NOT NULL,
    error           TEXT   NOT NULL,
    created_at      BIGINT NOT NULL,
    started_at      BIGINT NOT NULL,
    ended_at        BIGINT NOT NULL,
    artifacts       TEXT   NOT NULL,
    artifact_bytes  BIGINT NOT NULL,
    artifacts_kept  BIGINT NOT NULL,
    artifacts_error TEXT   NOT NULL,
    dropped_at      BIGINT NOT NULL,
    output_bytes    BIGINT NOT NULL
);

CREATE UNIQUE INDEX runs_id ON runs (id);
CREATE INDEX runs_project ON runs (project, number);
CREATE INDEX runs_sandbox ON runs (sandbox, number);
CREATE INDEX runs_identifier ON runs (project, identifier, number);
-- What a new server goes on with, and what is collected, are few among many.
CREATE INDEX runs_live ON runs (number) WHERE ended_at = 0;
CREATE INDEX runs_dropped ON runs (number) WHERE dropped_at > 0;
CREATE INDEX runs_kept ON runs (number) WHERE artifacts_kept = 1;

CREATE TABLE run_commands (
    run              TEXT   NOT NULL,
    n                BIGINT NOT NULL,
    shell            TEXT   NOT NULL,
    argv             TEXT   NOT NULL,
    cwd              TEXT   NOT NULL,
    env              TEXT   NOT NULL,
    timeout          BIGINT NOT NULL,
    allow_failure    BIGINT NOT NULL,
    status           TEXT   NOT NULL,
    process_id       TEXT   NOT NULL,
    frame            BIGINT NOT NULL,
    error            TEXT   NOT NULL,
    exit_code        BIGINT NOT NULL,
    signal           TEXT   NOT NULL,
    cause            TEXT   NOT NULL,
    started_at       BIGINT NOT NULL,
    ended_at         BIGINT NOT NULL,
    stdout_bytes     BIGINT NOT NULL,
    stderr_bytes     BIGINT NOT NULL,
    stdout_truncated BIGINT NOT NULL,
    stderr_truncated BIGINT NOT NULL,
    PRIMARY KEY (run, n)
);

CREATE TABLE run_events (
    run       TEXT   NOT NULL,
    seq       BIGINT NOT NULL,
    type      TEXT   NOT NULL,
    at        BIGINT NOT NULL,
    n         BIGINT NOT NULL,
    truncated BIGINT NOT NULL,
    data      {{bytes}},
    PRIMARY KEY (run, seq)
);

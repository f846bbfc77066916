-- Copyright 2026 The sandpit authors
-- SPDX-License-Identifier: Apache-2.0
--
-- Times are microseconds since 1970 (0: none), durations nanoseconds, truths 0
-- or 1, so that both data bases read and order them alike. {{seq}} and
-- {{bytes}} are the two types that have no common spelling; see dialect.go.

CREATE TABLE sandboxes (
    id               TEXT   NOT NULL PRIMARY KEY,
    project          TEXT   NOT NULL,
    key              TEXT   NOT NULL,
    image            TEXT   NOT NULL,
    image_digest     TEXT   NOT NULL,
    asked_image      TEXT   NOT NULL,
    runtime          TEXT   NOT NULL,
    cpu              DOUBLE PRECISION NOT NULL,
    memory_mb        BIGINT NOT NULL,
    disk_mb          BIGINT NOT NULL,
    pids             BIGINT NOT NULL,
    env              TEXT   NOT NULL,
    metadata         TEXT   NOT NULL,
    idle_timeout     BIGINT NOT NULL,
    retention        BIGINT NOT NULL,
    expires_at       BIGINT NOT NULL,
    state            TEXT   NOT NULL,
    stop_cause       TEXT   NOT NULL,
    stop_detail      TEXT   NOT NULL,
    handle           {{bytes}},
    created_at       BIGINT NOT NULL,
    updated_at       BIGINT NOT NULL,
    started_at       BIGINT NOT NULL,
    stopped_at       BIGINT NOT NULL,
    last_activity    BIGINT NOT NULL,
    exec_count       BIGINT NOT NULL,
    exec_time        BIGINT NOT NULL,
    bytes_uploaded   BIGINT NOT NULL,
    bytes_downloaded BIGINT NOT NULL,
    revision         BIGINT NOT NULL,
    search           TEXT   NOT NULL
);

CREATE UNIQUE INDEX sandboxes_key ON sandboxes (project, key) WHERE key <> '';
CREATE INDEX sandboxes_project ON sandboxes (project, created_at, id);
CREATE INDEX sandboxes_created ON sandboxes (created_at, id);

-- No foreign key: what happened to a sandbox outlives its record.
CREATE TABLE events (
    seq              {{seq}},
    sandbox          TEXT   NOT NULL,
    project          TEXT   NOT NULL,
    type             TEXT   NOT NULL,
    at               BIGINT NOT NULL,
    actor            TEXT   NOT NULL,
    via              TEXT   NOT NULL,
    detail           TEXT   NOT NULL,
    process_id       TEXT   NOT NULL,
    command          TEXT   NOT NULL,
    run_user         TEXT   NOT NULL,
    cwd              TEXT   NOT NULL,
    done             BIGINT NOT NULL,
    exit_code        BIGINT NOT NULL,
    signal           TEXT   NOT NULL,
    cause            TEXT   NOT NULL,
    duration         BIGINT NOT NULL,
    stdout_bytes     BIGINT NOT NULL,
    stderr_bytes     BIGINT NOT NULL,
    stdout_truncated BIGINT NOT NULL,
    stderr_truncated BIGINT NOT NULL,
    changes          TEXT   NOT NULL,
    changes_total    BIGINT NOT NULL,
    path             TEXT   NOT NULL,
    moved_to         TEXT   NOT NULL,
    bytes            BIGINT NOT NULL,
    ok               BIGINT NOT NULL
);

-- Every index is one more page in every commit of a command. The process stands
-- in the first one for want of its own: looking for one reads that index only.
CREATE INDEX events_sandbox ON events (sandbox, seq, process_id);
CREATE INDEX events_project ON events (project, seq);
CREATE INDEX events_unfinished ON events (sandbox, seq) WHERE done = 0 AND process_id <> '';

CREATE TABLE tokens (
    id           TEXT   NOT NULL PRIMARY KEY,
    project      TEXT   NOT NULL,
    name         TEXT   NOT NULL,
    hash         {{bytes}} NOT NULL,
    scopes       TEXT   NOT NULL,
    created_at   BIGINT NOT NULL,
    last_used_at BIGINT NOT NULL,
    expires_at   BIGINT NOT NULL
);

CREATE UNIQUE INDEX tokens_hash ON tokens (hash);
CREATE UNIQUE INDEX tokens_name ON tokens (project, name);

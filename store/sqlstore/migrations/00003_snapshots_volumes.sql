-- Copyright 2026 The sandpit authors
-- SPDX-License-Identifier: Apache-2.0
--
-- Snapshots and volumes, and what sandboxes keep of them and of their clocks.
-- The defaults are what the sandboxes of older servers were: stopped when idle,
-- started by a call, without checkpoints.
ALTER TABLE sandboxes ADD COLUMN mounts TEXT NOT NULL DEFAULT '[]';
ALTER TABLE sandboxes ADD COLUMN on_idle TEXT NOT NULL DEFAULT 'stop';
ALTER TABLE sandboxes ADD COLUMN auto_delete BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sandboxes ADD COLUMN ttl BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sandboxes ADD COLUMN auto_start BIGINT NOT NULL DEFAULT 1;
ALTER TABLE sandboxes ADD COLUMN auto_resume BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sandboxes ADD COLUMN checkpoints TEXT NOT NULL DEFAULT 'off';
ALTER TABLE sandboxes ADD COLUMN restore_to TEXT NOT NULL DEFAULT '';
ALTER TABLE sandboxes ADD COLUMN parent TEXT NOT NULL DEFAULT '';
ALTER TABLE sandboxes ADD COLUMN forked_from TEXT NOT NULL DEFAULT '';
ALTER TABLE sandboxes ADD COLUMN run_time BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sandboxes ADD COLUMN running_since BIGINT NOT NULL DEFAULT 0;
UPDATE sandboxes SET running_since = started_at WHERE state IN ('running', 'stopping');

-- The index of sandboxes.mounts: a table of its own, so that the commits of
-- sandboxes without volumes, nearly all there are, write no page of it.
CREATE TABLE sandbox_mounts (
    sandbox TEXT NOT NULL,
    volume  TEXT NOT NULL,
    PRIMARY KEY (sandbox, volume)
);

CREATE INDEX sandbox_mounts_volume ON sandbox_mounts (volume, sandbox);

-- Stopped sandboxes may be a hundred thousand, too many to count for a page of
-- them, and few commits change their number.
CREATE TABLE sandboxes_stopped (
    project TEXT   NOT NULL PRIMARY KEY,
    n       BIGINT NOT NULL
);

INSERT INTO sandboxes_stopped (project, n) SELECT project, COUNT(*) FROM sandboxes WHERE state = 'stopped' GROUP BY project;

-- Finds and counts the few that are not stopped.
CREATE INDEX sandboxes_awake ON sandboxes (created_at, id, state, project) WHERE state <> 'stopped';

-- A search reads this index alone, a tenth of the table. The text never changes,
-- so that no commit after the first writes it.
DROP INDEX sandboxes_project;
CREATE INDEX sandboxes_project ON sandboxes (project, created_at, id, search);

-- No foreign key: a snapshot outlives the sandbox whose disk it was.
CREATE TABLE snapshots (
    id           TEXT   NOT NULL PRIMARY KEY,
    project      TEXT   NOT NULL,
    sandbox      TEXT   NOT NULL,
    name         TEXT   NOT NULL,
    auto         BIGINT NOT NULL,
    parent       TEXT   NOT NULL,
    image        TEXT   NOT NULL,
    image_digest TEXT   NOT NULL,
    runtime      TEXT   NOT NULL,
    cpu          DOUBLE PRECISION NOT NULL,
    memory_mb    BIGINT NOT NULL,
    disk_mb      BIGINT NOT NULL,
    pids         BIGINT NOT NULL,
    env          TEXT   NOT NULL,
    state        TEXT   NOT NULL,
    size_bytes   BIGINT NOT NULL,
    created_at   BIGINT NOT NULL,
    created_by   TEXT   NOT NULL,
    detail       TEXT   NOT NULL
);

CREATE UNIQUE INDEX snapshots_name ON snapshots (sandbox, name, project) WHERE name <> '';
CREATE INDEX snapshots_sandbox ON snapshots (sandbox, created_at, id);
CREATE INDEX snapshots_project ON snapshots (project, created_at, id);
CREATE INDEX snapshots_created ON snapshots (created_at, id);
-- What a repair looks for is not among a million that are ready.
CREATE INDEX snapshots_intent ON snapshots (created_at, id) WHERE state <> 'ready';

CREATE TABLE volumes (
    id         TEXT   NOT NULL PRIMARY KEY,
    project    TEXT   NOT NULL,
    name       TEXT   NOT NULL,
    runtime    TEXT   NOT NULL,
    size_mb    BIGINT NOT NULL,
    state      TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    created_by TEXT   NOT NULL
);

CREATE UNIQUE INDEX volumes_name ON volumes (project, name);

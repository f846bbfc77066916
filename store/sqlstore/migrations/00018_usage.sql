-- Copyright 2026 The sandpit authors
-- SPDX-License-Identifier: Apache-2.0
--
-- What projects have used, by token and hour; amounts are promised ones times
-- microseconds: thousandths of processors, MiB. No foreign keys: it outlives
-- sandboxes.

CREATE TABLE usage (
    project    TEXT   NOT NULL,
    token      TEXT   NOT NULL,
    hour       BIGINT NOT NULL,
    commands   BIGINT NOT NULL,
    exec_time  BIGINT NOT NULL,
    run_time   BIGINT NOT NULL,
    cpu        BIGINT NOT NULL,
    memory     BIGINT NOT NULL,
    disk       BIGINT NOT NULL,
    uploaded   BIGINT NOT NULL,
    downloaded BIGINT NOT NULL,
    PRIMARY KEY (project, hour, token)
);

-- Up to when the time of each sandbox is in it.
CREATE TABLE usage_meters (
    sandbox    TEXT   NOT NULL PRIMARY KEY,
    project    TEXT   NOT NULL,
    token      TEXT   NOT NULL,
    cpu        DOUBLE PRECISION NOT NULL,
    memory_mb  BIGINT NOT NULL,
    disk_mb    BIGINT NOT NULL,
    running    BIGINT NOT NULL,
    kept       BIGINT NOT NULL,
    run        BIGINT NOT NULL,
    run_until  BIGINT NOT NULL,
    disk_until BIGINT NOT NULL
);

-- No index by project: it would be one more page of each create and delete, and who asks for the use of a
-- project reads all of the few thousand rows.

-- Sandboxes of before count from their last change on.
INSERT INTO usage_meters (sandbox, project, token, cpu, memory_mb, disk_mb, running, kept, run, run_until, disk_until)
SELECT id, project, '', cpu, memory_mb, disk_mb, CASE WHEN running_since <> 0 THEN 1 ELSE 0 END,
    CASE WHEN state IN ('archived', 'unarchiving') THEN 0 ELSE 1 END, run_time, running_since, updated_at FROM sandboxes;

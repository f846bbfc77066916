-- Copyright 2026 The sandpit authors
-- SPDX-License-Identifier: Apache-2.0
--
-- Contexts of code, and what the events of code tell.
CREATE TABLE contexts (
    id         TEXT   NOT NULL PRIMARY KEY,
    sandbox    TEXT   NOT NULL,
    name       TEXT   NOT NULL,
    language   TEXT   NOT NULL,
    cwd        TEXT   NOT NULL,
    run_user   TEXT   NOT NULL,
    env        TEXT   NOT NULL,
    is_default BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    used_at    BIGINT NOT NULL,
    process_id TEXT   NOT NULL,
    starts     BIGINT NOT NULL,
    cells      BIGINT NOT NULL,
    ended      TEXT   NOT NULL,
    running_id TEXT   NOT NULL,
    state      {{bytes}}
);

CREATE INDEX contexts_sandbox ON contexts (sandbox, created_at, id);

ALTER TABLE events ADD COLUMN language TEXT NOT NULL DEFAULT '';
ALTER TABLE events ADD COLUMN context TEXT NOT NULL DEFAULT '';

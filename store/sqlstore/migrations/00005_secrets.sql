-- Copyright 2026 The sandpit authors
-- SPDX-License-Identifier: Apache-2.0
--
-- Secrets, their values sealed by a key that is not here. The sandbox stands first
-- (empty: the project's own), so that a deleted sandbox's are found without an index
-- of their own.
CREATE TABLE secrets (
    sandbox    TEXT   NOT NULL,
    project    TEXT   NOT NULL,
    name       TEXT   NOT NULL,
    hosts      TEXT   NOT NULL,
    header     TEXT   NOT NULL,
    format     TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    sealed     {{bytes}} NOT NULL,
    PRIMARY KEY (sandbox, project, name)
);

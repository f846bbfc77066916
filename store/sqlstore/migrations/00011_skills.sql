-- Copyright 2026 The sandpit authors
-- SPDX-License-Identifier: Apache-2.0
--
-- The skills of projects. A package is in a row of its own, which lists do not read.
CREATE TABLE skills (
    id            TEXT   NOT NULL PRIMARY KEY,
    project       TEXT   NOT NULL,
    name          TEXT   NOT NULL,
    description   TEXT   NOT NULL,
    author        TEXT   NOT NULL,
    version       TEXT   NOT NULL,
    license       TEXT   NOT NULL,
    compatibility TEXT   NOT NULL,
    tags          TEXT   NOT NULL,
    tools         TEXT   NOT NULL,
    source        TEXT   NOT NULL,
    digest        TEXT   NOT NULL,
    size          BIGINT NOT NULL,
    files         TEXT   NOT NULL,
    created_at    BIGINT NOT NULL,
    updated_at    BIGINT NOT NULL,
    created_by    TEXT   NOT NULL
);

CREATE UNIQUE INDEX skills_name ON skills (project, name);

CREATE TABLE skill_packages (
    skill TEXT NOT NULL PRIMARY KEY,
    text  TEXT NOT NULL,
    data  {{bytes}} NOT NULL
);

-- What is installed in a sandbox.
ALTER TABLE sandboxes ADD COLUMN skills TEXT NOT NULL DEFAULT '[]';

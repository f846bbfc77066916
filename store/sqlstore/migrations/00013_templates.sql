-- Copyright 2026 The sandpit authors
-- SPDX-License-Identifier: Apache-2.0
--
-- Versions of templates. Those that all projects have are of the project ''.
CREATE TABLE templates (
    id         TEXT   NOT NULL PRIMARY KEY,
    project    TEXT   NOT NULL,
    name       TEXT   NOT NULL,
    version    BIGINT NOT NULL,
    spec       TEXT   NOT NULL,
    status     TEXT   NOT NULL,
    snapshot   TEXT   NOT NULL,
    failure    TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    created_by TEXT   NOT NULL
);

CREATE UNIQUE INDEX templates_version ON templates (project, name, version);
CREATE INDEX templates_disk ON templates (snapshot) WHERE snapshot <> '';
CREATE INDEX templates_building ON templates (id) WHERE status = 'building';

-- The last version of a name, which stays when versions are deleted.
CREATE TABLE template_names (
    project TEXT   NOT NULL,
    name    TEXT   NOT NULL,
    last    BIGINT NOT NULL,
    PRIMARY KEY (project, name)
);

CREATE TABLE template_defaults (
    project TEXT NOT NULL PRIMARY KEY,
    name    TEXT NOT NULL
);

-- Sizes of pools that a call changed.
CREATE TABLE pool_sizes (
    name     TEXT   NOT NULL PRIMARY KEY,
    image    TEXT   NOT NULL,
    limits   TEXT   NOT NULL,
    template TEXT   NOT NULL,
    least    BIGINT NOT NULL,
    most     BIGINT NOT NULL,
    refill   BIGINT NOT NULL
);

-- What a sandbox was made of, as JSON; empty: it is older than templates.
ALTER TABLE sandboxes ADD COLUMN template TEXT NOT NULL DEFAULT '';

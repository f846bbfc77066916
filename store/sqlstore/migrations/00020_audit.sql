-- Copyright 2026 The sandpit authors
-- SPDX-License-Identifier: Apache-2.0
--
-- The audit log. Its rows outlive what they are about: no foreign keys.

CREATE TABLE audit (
    id      {{seq}},
    writer  TEXT   NOT NULL,
    seq     BIGINT NOT NULL,
    at      BIGINT NOT NULL,
    type    TEXT   NOT NULL,
    outcome TEXT   NOT NULL,
    project TEXT   NOT NULL,
    sandbox TEXT   NOT NULL,
    token   TEXT   NOT NULL,
    actor   TEXT   NOT NULL,
    body    TEXT   NOT NULL,
    hash    {{bytes}}  NOT NULL
);
CREATE INDEX audit_sandbox ON audit (sandbox, id) WHERE sandbox <> '';
CREATE INDEX audit_project ON audit (project, id);

CREATE TABLE audit_marks (
    writer    TEXT   NOT NULL,
    kind      TEXT   NOT NULL,
    seq       BIGINT NOT NULL,
    hash      {{bytes}}  NOT NULL,
    at        BIGINT NOT NULL,
    signature {{bytes}}  NOT NULL,
    PRIMARY KEY (writer, kind)
);

-- Copyright 2026 The sandpit authors
-- SPDX-License-Identifier: Apache-2.0
--
-- People who are signed in by a browser, and codes that are good for one sign-in (code = 1). Of the secret of either, and of
-- the token that it is bound to, there is the SHA-256 alone.

CREATE TABLE sessions (
    id           TEXT   NOT NULL PRIMARY KEY,
    hash         {{bytes}} NOT NULL UNIQUE,
    code         BIGINT NOT NULL,
    token_hash   {{bytes}} NOT NULL,
    token        TEXT   NOT NULL,
    project      TEXT   NOT NULL,
    actor        TEXT   NOT NULL,
    address      TEXT   NOT NULL,
    agent        TEXT   NOT NULL,
    created_at   BIGINT NOT NULL,
    last_used_at BIGINT NOT NULL,
    expires_at   BIGINT NOT NULL
);

CREATE INDEX sessions_project ON sessions (project, created_at, id);

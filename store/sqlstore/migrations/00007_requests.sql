-- Copyright 2026 The sandpit authors
-- SPDX-License-Identifier: Apache-2.0
--
-- Requests with an idempotency key. seq is the order in which they were put, n the same
-- within a project: the oldest of a project that has too many are below a number.
CREATE TABLE requests (
    seq        {{seq}},
    id         {{bytes}} NOT NULL,
    project    TEXT   NOT NULL,
    n          BIGINT NOT NULL,
    hash       {{bytes}} NOT NULL,
    created_at BIGINT NOT NULL,
    made       TEXT   NOT NULL,
    status     BIGINT NOT NULL,
    header     TEXT   NOT NULL,
    answer     {{bytes}}
);

CREATE UNIQUE INDEX requests_id ON requests (id);
CREATE INDEX requests_project ON requests (project, n);

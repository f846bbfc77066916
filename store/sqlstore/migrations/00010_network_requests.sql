-- Copyright 2026 The sandpit authors
-- SPDX-License-Identifier: Apache-2.0
--
-- What was asked for sandboxes' networks and waits for a person. There are few, and all are read at once.
CREATE TABLE network_requests (
    id      TEXT   NOT NULL PRIMARY KEY,
    sandbox TEXT   NOT NULL,
    ref     TEXT   NOT NULL,
    project TEXT   NOT NULL,
    presets TEXT   NOT NULL,
    domains TEXT   NOT NULL,
    names   TEXT   NOT NULL,
    why     TEXT   NOT NULL,
    actor   TEXT   NOT NULL,
    at      BIGINT NOT NULL,
    until   BIGINT NOT NULL
);

CREATE INDEX network_requests_sandbox ON network_requests (sandbox);

-- Copyright 2026 The sandpit authors
-- SPDX-License-Identifier: Apache-2.0
--
-- What calls have set of the server's settings; the value is JSON.

CREATE TABLE settings (
    name       TEXT   NOT NULL PRIMARY KEY,
    value      TEXT   NOT NULL,
    changed_at BIGINT NOT NULL,
    changed_by TEXT   NOT NULL
);

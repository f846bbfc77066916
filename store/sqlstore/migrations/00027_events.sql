-- Copyright 2026 The sandpit authors
-- SPDX-License-Identifier: Apache-2.0
--
-- Changes of records, as clients that follow a project see them; only the newest are kept.

CREATE TABLE changes (
    seq     {{seq}},
    project TEXT   NOT NULL,
    type    TEXT   NOT NULL,
    at      BIGINT NOT NULL,
    actor   TEXT   NOT NULL,
    via     TEXT   NOT NULL,
    subject TEXT   NOT NULL,
    object  {{bytes}}
);

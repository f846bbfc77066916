-- Copyright 2026 The sandpit authors
-- SPDX-License-Identifier: Apache-2.0
--
-- Where the disk of an archived sandbox is, as JSON; empty: it is not archived.
ALTER TABLE sandboxes ADD COLUMN archive TEXT NOT NULL DEFAULT '';

-- Archives that no record of a sandbox owns: those that are being written, and those that are to be
-- removed. There are few, and all are read at once.
CREATE TABLE unowned_archives (
    id      TEXT NOT NULL PRIMARY KEY,
    sandbox TEXT NOT NULL
);

-- A stopped sandbox is archived after so many ns; zero: never.
ALTER TABLE sandboxes ADD COLUMN archive_after BIGINT NOT NULL DEFAULT 0;

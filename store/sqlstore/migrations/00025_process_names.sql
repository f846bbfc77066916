-- Copyright 2026 The sandpit authors
-- SPDX-License-Identifier: Apache-2.0
--
-- Names and labels of processes. Of those of a sandbox that run no two have the same name.
ALTER TABLE events ADD COLUMN name TEXT NOT NULL DEFAULT '';
ALTER TABLE events ADD COLUMN labels TEXT NOT NULL DEFAULT '{}';

CREATE UNIQUE INDEX events_running_name ON events (sandbox, name) WHERE name <> '' AND done = 0;
CREATE INDEX events_named ON events (sandbox, seq) WHERE name <> '' OR labels <> '{}';

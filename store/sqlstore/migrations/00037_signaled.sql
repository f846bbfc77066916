-- Copyright 2026 The sandpit authors
-- SPDX-License-Identifier: Apache-2.0
--
-- By whom a command was sent a signal that ends programs, and which. Lists of processes read these rows beside those
-- with names and labels.
ALTER TABLE events ADD COLUMN signaled_by TEXT NOT NULL DEFAULT '';
ALTER TABLE events ADD COLUMN signaled_with TEXT NOT NULL DEFAULT '';

DROP INDEX events_named;
CREATE INDEX events_named ON events (sandbox, seq) WHERE name <> '' OR labels <> '{}' OR signaled_by <> '';

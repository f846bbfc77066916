-- Copyright 2026 The sandpit authors
-- SPDX-License-Identifier: Apache-2.0
--
-- Where the disk of an archived snapshot is, as JSON; empty: it is not archived. What is in
-- unowned_archives may be of a snapshot, too: its id is in the column sandbox then.
ALTER TABLE snapshots ADD COLUMN archive TEXT NOT NULL DEFAULT '';

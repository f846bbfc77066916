-- Copyright 2026 The sandpit authors
-- SPDX-License-Identifier: Apache-2.0
--
-- How the user of a sandbox is called: its name, its home, its working directory, and who commands run as that do not
-- say, a line each; empty: the default one. Of a snapshot it is the sandbox's at the time.
ALTER TABLE sandboxes ADD COLUMN account TEXT NOT NULL DEFAULT '';
ALTER TABLE snapshots ADD COLUMN account TEXT NOT NULL DEFAULT '';

-- Copyright 2026 The sandpit authors
-- SPDX-License-Identifier: Apache-2.0
--
-- What, beside the server's own key, the key is made of by which clients sign addresses of a sandbox's files; empty: it was
-- never exchanged.
ALTER TABLE sandboxes ADD COLUMN file_salt TEXT NOT NULL DEFAULT '';

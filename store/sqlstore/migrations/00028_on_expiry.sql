-- Copyright 2026 The sandpit authors
-- SPDX-License-Identifier: Apache-2.0
--
-- What happens to a sandbox at expires_at. Those of earlier versions are deleted, as they were to be.
ALTER TABLE sandboxes ADD COLUMN on_expiry TEXT NOT NULL DEFAULT 'delete';

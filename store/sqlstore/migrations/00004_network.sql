-- Copyright 2026 The sandpit authors
-- SPDX-License-Identifier: Apache-2.0
--
-- What a sandbox may reach; nothing, as it was for all before.
ALTER TABLE sandboxes ADD COLUMN network TEXT NOT NULL DEFAULT 'off';

-- Copyright 2026 The sandpit authors
-- SPDX-License-Identifier: Apache-2.0
--
-- Whether programs of the sandbox's user may run commands as its root, by sudo.
ALTER TABLE sandboxes ADD COLUMN sudo BIGINT NOT NULL DEFAULT 0;

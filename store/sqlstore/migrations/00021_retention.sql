-- Copyright 2026 The sandpit authors
-- SPDX-License-Identifier: Apache-2.0
--
-- Whether retention is the server's setting, since nobody asked for another. Of sandboxes that an earlier version
-- made that is not known, and they keep what they have.
ALTER TABLE sandboxes ADD COLUMN retention_default BIGINT NOT NULL DEFAULT 0;

-- Copyright 2026 The sandpit authors
-- SPDX-License-Identifier: Apache-2.0
--
-- When a volume is to be deleted, once nothing mounts it; 0: it stays until somebody deletes it.
ALTER TABLE volumes ADD COLUMN expires_at BIGINT NOT NULL DEFAULT 0;

CREATE INDEX volumes_expiry ON volumes (expires_at, id) WHERE expires_at > 0;

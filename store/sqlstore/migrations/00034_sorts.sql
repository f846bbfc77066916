-- Copyright 2026 The sandpit authors
-- SPDX-License-Identifier: Apache-2.0
--
-- What lists of sandboxes are sorted by, beside their creation. These have the stopped ones alone, of which a host may have
-- many: a create writes none of them, nor does a command. The project is in them so that they say whether a row belongs
-- to a list.

-- Of what never expires expires_at is 0, and comes after all dates.
ALTER TABLE sandboxes ADD COLUMN expires_order BIGINT GENERATED ALWAYS AS (CASE expires_at WHEN 0 THEN 9223372036854775807 ELSE expires_at END) VIRTUAL;

CREATE INDEX sandboxes_by_activity ON sandboxes (last_activity, id, project) WHERE state = 'stopped';
CREATE INDEX sandboxes_by_expiry ON sandboxes (expires_order, id, project) WHERE state = 'stopped';
CREATE INDEX sandboxes_by_cpu ON sandboxes (cpu, id, project) WHERE state = 'stopped';
CREATE INDEX sandboxes_by_memory ON sandboxes (memory_mb, id, project) WHERE state = 'stopped';
CREATE INDEX sandboxes_by_disk ON sandboxes (disk_mb, id, project) WHERE state = 'stopped';

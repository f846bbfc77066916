-- Copyright 2026 The sandpit authors
-- SPDX-License-Identifier: Apache-2.0
--
-- Secrets of a project's vault, which hold for no sandbox, have "vault" for their sandbox. Those that are attached to one
-- name in vault what they are attached from.
ALTER TABLE secrets ADD COLUMN vault TEXT NOT NULL DEFAULT '';
ALTER TABLE secrets ADD COLUMN description TEXT NOT NULL DEFAULT '';

CREATE INDEX secrets_vault ON secrets (project, vault) WHERE vault <> '';

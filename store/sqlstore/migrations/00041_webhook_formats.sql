-- Copyright 2026 The sandpit authors
-- SPDX-License-Identifier: Apache-2.0
--
-- In which form a webhook is sent events; '': the server's own.
ALTER TABLE webhooks ADD COLUMN format TEXT NOT NULL DEFAULT '';

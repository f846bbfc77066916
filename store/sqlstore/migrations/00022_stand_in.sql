-- Copyright 2026 The sandpit authors
-- SPDX-License-Identifier: Apache-2.0
--
-- The request headers in which a bound secret's stand-in is replaced, with spaces between them; one space: the usual ones.
ALTER TABLE secrets ADD COLUMN stand_in TEXT NOT NULL DEFAULT ' ';

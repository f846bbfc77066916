-- Copyright 2026 The sandpit authors
-- SPDX-License-Identifier: Apache-2.0
--
-- The id of the installation that the records belong to; one row at most.
CREATE TABLE identity (
    id TEXT NOT NULL
);

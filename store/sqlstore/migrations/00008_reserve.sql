-- Copyright 2026 The sandpit authors
-- SPDX-License-Identifier: Apache-2.0
--
-- Room in the file: its rows are deleted where the disk is full, and their pages are used
-- for what ends and deletes.
CREATE TABLE reserve (
    n    {{seq}},
    data {{bytes}} NOT NULL
);

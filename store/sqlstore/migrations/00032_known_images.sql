-- Copyright 2026 The sandpit authors
-- SPDX-License-Identifier: Apache-2.0
--
-- The images that events have told of, as they last did.

CREATE TABLE known_images (
    name   TEXT    NOT NULL PRIMARY KEY,
    digest TEXT    NOT NULL,
    object {{bytes}} NOT NULL
);

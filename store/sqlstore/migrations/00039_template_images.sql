-- Copyright 2026 The sandpit authors
-- SPDX-License-Identifier: Apache-2.0
--
-- The image that a template's Dockerfile made, by its digest; and whether nothing is made of the template for now.
ALTER TABLE templates ADD COLUMN image TEXT NOT NULL DEFAULT '';
ALTER TABLE templates ADD COLUMN inactive BIGINT NOT NULL DEFAULT 0;
CREATE INDEX templates_image ON templates (image) WHERE image <> '';

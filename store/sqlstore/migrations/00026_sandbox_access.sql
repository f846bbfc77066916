-- Copyright 2026 The sandpit authors
-- SPDX-License-Identifier: Apache-2.0
--
-- How often the tokens for a sandbox alone were ended; which of its ports are public, and what Host its programs see
-- (JSON; empty: none are, and their own); and the links to ports that can be listed and revoked. What proves such a
-- link is derived from its id.
ALTER TABLE sandboxes ADD COLUMN token_round BIGINT NOT NULL DEFAULT 0;
ALTER TABLE sandboxes ADD COLUMN previews TEXT NOT NULL DEFAULT '';

CREATE TABLE preview_links (
    id         TEXT   NOT NULL PRIMARY KEY,
    sandbox    TEXT   NOT NULL,
    project    TEXT   NOT NULL,
    port       BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    created_by TEXT   NOT NULL
);
CREATE INDEX preview_links_sandbox ON preview_links (sandbox, id);

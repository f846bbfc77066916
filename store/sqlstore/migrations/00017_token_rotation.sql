-- Copyright 2026 The sandpit authors
-- SPDX-License-Identifier: Apache-2.0
--
-- Secrets that a rotation replaced, by their hash, and until when each is still its token's.
CREATE TABLE token_old_secrets (
    hash        {{bytes}} NOT NULL PRIMARY KEY,
    token       TEXT      NOT NULL,
    valid_until BIGINT    NOT NULL
);

CREATE INDEX token_old_secrets_token ON token_old_secrets (token, valid_until);

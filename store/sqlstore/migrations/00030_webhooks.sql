-- Copyright 2026 The sandpit authors
-- SPDX-License-Identifier: Apache-2.0
--
-- Webhooks of projects, and what was or is to be sent to them. A webhook has in position the seq in changes up to
-- which its deliveries are made: they come of the same rows, in their order.

CREATE TABLE webhooks (
    id          TEXT   NOT NULL PRIMARY KEY,
    project     TEXT   NOT NULL,
    url         TEXT   NOT NULL,
    types       TEXT   NOT NULL,
    description TEXT   NOT NULL,
    secret      {{bytes}},
    old_secret  {{bytes}},
    old_until   BIGINT NOT NULL,
    position    BIGINT NOT NULL,
    failures    BIGINT NOT NULL,
    disabled_at BIGINT NOT NULL,
    disabled_by TEXT   NOT NULL,
    detail      TEXT   NOT NULL,
    created_at  BIGINT NOT NULL,
    created_by  TEXT   NOT NULL,
    updated_at  BIGINT NOT NULL
);

CREATE INDEX webhooks_project ON webhooks (project, created_at, id);

CREATE TABLE webhook_deliveries (
    number     {{seq}},
    id         TEXT   NOT NULL UNIQUE,
    webhook    TEXT   NOT NULL,
    event_id   TEXT   NOT NULL,
    type       TEXT   NOT NULL,
    body       {{bytes}},
    repeats    TEXT   NOT NULL,
    state      TEXT   NOT NULL,
    attempts   BIGINT NOT NULL,
    next_at    BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    done_at    BIGINT NOT NULL,
    status     BIGINT NOT NULL,
    duration   BIGINT NOT NULL,
    detail     TEXT   NOT NULL
);

CREATE INDEX webhook_deliveries_webhook ON webhook_deliveries (webhook, number);
CREATE INDEX webhook_deliveries_due ON webhook_deliveries (webhook, number) WHERE state = 'pending';

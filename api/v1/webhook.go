// Copyright 2026 The sandpit authors
// SPDX-License-Identifier: Apache-2.0

package v1

import "time"

// Webhook is a URL to which events of a project are sent.
type Webhook struct {
	ID          string     `json:"id" jsonschema:"wh_…"`
	Project     string     `json:"project"`
	URL         string     `json:"url"`
	Types       []string   `json:"types" jsonschema:"of events; none: all"`
	Description string     `json:"description"`
	Format      string     `json:"format" jsonschema:"of what is sent, with its types and signatures: sandpit, or orkestr, as Orkestr's SDK reads it"`
	Status      string     `json:"status" jsonschema:"enabled or disabled"`
	DisabledAt  *time.Time `json:"disabled_at" jsonschema:"null: it is enabled"`
	DisabledBy  string     `json:"disabled_by,omitempty" jsonschema:"the token's name; system: it failed too often in a row"`
	Failures    int        `json:"failures" jsonschema:"attempts that failed in a row; 20 disable it"`
	Detail      string     `json:"detail,omitempty" jsonschema:"why the last of them failed"`
	CreatedAt   time.Time  `json:"created_at"`
	CreatedBy   string     `json:"created_by" jsonschema:"the token's name"`
	UpdatedAt   time.Time  `json:"updated_at"`
	OldSecret   *time.Time `json:"old_secret_until" jsonschema:"deliveries are signed with the secret before this one, too, until then; null: there is none"`
	Secret      string     `json:"secret,omitempty" jsonschema:"what deliveries are signed with: in the answer that made it, and never again"`
}

// WebhookList is the webhooks of a project, oldest first.
type WebhookList struct {
	Items []Webhook `json:"items"`
}

// CreateWebhook asks for a webhook.
type CreateWebhook struct {
	URL         string   `json:"url" jsonschema:"https, of a host on the internet; or what the operator names in webhooks.allow"`
	Types       []string `json:"types,omitzero" jsonschema:"sandbox.started and the like, or sandbox, snapshot, volume, template or image for all of one; left out: all"`
	Description *string  `json:"description,omitempty" jsonschema:"at most 256 bytes"`
	Format      *string  `json:"format,omitempty" jsonschema:"sandpit, which is the default, or orkestr: other types, bodies and signatures, see docs/orkestr.md"`
}

// UpdateWebhook changes a webhook: what is there is changed, the rest stays.
type UpdateWebhook struct {
	URL         *string  `json:"url,omitempty"`
	Types       []string `json:"types,omitzero" jsonschema:"replaces all; empty: all events"`
	Description *string  `json:"description,omitempty"`
	Enabled     *bool    `json:"enabled,omitempty" jsonschema:"true: what happens from then on is sent, and what was pending; false: nothing is"`
}

// RotateWebhook asks for another secret.
type RotateWebhook struct {
	GraceSeconds *int64 `json:"grace_seconds,omitempty" jsonschema:"deliveries are signed with both secrets for so long: 0 to 604800, the default is 86400"`
}

// WebhookDelivery is one event on its way to a webhook.
type WebhookDelivery struct {
	ID            string     `json:"id" jsonschema:"del_…; the header Sandpit-Delivery"`
	WebhookID     string     `json:"webhook_id"`
	EventID       string     `json:"event_id"`
	Type          string     `json:"type" jsonschema:"of the event"`
	Repeats       *string    `json:"repeats" jsonschema:"the delivery that it repeats; null: none"`
	Status        string     `json:"status" jsonschema:"pending, delivered or failed: it was tried for 24 hours"`
	Attempts      int        `json:"attempts"`
	NextAt        *time.Time `json:"next_attempt_at" jsonschema:"null: it is over"`
	CreatedAt     time.Time  `json:"created_at"`
	DoneAt        *time.Time `json:"done_at"`
	ResponseCode  *int       `json:"response_status" jsonschema:"of the last attempt; null: no answer came"`
	DurationMS    int64      `json:"duration_ms" jsonschema:"of the last attempt"`
	FailureReason string     `json:"detail,omitempty" jsonschema:"why the last attempt failed"`
}

// WebhookDeliveryPage is deliveries, newest first.
type WebhookDeliveryPage struct {
	Items      []WebhookDelivery `json:"items"`
	NextCursor *string           `json:"next_cursor" jsonschema:"give it as cursor to go on; null at the end"`
}
